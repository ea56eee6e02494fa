"""What a `for` runs over: `range` with bounds known at run time, and the tiles of a persistent kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hkc.dialects.types import IndexType
from hkc.frontend import arithmetic, syntax
from hkc.frontend.expressions import Expressions
from hkc.frontend.grid import once
from hkc.frontend.program import Value
from hkc.frontend.scope import Meaning, Operand
from hkc.support.errors import count, error

SPELLING = "for k in range(start, stop, step):"


@dataclass(frozen=True)
class Walk:
    """A counted loop: its bounds, and what its variables stand for, made from the value that counts."""

    bounds: tuple[Value, Value, Value]
    bind: Callable[[Value], Sequence[Meaning]]


def walk(x: Expressions, loop: syntax.For) -> Walk:
    """The loop that a `for` line means."""
    called = loop.iterable
    if not (isinstance(called, syntax.Call) and isinstance(called.callee, syntax.Name)):
        raise error("HK201", "a loop runs over a range", called.span, hint=SPELLING)
    if called.callee.name == "tiles":
        return _tiles(x, loop, called)
    if called.callee.name != "range":
        raise error("HK201", "a loop runs over a range", called.span, hint=SPELLING)
    if len(loop.variables) != 1:
        raise error(
            "HK214",
            f"{count(len(loop.variables), 'name')} for 1 value",
            *(v.span for v in loop.variables),
            hint="for k in range(…):",
        )
    return _range(x, called)


def _range(x: Expressions, called: syntax.Call) -> Walk:
    for keyword in called.keywords:
        message = f"the arguments of `range` have no names, as `{keyword.name.name}` has here"
        raise error("HK211", message, keyword.name.span, hint="range(start, stop, step)")
    if not 1 <= len(called.arguments) <= 3:
        raise error("HK211", "`range` takes one to three indices", called.span, hint="range(start, stop, step)")
    given = [x.operand(a) for a in called.arguments]
    start = Operand(0, called) if len(given) == 1 else given[0]
    stop = given[0] if len(given) == 1 else given[1]
    ends = arithmetic.index(x.b, start), arithmetic.index(x.b, stop)
    step = given[2] if len(given) == 3 else Operand(1, called)
    if step.meaning == 0:
        hint = "a step above 0 counts up, one below 0 counts down"
        raise error("HK436", "the step of a range can't be 0", step.span, hint=hint)
    if isinstance(step.meaning, int) and step.meaning > 0:
        return Walk((*ends, x.b.constant(step.meaning, IndexType(), step.span)), lambda i: [i])
    return _counted(x, Operand(ends[0], called), Operand(ends[1], called), step)


def _counted(x: Expressions, start: Operand, stop: Operand, step: Operand) -> Walk:
    """A range that may run backwards, as one that counts its iterations: i = start + n * step."""
    place = step.expr

    def compute(op: str, a: Operand, b: Operand) -> Operand:
        return Operand(arithmetic.binary(x.b, op, a, b, place.span), place)

    zero, one = Operand(0, place), Operand(1, place)
    if not isinstance(step.meaning, int) or isinstance(step.meaning, bool):
        step = Operand(arithmetic.index(x.b, step), place)
    trips = compute("cdiv", compute("-", start, stop), compute("max", compute("-", zero, step), one))
    if isinstance(step.meaning, Value):
        forwards = compute("cdiv", compute("-", stop, start), compute("max", step, one))
        trips = _select(x, compute("<", step, zero), trips, zero)
        trips = _select(x, compute(">", step, zero), forwards, trips)
    lower, upper, each = (arithmetic.index(x.b, o) for o in (zero, compute("max", trips, zero), one))
    return Walk((lower, upper, each), lambda n: [compute("+", start, compute("*", Operand(n, place), step)).meaning])


def _select(x: Expressions, condition: Operand, yes: Operand, no: Operand) -> Operand:
    return Operand(arithmetic.select(x.b, condition, yes, no, no.span), no.expr)


def _tiles(x: Expressions, loop: syntax.For, called: syntax.Call) -> Walk:
    """`for m, n in tiles(a, b, workgroups=w)`: a fixed number of workgroups share all tiles of a grid."""
    spelling = "for m, n in tiles(extent, extent, workgroups=304, order=rows|chiplet):"
    once(called)
    workgroups = [k.value for k in called.keywords if k.name.name == "workgroups"]
    if not workgroups:
        raise error("HK211", "`tiles` needs `workgroups`, how many share the tiles", called.span, hint=spelling)
    if len(loop.variables) != len(called.arguments):
        names, found = count(len(loop.variables), "name"), count(len(called.arguments), "extent")
        raise error("HK214", f"{names} for {found}", *(v.span for v in loop.variables), hint=spelling)
    grid = [arithmetic.index(x.b, x.operand(a)) for a in called.arguments]
    extents = [Operand(extent, a) for extent, a in zip(grid, called.arguments, strict=True)]
    order = x.grid.order(x, [k for k in called.keywords if k.name.name != "workgroups"], spelling)
    first = x.grid.tile_ids(x, syntax.Call(called.span, called.callee, tuple(workgroups), ()))
    total = extents[0]
    for extent in extents[1:]:
        total = Operand(arithmetic.binary(x.b, "*", total, extent, called.span), called)
    share = arithmetic.index(x.b, x.operand(workgroups[0]))

    def bind(counter: Value) -> Sequence[Meaning]:
        return x.b.tile_op("tile_at", [counter, *grid], called.span, {}, **order)

    bounds = (arithmetic.index(x.b, Operand(first, called)), arithmetic.index(x.b, total), share)
    return Walk(bounds, bind)
