"""A reader for linked 64-bit little-endian ELF files: segments, notes, symbols, relocations.

Every read is checked against the file, so that a truncated or corrupt one ends in an `HkcError` that says what is
wrong where. Layout from the System V ABI, chapters 4 and 5.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from hkc.support.errors import HkcError, error

_TYPE_NAMES = {1: "an object that was not linked", 2: "an executable", 4: "a core dump"}
_ET_DYN = 3
_PT_LOAD, _PT_NOTE = 1, 4
_SHT_SYMTAB, _SHT_RELA, _SHT_DYNSYM = 2, 4, 11
_SHF_ALLOC = 2
_MAX_ADDRESS = 1 << 40  # far beyond any code object, and small enough to add up without care


@dataclass(frozen=True)
class Segment:
    """A loadable part: `content` at `address`, followed by zeros up to `size` bytes."""

    address: int
    size: int
    content: bytes
    executable: bool
    writable: bool


@dataclass(frozen=True)
class Symbol:
    """A name for an address; `size` in bytes. An undefined symbol (`defined` False) has neither."""

    name: str
    address: int
    size: int
    defined: bool


@dataclass(frozen=True)
class Relocation:
    """A place that the loader fills in; `kind` is the machine's relocation number, `symbol` may be empty."""

    address: int
    kind: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class Note:
    """An entry of a note segment."""

    owner: str
    kind: int
    content: bytes


@dataclass(frozen=True)
class _Section:
    name: int
    kind: int
    flags: int
    offset: int
    size: int
    link: int


def corrupt(what: str) -> HkcError:
    """The error for a file whose structure is broken (HK603)."""
    return error("HK603", f"corrupt code object: {what}", hint="copy or compile it again")


class Elf:
    """A parsed file. Raises `HkcError`: HK601 no ELF, HK602 of another kind, HK603 corrupt or cut short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        if data[:4] != b"\x7fELF":
            raise error("HK601", f"not an ELF file: {_looks_like(data)}", hint="name a code object: a .hsaco file")
        ident = self._slice(0, 16, "the ELF header")
        if ident[4:6] != b"\x02\x01":
            raise error("HK602", "a 32-bit or big-endian ELF file; code objects are 64-bit little-endian")
        self.abi, self.abi_version = ident[7], ident[8]
        fields = self._unpack("<HHIQQQIHHHHHH", 16, "the ELF header")
        self.type, self.machine, _, _, self._programs, self._headers, self.flags = fields[:7]
        _, self._program_size, self._program_count, self._section_size, self._section_count, self._names = fields[7:]

    def require_linked(self) -> None:
        """Raise HK602 unless this is a shared object, which is what a loader takes."""
        if self.type != _ET_DYN:
            kind = _TYPE_NAMES.get(self.type, f"of type {self.type}")
            raise error("HK602", f"not a loadable code object: the ELF file is {kind}")

    @functools.cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The loadable segments in file order."""
        found = []
        for kind, flags, offset, address, file_size, size in self._program_headers():
            if kind != _PT_LOAD:
                continue
            if size < file_size or address + size > _MAX_ADDRESS:
                raise corrupt(f"a segment at 0x{address:x} of {size} bytes with {file_size} in the file")
            content = self._slice(offset, file_size, "a segment")
            found.append(Segment(address, size, content, bool(flags & 1), bool(flags & 2)))
        return tuple(found)

    @functools.cached_property
    def notes(self) -> tuple[Note, ...]:
        """The entries of all note segments."""
        return tuple(
            note
            for kind, _, offset, _, size, _ in self._program_headers()
            if kind == _PT_NOTE
            for note in _notes(self._slice(offset, size, "a note segment"))
        )

    @functools.cached_property
    def symbols(self) -> dict[str, Symbol]:
        """The named symbols of the dynamic and of the static table, by name; the dynamic one wins."""
        found: dict[str, Symbol] = {}
        for kind in (_SHT_DYNSYM, _SHT_SYMTAB):
            for section in self._sections:
                if section.kind == kind:
                    for symbol in self._symbol_table(section):
                        found.setdefault(symbol.name, symbol)
        found.pop("", None)
        return found

    @functools.cached_property
    def relocations(self) -> tuple[Relocation, ...]:
        """What the loader must fill in."""
        found: list[Relocation] = []
        for section in self._sections:
            if section.kind != _SHT_RELA or not section.flags & _SHF_ALLOC:
                continue
            names = self._symbol_table(self._linked(section)) if section.link else []
            table = self._slice(section.offset, section.size, "a relocation table")
            for address, info, addend in struct.iter_unpack("<QQq", _whole(table, 24, "relocation table")):
                index = info >> 32
                if index and index >= len(names):
                    raise corrupt(f"a relocation names symbol {index} of {len(names)}")
                name = names[index].name if index else ""
                found.append(Relocation(address, info & 0xFFFFFFFF, name, addend))
        return tuple(found)

    def section(self, name: str) -> bytes | None:
        """The content of the section of that name, or None. Takes no part in what a loader sees."""
        if self._names >= len(self._sections):
            return None
        strings = self._slice(self._sections[self._names].offset, self._sections[self._names].size, "section names")
        for section in self._sections:
            if _string(strings, section.name) == name:
                return self._slice(section.offset, section.size, f"section {name}")
        return None

    def read(self, address: int, size: int, what: str) -> bytes:
        """`size` bytes of the loaded image from `address`. Raises HK603 where no segment holds them all."""
        for segment in self.segments:
            start = address - segment.address
            if start >= 0 and start + size <= len(segment.content):
                return segment.content[start : start + size]
        raise corrupt(f"{what} (0x{address:x}, {size} bytes) lies in no segment")

    @functools.cached_property
    def _sections(self) -> tuple[_Section, ...]:
        if self._section_count and self._section_size != 64:
            raise corrupt(f"section headers of {self._section_size} bytes")
        headers = (
            self._unpack("<IIQQQQII16x", self._headers + i * 64, "a section header") for i in range(self._section_count)
        )
        return tuple(_Section(name, kind, flags, at, size, link) for name, kind, flags, _, at, size, link, _ in headers)

    def _program_headers(self) -> Iterator[tuple[int, int, int, int, int, int]]:
        """Type, flags, offset in the file, address, size in the file, size in memory of each."""
        if self._program_count and self._program_size != 56:
            raise corrupt(f"program headers of {self._program_size} bytes")
        for i in range(self._program_count):
            fields = self._unpack("<IIQQQQQ8x", self._programs + i * 56, "a program header")
            kind, flags, offset, address, _, file_size, size = fields
            yield kind, flags, offset, address, file_size, size

    def _symbol_table(self, section: _Section) -> list[Symbol]:
        table = self._slice(section.offset, section.size, "a symbol table")
        names = self._linked(section)
        strings = self._slice(names.offset, names.size, "a string table")
        return [
            Symbol(_string(strings, name), address, size, index != 0)
            for name, _, _, index, address, size in struct.iter_unpack("<IBBHQQ", _whole(table, 24, "symbol table"))
        ]

    def _linked(self, section: _Section) -> _Section:
        if section.link >= len(self._sections):
            raise corrupt(f"a section refers to section {section.link} of {len(self._sections)}")
        return self._sections[section.link]

    def _unpack(self, form: str, offset: int, what: str) -> tuple[int, ...]:
        return struct.unpack(form, self._slice(offset, struct.calcsize(form), what))

    def _slice(self, offset: int, size: int, what: str) -> bytes:
        if offset + size > len(self._data):
            raise corrupt(f"{what} of {size} bytes at offset {offset} goes beyond the file's {len(self._data)} bytes")
        return self._data[offset : offset + size]


def _notes(content: bytes) -> Iterator[Note]:
    at = 0
    while at + 12 <= len(content):
        owner_size, size, kind = struct.unpack_from("<III", content, at)
        start = at + 12 + (owner_size + 3 & ~3)
        if start + size > len(content):
            raise corrupt(f"a note of {size} bytes in a segment of {len(content)}")
        owner = content[at + 12 : at + 12 + owner_size].rstrip(b"\0").decode("ascii", "replace")
        yield Note(owner, kind, content[start : start + size])
        at = start + (size + 3 & ~3)


def _string(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if offset >= len(table) or end < 0:
        raise corrupt(f"a name at {offset} of a string table of {len(table)} bytes")
    return table[offset:end].decode(errors="replace")


def _whole(table: bytes, entry: int, what: str) -> bytes:
    if len(table) % entry:
        raise corrupt(f"a {what} of {len(table)} bytes with entries of {entry}")
    return table


def _looks_like(data: bytes) -> str:
    if not data:
        return "it is empty"
    return f"it begins with {data[:8].hex(' ')}"
