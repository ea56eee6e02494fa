"""Looking into a run: stops at an instruction, a trace of all of them, a watch over some bytes of memory.

These observers write text to a stream. A group is the waves that execute an instruction together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import EXEC, Decoded, Operand, operand
from hkc.emulate.memory import Memory
from hkc.emulate.observe import Access, Observer
from hkc.emulate.outstanding import Happen, Picked, Rows
from hkc.emulate.program import Program
from hkc.emulate.registry import Context, Step
from hkc.emulate.state import LANES, UNWRITTEN, State
from hkc.emulate.waves import Waves, lane_bits
from hkc.machine.lines import place
from hkc.support.errors import Diagnostic, HkcUsageError

_REGISTERS = ("vgpr", "agpr", "sgpr")
_PER_ROW = 8
_BYTES = re.compile(r"(lds|0x[0-9a-fA-F]+)\[(\d+)(?::(\d+))?\]$")

Range = Callable[[Memory], tuple[int, int]]
"""Finds bytes once the arguments are in memory: first address and how many."""


def _usage(message: str, hint: str | None = None) -> HkcUsageError:
    return HkcUsageError(Diagnostic("HK305", message, hint=hint))


class Trace(Observer):
    """One line per instruction and group: its waves, where it is, its text, and on demand what it has written.

    `values` shows the first result of the group's first wave: lane 0 for vectors, dots where a load is on its way.
    """

    def __init__(self, stream: TextIO, values: bool = False) -> None:
        self._stream, self._values = stream, values

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        text = f"{instruction.address:#08x}  {instruction.text}"
        named = instruction.operands[:1] if self._values and _writes(instruction) else ()
        shown = [o for o in named if o.kind in _REGISTERS]

        def run(w: Waves) -> NDArray[np.int64] | None:
            jump: NDArray[np.int64] | None = step(w)
            found = "".join(f"  ; {o.name} = {_first(w.state, int(w.rows[0]), o, context)}" for o in shown)
            self._stream.write(f"{_waves(w):>12}  {text}{found}\n")
            return jump

        return run


def _waves(w: Waves) -> str:
    """`3`, `0-7`, or `0-9+4` for the first and last of a group with gaps and how many there are."""
    first, last = (int(w.rows[i]) + w.state.first_wave for i in (0, -1))
    if w.count == 1:
        return f"{first}"
    return f"{first}-{last}" + (f" ({w.count})" if last - first + 1 != w.count else "")


def _writes(instruction: Decoded) -> bool:
    """Whether the first operand is a result."""
    base = instruction.base
    if base.startswith("ds_"):
        return re.search("read|rtn|permute|swizzle|append|consume", base) is not None
    if "atomic" in base:
        return instruction.flag("sc0") or instruction.flag("glc")
    return not base.startswith(("s_cmp", "s_bitcmp")) and "_store" not in base


def _first(state: State, row: int, o: Operand, context: Context) -> str:
    if o.kind in ("vgpr", "agpr"):
        words = [_vector(state, row, context.vector(o) + i)[0] for i in range(o.count)]
    else:
        words = [_scalar(state, row, o.index + i) for i in range(o.count)]
    return " ".join(words)


def _word(bits: int, unwritten: bool, coming: bool) -> str:
    """Bits in hexadecimal; dashes for what was never written, dots for what a load will bring."""
    return "." * 8 if coming else "-" * 8 if unwritten else f"{bits:08x}"


def _scalar(state: State, row: int, register: int) -> str:
    if register >= EXEC:
        return f"{int(lane_bits(state.exec_mask[row])) >> 32 * (register - EXEC) & 0xFFFFFFFF:08x}"
    coming, unwritten = state.scalar_in_flight[register, row], state.scalar_unwritten[register, row]
    return _word(int(state.scalar[register, row]), bool(unwritten), bool(coming))


def _vector(state: State, row: int, register: int) -> list[str]:
    """Of every lane."""
    nowhere = np.zeros(LANES, np.bool_)
    unwritten = state.whole(register)[row] if state.flags[register] & UNWRITTEN else nowhere
    flight = state.in_flight.get(register)
    coming = nowhere if flight is None else flight[row]
    facts = zip(state.registers[register][row].tolist(), unwritten.tolist(), coming.tolist(), strict=True)
    return [_word(*fact) for fact in facts]


class Break(Observer):
    """Shows state before an instruction, the first `times` times that any group gets there.

    `where` is an address, or the number of a source line: then the first instruction of each stretch that comes from
    it. `show` names registers (`v3`, `a[0:3]`, `s[4:5]`, `vcc`), bytes of the workgroup's LDS (`lds[0:64]`) and of
    memory (`0x7e0000000000[0:16]`); without any, what the instruction names is shown. `wave` counts over the launch
    (default: the first that comes).
    """

    def __init__(
        self, where: int, stream: TextIO, *, line: bool = False, show: Iterable[str] = (), wave: int | None = None,
        times: int = 1,
    ) -> None:  # fmt: skip
        self._where, self._line, self._stream, self._wave = where, line, stream, wave
        self._show, self._left, self.reached = tuple(show), times, False
        for text in self._show:
            if not _BYTES.match(text) and operand(text).kind not in _REGISTERS:
                raise _usage(f"`{text}` is no register such as v3, s[4:5], vcc and no bytes such as lds[0:64]")

    def start(self, program: Program) -> None:
        """See `Observer`. Raises `HkcUsageError` HK305 where no instruction is meant."""
        addresses = [i.address for i in program.instructions]
        if self._line:
            lines = [(found.line if (found := place(program.lines, a)) else 0) for a in addresses]
            before = [0, *lines[:-1]]
            self._stops = {a for a, n, old in zip(addresses, lines, before, strict=True) if n == self._where != old}
        else:
            self._stops = {self._where} & set(addresses)
        if not self._stops:
            if not self._line:
                raise _usage(f"no instruction starts at {self}")
            known = sorted(set(lines) - {0}, key=lambda n: (abs(n - self._where), n))[:8]
            hint = f"the nearest are {', '.join(map(str, sorted(known)))}" if known else "no lines are known"
            raise _usage(f"no instruction comes from {self}", hint)

    def __str__(self) -> str:
        return f"line {self._where}" if self._line else f"address {self._where:#x}"

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        if instruction.address not in self._stops:
            return step

        def run(w: Waves) -> NDArray[np.int64] | None:
            row = self._row(w)
            if row is not None and self._left > 0:
                self.reached = True
                self._left -= 1
                self._print(w.state, row, instruction, context)
            jump: NDArray[np.int64] | None = step(w)
            return jump

        return run

    def _row(self, w: Waves) -> int | None:
        if self._wave is None:
            return int(w.rows[0])
        row = self._wave - w.state.first_wave
        return row if row in w.rows else None

    def _print(self, state: State, row: int, instruction: Decoded, context: Context) -> None:
        wave = state.first_wave + row
        group = wave // state.shape.waves_per_group
        out = [f"{instruction.address:#x}: {instruction.text}", f"  wave {wave} of workgroup {group}"]
        out.append(f"  exec {int(lane_bits(state.exec_mask[row])):016x}  scc {int(state.scc[row])}")
        for text in self._show or [o.name or str(o) for o in instruction.operands if o.kind in _REGISTERS]:
            out += self._shown(state, row, text, context)
        self._stream.write("\n".join(out) + "\n")

    @staticmethod
    def _shown(state: State, row: int, text: str, context: Context) -> list[str]:
        if found := _BYTES.match(text):
            return _dump(state, row, text, found)
        o = operand(text.strip("-|"))
        if o.kind == "sgpr":
            words = [_scalar(state, row, o.index + i) for i in range(o.count)]
            return [f"  {text} = {' '.join(words)}"]
        lines = []
        for i in range(o.count):
            register = context.vector(o) + i
            if register >= len(state.registers):
                raise _usage(f"the kernel has no register {text}")
            words = _vector(state, row, register)
            lines += _lanes(f"{text[0]}{o.index + i}", words, state.registers[register][row])
        return lines


def _lanes(name: str, words: list[str], values: NDArray[np.uint32]) -> list[str]:
    """A vector register as bits and, beside them, as f32 where it has any."""
    floats = [
        f"{float(x):.5g}" if w[0] not in "-." else "-" for w, x in zip(words, values.view(np.float32), strict=True)
    ]
    lines = []
    for lane in range(0, LANES, _PER_ROW):
        bits, numbers = (" ".join(column[lane : lane + _PER_ROW]) for column in (words, floats))
        lines.append(f"  {name if lane == 0 else '':>6} [{lane:2}] {bits}   {numbers}")
    return lines


def _dump(state: State, row: int, text: str, found: re.Match[str]) -> list[str]:
    first, end = int(found[2]), int(found[3] or int(found[2]) + 1)
    if found[1] == "lds":
        if first >= min(end, state.shape.lds):
            return [f"  {text}: no bytes; the workgroup has {state.shape.lds} bytes of LDS"]
        end = min(end, state.shape.lds)
        space, at = state.lds, int(state.lds_base[row]) + first
    else:
        address, size = int(found[1], 16) + first, max(end - first, 0)
        held = state.memory.find(address)
        if held is None or not state.memory.holds(address, size):
            return [f"  {text}: not all in one allocation; it begins {state.memory.near(address)}"]
        space, at = held.space, address - held.base
    written = np.ones(end - first, np.bool_) if space.complete else space.valid[at : at + end - first].view(np.bool_)
    words = _words(space.data[at : at + end - first].tolist(), written.tolist())
    return [f"  {text}", *(f"    {first + 4 * i:#06x}: {' '.join(words[i : i + 4])}" for i in range(0, len(words), 4))]


def _words(data: Sequence[int], written: Iterable[bool]) -> list[str]:
    """Bytes in hexadecimal, four of them as the word that a register holds after a load; dashes where none was
    written."""
    shown = [f"{byte:02x}" if known else "--" for byte, known in zip(data, written, strict=True)]
    return ["".join(reversed(shown[i : i + 4])) for i in range(0, len(shown), 4)]


class Watch(Observer):
    """Shows every write to some bytes of memory: by whom, and the bytes before and after."""

    def __init__(self, where: Range, stream: TextIO, name: str = "") -> None:
        self._where, self._stream, self._name, self.reached = where, stream, name, False

    def __str__(self) -> str:
        return self._name

    def begin(self, state: State) -> None:
        """See `Observer`. Raises `HkcUsageError` HK305 where no memory is meant."""
        self._first, self._size = self._where(state.memory)
        if not state.memory.holds(self._first, self._size):
            near = state.memory.near(self._first)
            raise _usage(f"the {self._size} bytes at {self._first:#x} are not all in one allocation", near)
        self._old = state.memory.read(self._first, self._size)

    def access(self, state: State, access: Access) -> Happen | None:
        """See `Observer`."""
        if access.space != "global" or access.kind == "load":
            return None
        start, end = np.uint64(self._first), np.uint64(self._first + self._size)
        hit = access.mask & (access.addresses < end) & (access.addresses + np.uint64(access.nbytes) > start)
        if not hit.any():
            return None

        def written(rows: Rows, picked: Picked) -> None:
            here = hit[picked]
            if here.any():
                row, lane = (int(i[-1]) for i in np.nonzero(here))
                self._say(state, access, state.first_wave + int(rows[row]), lane)

        return written

    def _say(self, state: State, access: Access, wave: int, lane: int) -> None:
        self.reached = True
        new = state.memory.read(self._first, self._size)
        by, name = access.by, self._name or f"{self._first:#x}"
        change = " -> ".join(" ".join(_words(data, [True] * self._size)) for data in (self._old, new))
        self._stream.write(f"{name}: {change} by wave {wave}, lane {lane} at {by.address:#x}: {by.text}\n")
        self._old = new
