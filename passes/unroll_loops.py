"""Take several trips of a loop at a time, where the kernel's author asks for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from hkc.dialects import build
from hkc.dialects.forms import clone, kernels, walk
from hkc.passes.define import Pass
from hkc.passes.explain import Option, explain
from hkc.passes.lds_accesses import trips
from hkc.passes.locate import refuse
from hkc.passes.requests import requested
from hkc.passes.trips import LOOPS, TRIPS
from hkc.support.mlir import ir
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """With `unroll=N` every innermost `for` loop takes N trips of the source at a time; a second loop takes those that
    are left. Loads of later trips may then overlap with the work of earlier ones.

    Before::

        func.func @k(%r: !hkc_wave.descriptor, %n: i32) attributes {hkc.kernel, hkc.hints = {unroll = 2 : i64}} {
          %c0 = arith.constant 0 : i32
          %c64 = arith.constant 64 : i32
          scf.for %k = %c0 to %n step %c64 : i32 {
            %v = "hkc_wave.buffer_load"(%r, %k) : (!hkc_wave.descriptor, i32) -> vector<4xf32>
            "hkc_wave.buffer_store"(%v, %r, %k) : (vector<4xf32>, !hkc_wave.descriptor, i32) -> ()
          }
          return
        }

    After::

        scf.for %i
        %v = "hkc_wave.buffer_load"(%r, %i)
        "hkc_wave.buffer_store"(%v, %r, %i)
        %j = arith.addi %i
        %w = "hkc_wave.buffer_load"(%r, %j)
        "hkc_wave.buffer_store"(%w, %r, %j)
        scf.for %l
        %x = "hkc_wave.buffer_load"(%r, %l)
    """

    name: ClassVar[str] = "unroll_loops"
    needs: ClassVar[frozenset[str]] = frozenset({"waves", "pipelined"})

    def run(self, module: Any, chip: Chip) -> None:
        for function in kernels(module):
            wanted = requested(function, "unroll")
            if wanted is not None:
                _run(function, wanted)


def _run(function: Any, wanted: int) -> None:
    loops = [op for op in walk(function) if op.name == "scf.for"]
    innermost = [op for op in loops if not any(inner.name in LOOPS for inner in walk(op))]
    if not innermost:
        raise _refused(function, wanted, "no `for` loop of this kernel is left", "leave it out")
    for loop in innermost:
        taken = int(ir.IntegerAttr(loop.attributes[TRIPS]).value) if TRIPS in loop.attributes else 1
        if wanted % taken:
            why = f"its tiles come in ahead of time, for {taken} trips at a time"
            raise _refused(loop, wanted, why, f"a multiple of {taken}, or other `stages`")
        known = trips(loop)
        if known is not None and known * taken < wanted:
            raise _refused(loop, wanted, f"the loop has {known * taken} trips", "a smaller number")
        explain(function, loop, "loop", Option(f"unrolled, {wanted} trips at a time"))
        if wanted > taken:
            _unroll(loop, wanted // taken)


def _refused(op: Any, wanted: int, why: str, hint: str) -> Exception:
    return refuse(op, "HK450", f"`unroll={wanted}` can't be honoured: {why}", hint=hint)


def _unroll(loop: Any, factor: int) -> None:
    """Replace a loop by one whose body is `factor` trips and one for the trips that are left."""
    lower, upper, step, *starts = loop.operands
    with ir.InsertionPoint(loop), loop.location:
        count = build.binary("ceildivsi", build.sub(upper, lower), step)
        count = build.binary("maxsi", count, 0)
        whole = build.sub(count, build.binary("remsi", count, factor))
        end = build.add(lower, build.mul(whole, step))
        carried = _rounds(loop, [lower, end, build.mul(step, factor)], starts, factor)
        rest = loop.operation.clone()
    rest.operands[0] = end
    for i, value in enumerate(carried, 3):
        rest.operands[i] = value
    for before, after in zip(loop.results, rest.results, strict=True):
        before.replace_all_uses_with(after)
    loop.erase()


def _rounds(loop: Any, bounds: list[Any], starts: list[Any], factor: int) -> list[Any]:
    """The loop of whole rounds, with what it carries on."""
    kinds = [s.type for s in starts]
    old = loop.regions[0].blocks[0]
    *body, end = (op.operation for op in old.operations)
    kept = {name: loop.attributes[name] for name in loop.attributes}
    made = ir.Operation.create("scf.for", kinds, [*bounds, *starts], kept, regions=1)
    block = made.regions[0].blocks.append(bounds[0].type, *kinds)
    at, *carried = block.arguments
    with ir.InsertionPoint(block):
        for number in range(factor):
            here = build.add(at, build.mul(loop.operands[2], number)) if number else at
            values = dict(zip(old.arguments, [here, *carried], strict=True))
            clone(body, values)
            carried = [values.get(v, v) for v in end.operands]
        build.op("scf.yield", carried)
    return list(made.results)
