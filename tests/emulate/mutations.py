"""Waits and barriers taken out of the machine code of correct kernels, or weakened, one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.api import CompiledKernel
from hkc.emulate import Finding, Memory, Observer, Program, launch
from hkc.emulate.checks import CHECKS, REMARKS, name_of, observers
from hkc.emulate.decode import Decoded, decode
from hkc.emulate.registry import Context, Step
from hkc.emulate.waves import Waves
from hkc.machine.abi import GlobalParam, View, pack
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.support.extents import evaluate

NOP = decode(0, bytes([0, 0, 0x80, 0xBF]), "s_nop 0")
UNUSED, IDLE, COVERED = "never executed", "nothing was outstanding", "what it orders is ordered by others, too"

Outputs = dict[str, bytes]


class Effects(Observer):
    """Which waits had something to wait for, and which barriers and waits were executed at all."""

    def __init__(self) -> None:
        self.executed: set[int] = set()
        self.effective: set[int] = set()

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        if instruction.base not in ("s_waitcnt", "s_barrier"):
            return step

        def run(w: Waves) -> Any:
            before = w.state.outstanding.pending()
            jump = step(w)
            self.executed.add(instruction.address)
            if instruction.base == "s_barrier" or w.state.outstanding.pending() != before:
                self.effective.add(instruction.address)
            return jump

        return run


@dataclass
class Subject:
    """A correct kernel and the shapes it runs with; `skew` in a shape says by how many elements its tensors are off
    an aligned address, which leads to another entry point. `harmless` fills with the reason for each harmless mutation.
    """

    kernel: CompiledKernel
    shapes: tuple[Mapping[str, int], ...]
    seeds: tuple[int, ...] = (0, 1)
    harmless: dict[str, str] = field(default_factory=dict)
    found: int = 0

    def __post_init__(self) -> None:
        self.program = Program.load(self.kernel.hsaco, lines=self.kernel.binary.lines)
        self.effects, self.wanted = [], []
        for shape in self.shapes:
            effects = Effects()
            findings, outputs = self.run(self.program, shape, 0, [effects])
            assert findings == (), findings
            self.effects.append(effects)
            self.wanted.append(outputs)

    def run(
        self, program: Program, shape: Mapping[str, int], seed: int, more: list[Observer] | None = None
    ) -> tuple[tuple[Finding, ...], Outputs]:
        """Errors that checkers find, and what the kernel wrote."""
        info, memory, rng = self.kernel.info, Memory(), np.random.default_rng(0)
        views: dict[str, View] = {}
        for p in info.params:
            assert isinstance(p, GlobalParam)
            extents = tuple(evaluate(d, shape) for d in p.dims)
            array: NDArray[Any] = rng.integers(-3, 4, extents).astype(dtype(p.dtype).numpy)
            at = memory.allocate(array.nbytes, p.name, skew=shape.get("skew", 0) * array.itemsize)
            if p.name not in info.outputs:
                memory.write(at, array)
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
                observers=[*observers(CHECKS), *(more or [])],
                limit=1 << 18,
            )
        except HkcError as stopped:
            return (Finding("fault", 0, "", str(stopped), 0, 0),), {}
        outputs = {name: memory.read(views[name].address, views[name].span) for name in info.outputs}
        return tuple(f for f in result.findings if name_of(f) not in REMARKS), outputs

    def check(self, position: int, mutant: Decoded) -> None:
        """The mutation is found, or has no effect for a reason that is known."""
        instruction = self.program.instructions[position]
        changed = list(self.program.instructions)
        changed[position] = replace(mutant, address=instruction.address)
        program = replace(self.program, instructions=tuple(changed))
        name = f"{instruction.address:#x} {instruction.text} -> {mutant.text}"
        reached = [n for n, effects in enumerate(self.effects) if instruction.address in effects.executed]
        for n in reached:
            shape, wanted = self.shapes[n], self.wanted[n]
            for seed in self.seeds:
                findings, outputs = self.run(program, shape, seed)
                if findings:
                    self.found += 1
                    return
                assert outputs == wanted, f"{name} changes results, and nobody notices"
        effective = any(instruction.address in self.effects[n].effective for n in reached)
        self.harmless[name] = (COVERED if effective else IDLE) if reached else UNUSED


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
