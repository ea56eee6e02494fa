"""How a launch is watched: one mechanism for checkers, counters, traces, breakpoints and memory watches.

An observer overrides what it wants to see. Steps are wrapped when they are built and memory operations ask whether
anybody listens, so that a launch without observers pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.memory import Mask, Words
from hkc.emulate.outstanding import Counter, Happen, Picked, Rows

if TYPE_CHECKING:
    from hkc.emulate.decode import Decoded
    from hkc.emulate.program import Program
    from hkc.emulate.registry import Context, Step
    from hkc.emulate.state import State
    from hkc.emulate.sync import Meeting
    from hkc.emulate.waves import Waves

Kind = Literal["load", "store", "atomic"]
SpaceName = Literal["global", "lds", "scratch"]


@dataclass
class Access:
    """A memory operation, or one part of it, as it is issued: who, where, and how many bytes per lane.

    `rows` are waves inside the batch; `addresses` and `mask` are [rows, lanes] (scalar loads: one lane). Addresses of
    LDS and scratch are byte offsets in the workgroup's or the lane's own. `words` is what a store writes. An observer
    may clear lanes of `mask`: they then read 0 and write nothing.
    """

    by: Decoded
    space: SpaceName
    kind: Kind
    counter: Counter
    rows: Rows
    addresses: NDArray[np.uint64]
    mask: Mask
    nbytes: int
    words: Words | None = None

    @property
    def coherent(self) -> bool:
        """Atomic as the memory model has it: loads and stores of device or system scope are, too."""
        return self.kind == "atomic" or self.by.flag("sc1")


class Observer:
    """Sees what a launch does. All methods may be overridden; none has to be."""

    def start(self, program: Program) -> None:
        """A launch of `program` begins."""

    def begin(self, state: State) -> None:
        """A batch of workgroups begins; all registers are set up."""

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """What to execute in place of `step`, which executes `instruction`; called once per instruction and launch."""
        return step

    def access(self, state: State, access: Access) -> Happen | None:
        """Memory operations are issued. What is returned is called after they happened, like `Outstanding.defer`'s."""
        return None

    def arrive(self, state: State, rows: Rows, by: Decoded) -> None:
        """Waves reach a barrier."""

    def release(self, state: State, group: int) -> None:
        """All live waves of a workgroup (counted inside the batch) have reached a barrier, which opens."""

    def meet(self, state: State, meeting: Meeting) -> None:
        """A wave comes to a barrier or a semaphore of global wave sync, or goes on from there."""

    def leave(self, state: State, rows: Rows) -> None:
        """Waves end."""


def listeners(observers: Iterable[Observer]) -> tuple[Observer, ...]:
    """Those that look at memory operations."""
    return tuple(o for o in observers if type(o).access is not Observer.access)


def announce(
    w: Waves,
    space: SpaceName | Literal["flat"],
    kind: Kind,
    counter: Counter,
    addresses: NDArray[np.uint64],
    mask: Mask,
    nbytes: int,
    words: Words | None = None,
) -> tuple[Mask, tuple[Happen, ...]]:
    """Show an operation to all listeners: the lanes that they leave, and what to call after it happened."""
    if space == "flat":
        return _announce_flat(w, kind, counter, addresses, mask, nbytes, words)
    access = Access(w.by, space, kind, counter, w.rows, addresses, mask, nbytes, words)
    found = [listener.access(w.state, access) for listener in w.state.listeners]
    return access.mask, tuple(done for done in found if done is not None)


def _announce_flat(
    w: Waves,
    kind: Kind,
    counter: Counter,
    addresses: NDArray[np.uint64],
    mask: Mask,
    nbytes: int,
    words: Words | None,
) -> tuple[Mask, tuple[Happen, ...]]:
    from hkc.emulate.operands import PRIVATE_BASE

    scratch = addresses >> np.uint64(32) == PRIVATE_BASE >> 32
    parts: tuple[tuple[SpaceName, Mask, NDArray[np.uint64]], ...] = (
        ("scratch", scratch, addresses & np.uint64(0xFFFFFFFF)), ("global", ~scratch, addresses),
    )  # fmt: skip
    left, after = np.zeros_like(mask), list[Happen]()
    for space, here, at in parts:
        if (mask & here).any():
            kept, done = announce(w, space, kind, counter, at, mask & here, nbytes, words)
            left |= kept
            after += done
    return left, tuple(after)


def followed(happen: Happen, after: tuple[Happen, ...]) -> Happen:
    """`happen`, then all of `after`."""
    if not after:
        return happen

    def run(rows: Rows, picked: Picked) -> None:
        happen(rows, picked)
        for done in after:
            done(rows, picked)

    return run


def before(step: Step, look: Callable[[Waves], None]) -> Step:
    """A step that is looked at before it is executed."""

    def run(w: Waves) -> NDArray[np.int64] | None:
        look(w)
        jump: NDArray[np.int64] | None = step(w)
        return jump

    return run
