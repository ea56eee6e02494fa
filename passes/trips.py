"""The trips of a loop whose tiles come in ahead of time: what is emitted before, inside and after the new loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hkc.dialects import build
from hkc.dialects.forms import clone
from hkc.dialects.load import create
from hkc.dialects.wave.sync import AsyncMark, Barrier, Wait, WaitAsync
from hkc.support.mlir import ir

LOOPS = ("scf.for", "scf.while")
TRIPS = "hkc.trips"
"""Attribute of a loop: how many trips of the source each of its own is."""


@dataclass(frozen=True)
class Parts:
    """A loop body taken apart: what brings tiles closer, what then fills LDS with them, and the rest.

    `ahead` holds fetches into registers and direct copies with the arithmetic that both need; `write` holds what takes
    fetched values to LDS. `first` ops of `compute` end with the first that reads LDS: only behind it all waves are done
    with the buffers of the trip before. `copies`: does anything go to LDS without registers?
    """

    ahead: tuple[Any, ...]
    write: tuple[Any, ...]
    compute: tuple[Any, ...]
    first: int
    copies: bool


def meet(pending: int | None) -> None:
    """Let the waves meet: what came into LDS is there for all, what was read is free. All but the `pending` last groups
    of copies have arrived (None: there are none). Said here once per trip, since found one by one the barriers would
    wait for copies that have just begun."""
    if pending is not None:
        create(WaitAsync, pending=pending)
    create(Wait, lgkm=0)
    create(Barrier)


class Trips:
    """Emits a pipelined loop at the insertion point.

    `buffers` maps the loop's LDS buffers to those of each stage, the first of which is the loop's own; with a single
    stage, tiles wait in registers. Tiles are fetched `distance` trips before they are computed with, and are in LDS
    `lead` trips before.
    """

    def __init__(self, loop: Any, parts: Parts, buffers: list[dict[Any, Any]], distance: int) -> None:
        self.parts, self.buffers, self.distance = parts, buffers, distance
        self.block = loop.regions[0].blocks[0]
        self.lower, self.upper, self.step = list(loop.operands)[:3]
        self.starts = list(loop.operands)[3:]
        self.lead = max(1, len(buffers) - 1)
        self.unrolled = len(buffers) if len(buffers) > 1 else distance
        fetched = {r for op in parts.ahead for r in op.results}
        self.staged = list(dict.fromkeys(o for w in parts.write for o in w.operands if o in fetched))

    def emit(self) -> list[Any]:
        """The loop that takes `unrolled` trips at a time, and the trips that are left; what the last one carries on."""
        through = build.sub(build.sub(self.upper, self.lower), 1)
        whole = build.binary("divsi", through, self.step)
        self.last = build.add(self.lower, build.mul(whole, self.step))
        count = build.add(whole, 1)
        rest = build.binary("remsi", count, self.unrolled)
        end = build.add(self.lower, build.mul(build.sub(count, rest), self.step))
        waiting = self._begin()
        ends = self._loop(end, [*self.starts, *(v for tile in waiting for v in tile)])
        waiting = self._tiles(ends[len(self.starts) :])
        carried = ends[: len(self.starts)]
        for number in range(self.unrolled - 1):
            carried = self._left_over(number, rest, end, carried, waiting)
        return carried

    def _begin(self) -> list[list[Any]]:
        """Bring in the first tiles; those that wait in registers."""
        for number in range(self.lead):
            self._write(self._fetch(self._clamped(self.lower, number), number), number)
        return [self._fetch(self._clamped(self.lower, n), n) for n in range(self.lead, self.distance)]

    def _loop(self, end: Any, starts: list[Any]) -> list[Any]:
        kinds = [s.type for s in starts]
        bounds = [self.lower, end, build.mul(self.step, self.unrolled)]
        made = ir.Operation.create("scf.for", results=kinds, operands=[*bounds, *starts], regions=1)
        made.attributes[TRIPS] = build.int_attr(self.unrolled)
        body = made.regions[0].blocks.append(self.lower.type, *kinds)
        at, *values = body.arguments
        carried, waiting = values[: len(self.starts)], self._tiles(values[len(self.starts) :])
        with ir.InsertionPoint(body):
            for number in range(self.unrolled):
                meet(self.distance - 1 if self.parts.copies else None)
                following = self._clamped(at, number + self.distance)
                here = self._clamped(at, number, known=True)
                carried, fetched = self._trip(here, carried, number, following)
                waiting.append(fetched)
                self._release()
                self._write(waiting.pop(0), number + self.lead)
            build.op("scf.yield", [*carried, *(v for tile in waiting for v in tile)])
        return list(made.results)

    def _left_over(self, number: int, rest: Any, end: Any, carried: list[Any], waiting: list[list[Any]]) -> list[Any]:
        """One of the trips that the loop left, if there are so many: its tiles are here already."""

        def trip() -> list[Any]:
            meet(max(0, self.distance - 1 - number) if self.parts.copies else None)
            ends, _ = self._trip(self._clamped(end, number, known=True), carried, number, None)
            if len(self.buffers) == 1 and number + 2 < self.unrolled:
                self._release()
                self._write(waiting[number], number + self.lead)
            return ends

        kinds = [s.type for s in self.starts]
        return build.if_else(build.cmp("sgt", rest, number), kinds, trip, (lambda: carried) if kinds else None)

    def _tiles(self, values: list[Any]) -> list[list[Any]]:
        size = len(self.staged)
        return [values[i : i + size] for i in range(0, len(values), size)] if size else []

    def _clamped(self, at: Any, trips: int, known: bool = False) -> Any:
        """The loop's variable some trips after `at`, unless it is `known` to be one at most that of the last trip."""
        later = build.add(at, build.mul(self.step, trips)) if trips else at
        return later if known else build.binary("minsi", later, self.last)

    def _buffers(self, number: int) -> dict[Any, Any]:
        """The LDS buffers of the `number`th trip."""
        return self.buffers[number % len(self.buffers)]

    def _fetch(self, at: Any, number: int) -> list[Any]:
        """Start to bring in the tiles of the trip with variable `at`, the `number`th; what is fetched to registers."""
        values = {self.block.arguments[0]: at, **self._buffers(number)}
        clone(self.parts.ahead, values)
        if self.parts.copies:
            create(AsyncMark)
        return [values[s] for s in self.staged]

    def _write(self, fetched: list[Any], number: int) -> None:
        """Take what was fetched for a trip to LDS."""
        clone(
            self.parts.write,
            {**dict(zip(self.staged, fetched, strict=True)), **self.buffers[number % len(self.buffers)]},
        )

    def _release(self) -> None:
        """Where there is but one buffer, it is free when all waves have read it."""
        if len(self.buffers) == 1:
            meet(None)

    def _trip(self, at: Any, carried: list[Any], number: int, following: Any | None) -> tuple[list[Any], list[Any]]:
        """Compute the trip `at`, the `number`th, and fetch the tiles of the trip `following`, if any; the values that
        it carries on, and what was fetched."""
        values = {
            **dict(zip(self.block.arguments, [at, *carried], strict=True)),
            **self.buffers[number % len(self.buffers)],
        }
        clone(self.parts.compute[: self.parts.first], values)
        fetched = [] if following is None else self._fetch(following, number + self.distance)
        clone(self.parts.compute[self.parts.first :], values)
        return [values.get(o, o) for o in list(self.block.operations)[-1].operands], fetched
