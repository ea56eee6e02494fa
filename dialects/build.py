"""Short names for the builtin ops that lowerings emit, at the current insertion point and location. Worker only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hkc.dialects.translate import element_name, element_type
from hkc.support.dtypes import DTYPES
from hkc.support.mlir import ir

CMP = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
"""Predicates of `arith.cmpi`."""


def int_type(bits: int) -> Any:
    """`i<bits>`."""
    return ir.IntegerType.get_signless(bits)


def vector_type(size: int, element: Any) -> Any:
    """`vector<size x element>`."""
    return ir.VectorType.get([size], element)


def op(name: str, operands: Sequence[Any] = (), results: Sequence[Any] = (), **attributes: Any) -> Any:
    """Any op by name; its single result, or the list of its results where it has none or several."""
    made = ir.Operation.create(name, results=list(results), operands=list(operands), attributes=attributes)
    return made.results[0] if len(made.results) == 1 else list(made.results)


def int_attr(value: int, bits: int = 64) -> Any:
    """An integer attribute."""
    return ir.IntegerAttr.get(int_type(bits), value)


def is_float(kind: Any) -> bool:
    """Whether an MLIR element type is one that `arith` computes with as a float."""
    return str(kind) in ("f64", "f32", "f16", "bf16")


def carrier(kind: Any) -> Any:
    """What registers hold for an MLIR element type: narrow floats are codes in i8."""
    return int_type(8) if DTYPES[element_name(kind)].is_narrow else kind


def constant(value: int, kind: Any) -> Any:
    """An integer or index constant of MLIR type `kind`."""
    return op("arith.constant", results=[kind], value=ir.IntegerAttr.get(kind, value))


def i1(value: bool) -> Any:
    """A constant i1."""
    return constant(int(value), int_type(1))


def i32(value: int) -> Any:
    """A constant i32."""
    return constant(value, int_type(32))


def i64(value: int) -> Any:
    """A constant i64."""
    return constant(value, int_type(64))


def index(value: int) -> Any:
    """A constant index."""
    return constant(value, ir.IndexType.get())


def zero(kind: Any) -> Any:
    """The zero of a scalar or vector type."""
    if isinstance(kind, ir.VectorType):
        value = ir.DenseElementsAttr.get_splat(kind, _zero_attr(kind.element_type))
        return op("arith.constant", results=[kind], value=value)
    return op("arith.constant", results=[kind], value=_zero_attr(kind))


def _zero_attr(kind: Any) -> Any:
    return (
        ir.IntegerAttr.get(kind, 0) if isinstance(kind, (ir.IntegerType, ir.IndexType)) else ir.FloatAttr.get(kind, 0.0)
    )


def binary(name: str, a: Any, b: Any) -> Any:
    """`arith.<name>` of two values of one type; an int operand becomes a constant of the other's type."""
    a, b = _same(a, b)
    return op(f"arith.{name}", [a, b], [a.type])


def _same(a: Any, b: Any) -> tuple[Any, Any]:
    if isinstance(b, int):
        return a, _integer(b, a.type)
    return (_integer(a, b.type), b) if isinstance(a, int) else (a, b)


def _integer(value: int, kind: Any) -> Any:
    return number(value, kind) if isinstance(kind, ir.VectorType) else constant(value, kind)


def add(a: Any, b: Any) -> Any:
    """a + b; a zero constant costs nothing."""
    if isinstance(b, int) and b == 0:
        return a
    return binary("addi", a, b)


def sub(a: Any, b: Any) -> Any:
    """a - b."""
    return binary("subi", a, b)


def mul(a: Any, b: Any) -> Any:
    """a * b; a factor of one costs nothing."""
    if isinstance(b, int) and b == 1:
        return a
    return binary("muli", a, b)


def cmp(predicate: str, a: Any, b: Any) -> Any:
    """`arith.cmpi` with a predicate of `CMP`."""
    a, b = _same(a, b)
    return op("arith.cmpi", [a, b], [like(a.type, int_type(1))], predicate=int_attr(CMP[predicate]))


FLOAT_CMP = {
    "oeq": 1,
    "ogt": 2,
    "oge": 3,
    "olt": 4,
    "ole": 5,
    "ord": 7,
    "ugt": 9,
    "uge": 10,
    "ult": 11,
    "une": 13,
    "uno": 14,
}
"""Predicates of `arith.cmpf` that lowerings use."""


def cmpf(predicate: str, a: Any, b: Any) -> Any:
    """`arith.cmpf` with a predicate of `FLOAT_CMP`, on scalars or vectors."""
    return op("arith.cmpf", [a, b], [like(a.type, int_type(1))], predicate=int_attr(FLOAT_CMP[predicate]))


def like(kind: Any, element: Any) -> Any:
    """A type of `element` shaped like a scalar or vector type."""
    return vector_type(kind.shape[0], element) if isinstance(kind, ir.VectorType) else element


def number(value: float, kind: Any) -> Any:
    """A constant of a scalar or vector type; integers from plain ints, taken modulo their width."""
    element = kind.element_type if isinstance(kind, ir.VectorType) else kind
    if isinstance(element, ir.IntegerType):
        wrapped = int(value) % (1 << element.width)
        one = ir.IntegerAttr.get(element, wrapped - (1 << element.width) if wrapped >> (element.width - 1) else wrapped)
    else:
        one = ir.FloatAttr.get(element, float(value))
    whole = ir.DenseElementsAttr.get_splat(kind, one) if isinstance(kind, ir.VectorType) else one
    return op("arith.constant", results=[kind], value=whole)


def both(*conditions: Any) -> Any:
    """The conjunction of i1 values; true where there are none."""
    if not conditions:
        return i1(True)
    result = conditions[0]
    for c in conditions[1:]:
        result = binary("andi", result, c)
    return result


def select(condition: Any, a: Any, b: Any) -> Any:
    """a where the i1 `condition` holds, else b."""
    return op("arith.select", [condition, a, b], [a.type])


def to_index(value: Any) -> Any:
    """A signed integer as index."""
    return op("arith.index_cast", [value], [ir.IndexType.get()])


def to_i64(value: Any) -> Any:
    """An index, or a narrower signed integer, as i64."""
    if isinstance(value.type, ir.IndexType):
        return op("arith.index_cast", [value], [int_type(64)])
    return value if value.type.width == 64 else op("arith.extsi", [value], [int_type(64)])


def to_i32(value: Any) -> Any:
    """The low 32 bits of an index or an i64."""
    if isinstance(value.type, ir.IndexType):
        return op("arith.index_cast", [value], [int_type(32)])
    return value if value.type.width == 32 else op("arith.trunci", [value], [int_type(32)])


def clamp(value: Any, low: int, high: int) -> Any:
    """The value held between two constants (signed)."""
    return binary("minsi", binary("maxsi", value, low), high)


def extract(vector: Any, position: int) -> Any:
    """One element of a vector."""
    return op(
        "vector.extract", [vector], [vector.type.element_type], static_position=ir.DenseI64ArrayAttr.get([position])
    )


def pack(elements: Sequence[Any]) -> Any:
    """A vector of these elements."""
    return op("vector.from_elements", elements, [vector_type(len(elements), elements[0].type)])


def slice_vector(vector: Any, start: int, size: int) -> Any:
    """`size` neighbouring elements of a vector, as a vector."""
    return pick(vector, range(start, start + size))


def pick(vector: Any, positions: Sequence[int]) -> Any:
    """Elements of a vector, in this order, as a vector."""
    if list(positions) == list(range(vector.type.shape[0])):
        return vector
    mask = ir.DenseI64ArrayAttr.get(list(positions))
    return op("vector.shuffle", [vector, vector], [vector_type(len(positions), vector.type.element_type)], mask=mask)


def concat(vectors: Sequence[Any]) -> Any:
    """Vectors of one type, one after another, as one vector."""
    if len(vectors) == 1:
        return vectors[0]
    size = vectors[0].type.shape[0]
    return pack([extract(v, i) for v in vectors for i in range(size)])


def bitcast(vector: Any, kind: Any) -> Any:
    """The same bits as another vector type."""
    return vector if vector.type == kind else op("vector.bitcast", [vector], [kind])


def splat(value: Any, size: int) -> Any:
    """A vector whose elements all are `value`."""
    return op("vector.broadcast", [value], [vector_type(size, value.type)])


def elements_of(name: str) -> Any:
    """The MLIR element type of a dtype name."""
    return element_type(name)


@contextmanager
def at(where: Any, location: Any) -> Iterator[None]:
    """Build at this insertion point with this location."""
    with where, location:
        yield


def if_else(condition: Any, results: Sequence[Any], then: Any, otherwise: Any) -> list[Any]:
    """`scf.if`: both branches are functions that build a body and return the values to yield."""
    made = ir.Operation.create("scf.if", results=list(results), operands=[condition], regions=2)
    for region, body in zip(made.regions, (then, otherwise), strict=True):
        if body is None:
            continue
        block = region.blocks.append()
        with ir.InsertionPoint(block):
            op("scf.yield", body() or [])
    return list(made.results)
