"""Global wave sync: barriers and semaphores between the waves of a launch, see `sync`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hkc.emulate.decode import M0, Decoded
from hkc.emulate.registry import Context, Step, op
from hkc.emulate.semantics.control import QUEUE
from hkc.emulate.sync import WaveSync
from hkc.emulate.waves import Waves

Act = Callable[[WaveSync, int, int, int], bool | None]
"""(counters, resource, wave, value) → False: the wave has to wait."""

_ACTS: dict[str, Act] = {
    "init": lambda sync, resource, wave, value: sync.init(resource, wave, value),
    "sema_v": lambda sync, resource, wave, value: sync.release(resource, wave, 1),
    "sema_br": lambda sync, resource, wave, value: sync.release(resource, wave, value),
    "sema_p": lambda sync, resource, wave, value: sync.take(resource, wave),
    "sema_release_all": lambda sync, resource, wave, value: sync.release_all(resource, wave),
    "barrier": lambda sync, resource, wave, value: sync.arrive(resource, wave, value),
}


def _until_nobody_passes(w: Waves, passed: NDArray[np.bool_], attempt: Callable[[int, int], bool | None]) -> None:
    """Each wave tries, and again after another of them has let somebody pass."""
    version = -1
    while version != w.state.sync.version:
        version = w.state.sync.version
        for i in np.nonzero(~passed)[0].tolist():
            passed[i] = attempt(i, w.state.first_wave + int(w.rows[i])) is not False


def _tell(w: Waves) -> None:
    """Show observers who met whom."""
    for meeting in w.state.sync.meetings:
        for observer in w.state.observers:
            observer.meet(w.state, meeting)
    w.state.sync.meetings.clear()


def _build(act: Act) -> Callable[[Decoded, Context], Step]:
    """The resource is m0[21:16] plus the offset; the value is that of the first active lane."""

    def build(instruction: Decoded, context: Context) -> Step:
        register = context.vector(instruction.operands[0]) if instruction.operands else None
        offset, following = instruction.number("offset"), instruction.address + instruction.size

        def step(w: Waves) -> NDArray[np.int64] | None:
            resources = ((w.scalar(M0) >> np.uint32(16)) + np.uint32(offset)) & np.uint32(63)
            values = np.zeros(w.count, np.uint32)
            if register is not None:
                values = w.read(register)[np.arange(w.count), w.mask.argmax(axis=1)]
            if w.taint is not None or w.scalar_taint is not None:
                w.consume("a global wave sync")
            passed = np.zeros(w.count, np.bool_)
            _until_nobody_passes(w, passed, lambda i, wave: act(w.state.sync, int(resources[i]), wave, int(values[i])))
            _tell(w)
            return None if passed.all() else np.where(passed, following, QUEUE)

        return step

    return build


for _name, _act in _ACTS.items():
    op(f"ds_gws_{_name}")(_build(_act))
