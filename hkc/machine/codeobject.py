"""AMDGPU code objects (hsaco): the kernels in them, their descriptors and metadata, and what the loader maps.

Reads what the HSA runtime reads, whoever compiled it: code object versions 4 to 6, metadata from the msgpack note.
Format from LLVM's AMDGPUUsage, "Code Object".
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgpack  # type: ignore[import-untyped]

from hkc.machine.descriptor import SIZE, Descriptor, decode
from hkc.machine.elf import Elf, Relocation, Segment, Symbol, corrupt
from hkc.support.errors import Diagnostic, HkcUsageError, error

_EM_AMDGPU = 224
_ABI_HSA = 64
_VERSIONS = {2: 4, 3: 5, 4: 6}  # EI_ABIVERSION to code object version
_MACHINE = 0xFF  # EF_AMDGPU_MACH
_FEATURES = {"xnack": 8, "sramecc": 10}  # EF_AMDGPU_FEATURE_…_V4: two bits each, from this one on
_SETTINGS = ("not supported", "any", "off", "on")
_METADATA_NOTE = ("AMDGPU", 32)
_WRITTEN = {
    "amdhsa.target": "in assembly text, add `amdhsa.target: amdgcn-amd-amdhsa--CHIP`, with the chip's name, between "
    "`.amdgpu_metadata` and `.end_amdgpu_metadata`",
}
"""How a key that assembly text often forgets is written."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Argument:
    """One entry of the kernel-argument segment: offset and size in bytes, and what it is ("by_value", "hidden_…")."""

    name: str
    offset: int
    size: int
    kind: str


@dataclass(frozen=True)
class Metadata:
    """What the compiler says of a kernel. Sizes in bytes, `max_threads` of a workgroup, registers per lane or wave.

    `vgprs` counts the unified allocation, AccVGPRs (`agprs`) included.
    """

    args: tuple[Argument, ...]
    kernarg_size: int
    lds: int
    scratch: int
    vgprs: int
    agprs: int
    sgprs: int
    vgpr_spills: int
    sgpr_spills: int
    wave_size: int
    max_threads: int


@dataclass(frozen=True)
class Kernel:
    """A kernel: `entry` is the address of its first instruction, `size` the bytes of its code (0 where not said)."""

    name: str
    symbol: str
    entry: int
    size: int
    descriptor: Descriptor
    metadata: Metadata


@dataclass(frozen=True)
class CodeObject:
    """A parsed code object. `target` is the whole target id ("amdgcn-amd-amdhsa--CHIP:xnack+"), `arch` its chip.

    `machine` is the number of the processor in the ELF header.
    """

    arch: str
    target: str
    machine: int
    version: int
    kernels: tuple[Kernel, ...]
    segments: tuple[Segment, ...]
    symbols: Mapping[str, Symbol]
    relocations: tuple[Relocation, ...]

    @classmethod
    def parse(cls, data: bytes) -> CodeObject:
        """Read an hsaco.

        Raises `HkcError`: HK601 no ELF file, HK602 not a linked AMDGPU one of a known version, HK603 corrupt or cut
        short, HK604 without readable metadata, HK605 a kernel whose descriptor or code isn't there, HK607 metadata for
        other features of the processor than the ELF header says.
        """
        elf = Elf(data)
        if (elf.machine, elf.abi) != (_EM_AMDGPU, _ABI_HSA):
            raise error("HK602", f"an ELF file for machine {elf.machine}, system {elf.abi}; not an AMDGPU code object")
        elf.require_linked()
        if elf.abi_version not in _VERSIONS:
            known = ", ".join(map(str, _VERSIONS.values()))
            raise error("HK602", f"ELF ABI version {elf.abi_version}; code object versions {known} can be read")
        metadata = _metadata(elf)
        target = _get(metadata, "amdhsa.target", str)
        _check_features(target, elf.flags)
        return cls(
            arch=processor(target),
            target=target,
            machine=elf.flags & _MACHINE,
            version=_VERSIONS[elf.abi_version],
            kernels=tuple(_kernel(elf, entry) for entry in _entries(metadata, "amdhsa.kernels")),
            segments=elf.segments,
            symbols=elf.symbols,
            relocations=elf.relocations,
        )

    def kernel(self, name: str | None = None) -> Kernel:
        """The kernel called `name`, or the only one. Raises HK606 that names those there are."""
        names = [k.name for k in self.kernels]
        if name is None and len(names) == 1:
            return self.kernels[0]
        if name in names:
            return self.kernels[names.index(name)]
        wanted = "no kernel was named" if name is None else f"there is no kernel `{name}`"
        near = difflib.get_close_matches(name or "", names, 1)
        hint = f"did you mean `{near[0]}`?" if near else None
        text = f"{wanted}; the code object holds {', '.join(names) or 'none'}"
        raise HkcUsageError(Diagnostic("HK606", text, hint=hint))

    def code(self, kernel: Kernel) -> bytes:
        """The machine code of a kernel: its `size` bytes, else everything from its entry to the end of the segment."""
        segment = _executable(self.segments, kernel.entry)
        assert segment is not None  # `parse` has made sure
        start = kernel.entry - segment.address
        return segment.content[start : start + kernel.size if kernel.size else None]


def _metadata(elf: Elf) -> dict[str, Any]:
    for note in elf.notes:
        if (note.owner, note.kind) == _METADATA_NOTE:
            try:
                found = msgpack.unpackb(note.content)
            except (ValueError, msgpack.UnpackException) as failure:
                raise error("HK604", f"the metadata note can't be read: {failure or type(failure).__name__}") from None
            if isinstance(found, dict):
                return found
            raise error("HK604", f"the metadata note holds a {type(found).__name__} in place of a map")
    hint = "write `.amdgpu_metadata`, the kernels' `amdhsa.kernels:` in YAML, and `.end_amdgpu_metadata`"
    raise error("HK604", "the code object has no metadata note", hint=hint)


def processor(target: str) -> str:
    """The processor in a target id: what follows architecture, vendor, system and (often empty) environment.

    Raises HK604 where there is none.
    """
    parts = target.partition(":")[0].split("-", 4)
    if len(parts) < 5 or not parts[4]:
        raise error("HK604", f"the metadata names no processor: its target is `{target}`")
    return parts[4]


def _check_features(target: str, flags: int) -> None:
    """XNACK and SRAM ECC: on, off, or, where the target doesn't name them, any or not supported."""
    named = {word[:-1]: word[-1:] for word in target.split(":")[1:]}
    for feature, bit in _FEATURES.items():
        said, wanted = _SETTINGS[flags >> bit & 3], {"+": ("on",), "-": ("off",)}.get(named.get(feature, ""))
        if said not in (wanted or ("any", "not supported")):
            raise error("HK607", f"the ELF header says {feature} {said}, but the metadata's target is `{target}`")


def _kernel(elf: Elf, entry: Mapping[str, Any]) -> Kernel:
    name, symbol = _get(entry, ".name", str), _get(entry, ".symbol", str)
    where = elf.symbols.get(symbol)
    if where is None or not where.defined:
        raise error("HK605", f"kernel `{name}`: its descriptor `{symbol}` isn't in the symbol table")
    descriptor = decode(elf.read(where.address, SIZE, f"the descriptor of `{name}`"))
    address = where.address + descriptor.entry_offset
    segment = _executable(elf.segments, address)
    if segment is None:
        raise error("HK605", f"kernel `{name}`: its entry 0x{address & (1 << 64) - 1:x} lies in no executable segment")
    function = elf.symbols.get(name)
    size = function.size if function is not None and function.address == address else 0
    if address + size > segment.address + len(segment.content):
        raise corrupt(f"the {size} bytes of `{name}` go beyond its segment")
    return Kernel(name, symbol, address, size, descriptor, _resources(entry))


def _resources(entry: Mapping[str, Any]) -> Metadata:
    return Metadata(
        args=tuple(_argument(a) for a in _entries(entry, ".args")),
        kernarg_size=_get(entry, ".kernarg_segment_size", int),
        lds=_get(entry, ".group_segment_fixed_size", int),
        scratch=_get(entry, ".private_segment_fixed_size", int),
        vgprs=_get(entry, ".vgpr_count", int),
        agprs=_get(entry, ".agpr_count", int, 0),
        sgprs=_get(entry, ".sgpr_count", int),
        vgpr_spills=_get(entry, ".vgpr_spill_count", int, 0),
        sgpr_spills=_get(entry, ".sgpr_spill_count", int, 0),
        wave_size=_get(entry, ".wavefront_size", int),
        max_threads=_get(entry, ".max_flat_workgroup_size", int),
    )


def _argument(entry: Mapping[str, Any]) -> Argument:
    kind = _get(entry, ".value_kind", str)
    return Argument(_get(entry, ".name", str, ""), _get(entry, ".offset", int), _get(entry, ".size", int), kind)


def _entries(holder: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    found = _get(holder, key, list, [])
    for entry in found:
        if not isinstance(entry, dict):
            raise error("HK604", f"metadata: `{key}` holds a {type(entry).__name__} in place of a map")
    return found


def _get(holder: Mapping[str, Any], key: str, kind: type[_T], default: _T | None = None) -> _T:
    """The value under `key`. Numbers in code objects are sizes and counts, thus never negative."""
    value = holder.get(key, default)
    if not isinstance(value, kind) or (isinstance(value, int) and value < 0):
        found = f"is {value!r} in place of a {kind.__name__}" if key in holder else "is missing"
        raise error("HK604", f"metadata: `{key}` {found}", hint=_WRITTEN.get(key))
    return value


def _executable(segments: tuple[Segment, ...], address: int) -> Segment | None:
    return next((s for s in segments if s.executable and 0 <= address - s.address < len(s.content)), None)
