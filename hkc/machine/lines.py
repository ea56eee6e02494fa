"""Which source line an instruction comes from: the DWARF line table of a code object, or the table in a file beside."""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass
from pathlib import Path

COLUMNS = ["address", "line", "column"]


@dataclass(frozen=True)
class Line:
    """From `address` up to the next entry's, code comes from this place; `line` 0 means from nowhere in particular."""

    address: int
    file: str
    line: int
    column: int


def line_table(code: bytes) -> tuple[Line, ...]:
    """The line table of a linked code object, by address; empty where it holds none or one that can't be read."""
    from elftools.elf.elffile import ELFFile

    found = []
    try:
        elf = ELFFile(io.BytesIO(code))
        if not elf.has_dwarf_info():
            return ()
        for unit in elf.get_dwarf_info().iter_CUs():
            program = elf.get_dwarf_info().line_program_for_CU(unit)
            files = program.header.file_entry if program else ()
            first = 0 if unit.header.version >= 5 else 1
            for entry in program.get_entries() if program else ():
                state = entry.state
                if state is not None:
                    name = files[state.file - first].name if state.file - first < len(files) else b""
                    found.append(Line(state.address, name.decode(errors="replace"), state.line, state.column))
    except Exception:  # noqa: BLE001 (on a damaged table the library fails in whatever way)
        return ()
    return tuple(sorted(found, key=lambda line: line.address))


def written(table: tuple[Line, ...], source: str, code: bytes) -> str:
    """The text of the file with the line table of `code`, which comes from one source."""
    rows = [[line.address, line.line, line.column] for line in table]
    return json.dumps({"source": source, "code": _digest(code), "columns": COLUMNS, "rows": rows})


def beside(path: Path, code: bytes) -> tuple[Line, ...]:
    """The line table that was `written` beside the file of `code`; empty where there is none, or one of other code."""
    try:
        table = json.loads(path.with_suffix(".lines.json").read_text())
        if (table["code"], table["columns"]) != (_digest(code), COLUMNS):
            return ()
        return tuple(Line(int(a), str(table["source"]), int(n), int(c)) for a, n, c in table["rows"])
    except (OSError, ValueError, TypeError, KeyError):
        return ()


def _digest(code: bytes) -> str:
    return hashlib.sha256(code).hexdigest()


def place(table: tuple[Line, ...], address: int) -> Line | None:
    """The last entry at or before `address` that names a line, or None where the table doesn't cover it."""
    from bisect import bisect_right

    at = bisect_right(table, address, key=lambda line: line.address) - 1
    return table[at] if at >= 0 and table[at].line else None
