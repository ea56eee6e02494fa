"""Waits and barriers taken out of the machine code of correct kernels, or weakened, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from epochs import Epochs
from numpy.typing import NDArray

from hkc.api import CompiledKernel
from hkc.emulate import Memory, Observer, Program, launch
from hkc.emulate.checks import CHECKS, REMARKS, observers
from hkc.emulate.decode import Decoded, decode
from hkc.emulate.registry import Context, Step
from hkc.emulate.waves import Waves
from hkc.machine.abi import GlobalParam, View, pack
from hkc.machine.disassemble import listing
from hkc.machine.waits import Code, Uncovered, needless, verify
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.support.extents import evaluate

NOP = decode(0, bytes([0, 0, 0x80, 0xBF]), "s_nop 0")
FOUND, UNUSED = "found", "never executed"
IDLE, COVERED = "nothing was outstanding", "what it orders is ordered by others, too"
LATE = "may still be on its way"  # the proof of waits, of a register
ERRORS = frozenset(CHECKS) - REMARKS

Outputs = dict[str, bytes]


class Effects(Observer):
    """Which instructions were executed, which waits among them had something to wait for; steps of the launch."""

    def __init__(self) -> None:
        self.executed: set[int] = set()
        self.effective: set[int] = set()
        self.steps = 0

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        sync = instruction.base in ("s_waitcnt", "s_barrier")

        def run(w: Waves) -> Any:
            before = w.state.outstanding.pending() if sync else 0
            jump = step(w)
            self.steps += 1
            self.executed.add(instruction.address)
            if sync and (instruction.base == "s_barrier" or w.state.outstanding.pending() != before):
                self.effective.add(instruction.address)
            return jump

        return run


class _Caught(Exception):
    """A mutation was found."""


class _First(Observer):
    """Ends a launch at the first finding."""

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        def run(w: Waves) -> Any:
            jump = step(w)
            if found := w.state.findings.all():
                raise _Caught(found[0].kind)
            return jump

        return run


@dataclass(frozen=True)
class Verdict:
    """What became of a mutation: the kind of the first finding on the emulator, or why there is none; what the static
    proof of waits says, of all paths and of those that some shape takes; and how many LDS accesses clash by the count
    of barriers (where nothing was found)."""

    mutation: str
    barrier: bool
    outcome: str
    found: str
    unproved: tuple[Uncovered, ...]
    unproved_here: tuple[Uncovered, ...]
    clashes: int
    proof_suffices: bool
    """By the proof nothing is on its way on any path to this wait, or nothing but what it knows all about: loads into
    registers."""

    def __str__(self) -> str:
        proof = f"not proved: {self.unproved[0]}" if self.unproved else "all waits proved"
        proof += ", on a path that no shape takes" if self.unproved and not self.unproved_here else ""
        return f"{self.mutation}: {self.outcome}{f' ({self.found})' if self.found else ''}; {proof}"

    def objection(self) -> str:
        """Why this verdict can't be left as it is, if so: checkers contradict each other."""
        late, late_here = (any(LATE in u.why for u in them) for them in (self.unproved, self.unproved_here))
        if self.clashes:
            return "no race is reported, but LDS accesses clash"
        if self.found == "missing wait" and not self.unproved:
            return "a missing wait is reported, and yet all waits are proved"
        if self.outcome in (IDLE, COVERED) and late_here:
            return "a register may be used too early, and no run shows it"
        if self.outcome == UNUSED and not late and not self.proof_suffices:
            return "nobody has looked at it"
        return ""


@dataclass
class Subject:
    """A correct kernel and the shapes it runs with. `skew` in a shape says by how many elements its tensors are off an
    aligned address, which leads to another entry point; `short` (or `short NAME`) how many are left out at each row's
    end."""

    kernel: CompiledKernel
    shapes: tuple[Mapping[str, int], ...]
    seeds: tuple[int, ...] = (0, 1)
    limit: int = 1 << 18

    def __post_init__(self) -> None:
        self.program = Program.load(self.kernel.hsaco, lines=self.kernel.binary.lines)
        code = self.program.code
        self.codes = [listing(code, k) for k in code.kernels]
        assert not any(verify(code) for code in self.codes)
        self.effects, self.wanted = [], []
        for shape in self.shapes:
            effects = Effects()
            findings, outputs = self.run(self.program, shape, 0, [effects])
            assert findings == (), findings
            self.effects.append(effects)
            self.wanted.append(outputs)
        taken = {frozenset(effects.executed) for effects in self.effects}
        self.unused = [
            {i.address: "s_endpgm" for code in self.codes for i in code if i.address not in executed}
            for executed in taken
        ]
        self.limit = 20 * max(effects.steps for effects in self.effects)

    def run(
        self, program: Program, shape: Mapping[str, int], seed: int, more: Sequence[Observer] = ()
    ) -> tuple[tuple[str, ...], Outputs]:
        """The kinds of errors that checkers find, and what the kernel wrote."""
        info, memory, rng = self.kernel.info, Memory(), np.random.default_rng(0)
        views: dict[str, View] = {}
        for p in info.params:
            assert isinstance(p, GlobalParam)
            extents = tuple(evaluate(d, shape) for d in p.dims)
            array: NDArray[Any] = rng.integers(-3, 4, extents).astype(dtype(p.dtype).numpy)
            at = memory.allocate(array.nbytes, p.name, skew=shape.get("skew", 0) * array.itemsize)
            if p.name not in info.outputs:
                memory.write(at, array)
            extents = (*extents[:-1], extents[-1] - shape.get("short", shape.get(f"short {p.name}", 0)))
            views[p.name] = View(at, extents, tuple(s // array.itemsize for s in array.strides), array.itemsize)
        try:
            result = launch(
                program,
                info.entry(views).symbol,
                workgroups=(info.workgroups(shape), 1, 1),
                threads=(info.waves * 64, 1, 1),
                kernarg=pack(info.params, views, {}),
                memory=memory,
                seed=seed,
                observers=[*observers(ERRORS), *more],
                limit=self.limit,
            )
        except HkcError:
            return ("fault",), {}
        except _Caught as caught:
            return (str(caught),), {}
        outputs = {name: memory.read(views[name].address, views[name].span) for name in info.outputs}
        return tuple(f.kind for f in result.findings), outputs

    def check(self, position: int, mutant: Decoded) -> Verdict:
        """Run the mutation until it is found, and ask the proof of waits about it."""
        instruction = self.program.instructions[position]
        changed = list(self.program.instructions)
        changed[position] = replace(mutant, address=instruction.address)
        program = replace(self.program, instructions=tuple(changed))
        name = f"{instruction.address:#x} {instruction.text} -> {mutant.text}"
        outcome, found, clashes = self._outcome(program, instruction.address, name)
        (code,) = (c for c in self.codes if c[0].address <= instruction.address <= c[-1].address)
        text = {instruction.address: mutant.text}
        unproved = verify(changed_in(code, text))
        runs = self.unused if unproved and outcome in (IDLE, COVERED) else []
        here = [u for unused in runs for u in verify(changed_in(code, unused | text))]
        loads = "lgkmcnt" not in instruction.text and not any("lds" in i.modifiers for i in code)
        sure = instruction.base == "s_waitcnt" and (loads or instruction.address in needless(code))
        return Verdict(name, instruction.base == "s_barrier", outcome, found, unproved, tuple(here), clashes, sure)

    def _outcome(self, program: Program, address: int, name: str) -> tuple[str, str, int]:
        reached = [n for n, effects in enumerate(self.effects) if address in effects.executed]
        epochs = Epochs()
        for n in reached:
            for seed in self.seeds:
                findings, outputs = self.run(program, self.shapes[n], seed, [_First(), *([] if seed else [epochs])])
                if findings:
                    return FOUND, findings[0], 0
                assert outputs == self.wanted[n], f"{name} changes results, and nobody notices"
        effective = any(address in self.effects[n].effective for n in reached)
        return ((COVERED if effective else IDLE) if reached else UNUSED), "", epochs.clashes


def changed_in(code: Code, texts: Mapping[int, str]) -> Code:
    """The code with other texts at these addresses."""
    return [replace(i, text=texts[i.address]) if i.address in texts else i for i in code]


def deletions(program: Program) -> Iterator[tuple[int, Decoded]]:
    """Every wait and barrier, and a no-op in its place."""
    for position, instruction in enumerate(program.instructions):
        if instruction.base in ("s_waitcnt", "s_barrier"):
            yield position, NOP


def weakenings(program: Program) -> Iterator[tuple[int, Decoded]]:
    """Every wait, with each of its counts one higher."""
    for position, instruction in enumerate(program.instructions):
        if instruction.base != "s_waitcnt":
            continue
        bits = instruction.simm16
        vm, lgkm = bits & 0xF | bits >> 14 << 4, bits >> 8 & 0xF
        for more_vm, more_lgkm in ((vm + 1, lgkm), (vm, lgkm + 1)):
            if (more_vm, more_lgkm) <= (0x3F, 0xF) and more_vm <= 0x3F and more_lgkm <= 0xF:
                new = bits & 0x30F0 & ~0xF | more_vm & 0xF | more_vm >> 4 << 14 | more_lgkm << 8 | bits & 0x70
                text = f"s_waitcnt vmcnt({more_vm}) lgkmcnt({more_lgkm})"
                yield position, decode(0, new.to_bytes(2, "little") + b"\x8c\xbf", text)
