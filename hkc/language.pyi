"""The names of the language, with types. Made by `python -m hkc.frontend.manual`; a test compares."""

from typing import Annotated as global_  # noqa: N813  a tensor's dtype and dims, numbers too: `A: global_[f32, M, 64]`
from typing import Any

inf: float
nan: float

class Arithmetic:
    """What can be computed with in a kernel."""

    def __add__(self, other: Any) -> Value: ...
    def __radd__(self, other: Any) -> Value: ...
    def __sub__(self, other: Any) -> Value: ...
    def __rsub__(self, other: Any) -> Value: ...
    def __mul__(self, other: Any) -> Value: ...
    def __rmul__(self, other: Any) -> Value: ...
    def __truediv__(self, other: Any) -> Value: ...
    def __rtruediv__(self, other: Any) -> Value: ...
    def __floordiv__(self, other: Any) -> Value: ...
    def __rfloordiv__(self, other: Any) -> Value: ...
    def __mod__(self, other: Any) -> Value: ...
    def __rmod__(self, other: Any) -> Value: ...
    def __and__(self, other: Any) -> Value: ...
    def __rand__(self, other: Any) -> Value: ...
    def __or__(self, other: Any) -> Value: ...
    def __ror__(self, other: Any) -> Value: ...
    def __xor__(self, other: Any) -> Value: ...
    def __rxor__(self, other: Any) -> Value: ...
    def __lshift__(self, other: Any) -> Value: ...
    def __rlshift__(self, other: Any) -> Value: ...
    def __rshift__(self, other: Any) -> Value: ...
    def __rrshift__(self, other: Any) -> Value: ...
    def __lt__(self, other: Any) -> Value: ...
    def __le__(self, other: Any) -> Value: ...
    def __gt__(self, other: Any) -> Value: ...
    def __ge__(self, other: Any) -> Value: ...
    def __neg__(self) -> Value: ...
    def __invert__(self) -> Value: ...

class Value(Arithmetic):
    """A tile, a scalar, an index, or a tensor in memory."""

    T: Value
    dtype: type[Value]
    shape: tuple[Any, ...]
    def __getitem__(self, items: Any) -> Value: ...
    def __iter__(self) -> Any: ...

class DimType(type, Arithmetic):  # type: ignore[misc]
    """Lets the name of a dim be computed with."""

class Dim(metaclass=DimType):
    """The extent of a dim of tensors: `M = Dim` in a module, then `global_[f32, M, N]`."""

class declare:  # noqa: N801
    """What a parameter demands: `Annotated[global_[f16, M], declare(align=16, contiguous=True)]`."""

    def __init__(self, *, align: int = 1, contiguous: bool = False) -> None: ...

class tune(int):  # noqa: N801
    """A number that only decides how fast a kernel is, and the values that a search tries: `tune(128, [64, 128])`."""

    def __new__(cls, value: int, candidates: Any = ()) -> tune: ...

class Shaped:
    """What takes a dtype or extents in square brackets."""

    def __getitem__(self, items: Any) -> Any: ...

class f64(Value):  # noqa: N801
    """The dtype f64: float of 53 significant bits."""

class f32(Value):  # noqa: N801
    """The dtype f32: float of 24 significant bits."""

class f16(Value):  # noqa: N801
    """The dtype f16: float of 11 significant bits."""

class bf16(Value):  # noqa: N801
    """The dtype bf16: float of 8 significant bits."""

class f8e4m3fn(Value):  # noqa: N801
    """The dtype f8e4m3fn: float of 4 significant bits; `cast` and products only."""

class f8e4m3fnuz(Value):  # noqa: N801
    """The dtype f8e4m3fnuz: float of 4 significant bits; `cast` and products only."""

class f8e5m2(Value):  # noqa: N801
    """The dtype f8e5m2: float of 3 significant bits; `cast` and products only."""

class f8e5m2fnuz(Value):  # noqa: N801
    """The dtype f8e5m2fnuz: float of 3 significant bits; `cast` and products only."""

class f6e2m3(Value):  # noqa: N801
    """The dtype f6e2m3: float of 4 significant bits; `cast` and products only."""

class f6e3m2(Value):  # noqa: N801
    """The dtype f6e3m2: float of 3 significant bits; `cast` and products only."""

class f4e2m1(Value):  # noqa: N801
    """The dtype f4e2m1: float of 2 significant bits; `cast` and products only."""

class e8m0(Value):  # noqa: N801
    """The dtype e8m0: float of 1 significant bits; `cast` and products only."""

class i8(Value):  # noqa: N801
    """The dtype i8: signed integer."""

class u8(Value):  # noqa: N801
    """The dtype u8: unsigned integer."""

class i16(Value):  # noqa: N801
    """The dtype i16: signed integer."""

class u16(Value):  # noqa: N801
    """The dtype u16: unsigned integer."""

class i32(Value):  # noqa: N801
    """The dtype i32: signed integer."""

class u32(Value):  # noqa: N801
    """The dtype u32: unsigned integer."""

class i64(Value):  # noqa: N801
    """The dtype i64: signed integer."""

class bool_(Value):  # noqa: N801
    """The dtype bool: truth value, a byte in memory."""

zeros: Shaped
"""A tile of zeros. `zeros[dtype, extent, …]`"""

full: Shaped
"""A tile filled with one value. `full[dtype, extent, …](value)`"""

iota: Shaped
"""A tile of i32 that counts 0, 1, 2, … along an axis. `iota[extent, …](axis=0)`"""

nearest_even: Any

toward_zero: Any

rows: Any

chiplet: Any

def load(
    tensor: Any,
    offsets: Any,
    shape: Any,
    fill: Any = ...,
    mask: Any = ...,
) -> Value:
    """A tile of the tensor from `offsets` on. Elements outside the tensor, and those whose mask is false, are
    `fill`."""

def store(
    tensor: Any,
    offsets: Any,
    value: Any,
    mask: Any = ...,
) -> None:
    """Writes a tile; elements that fall outside the tensor, and those whose mask is false, are dropped."""

def gather(
    tensor: Any,
    index: Any,
    offsets: Any = ...,
    axis: Any = ...,
    fill: Any = ...,
    mask: Any = ...,
    shape: Any = ...,
) -> Value:
    """A tile whose coordinate along `axis` comes from an index tile (i32 or i64), along the other dims from
    `offsets`. `index` broadcasts to `shape`. Negative indices, like all places outside, give `fill`."""

def scatter(
    tensor: Any,
    index: Any,
    offsets: Any,
    value: Any,
    axis: Any = ...,
    mask: Any = ...,
) -> None:
    """Writes to where `gather` would read from; which of several elements for one place stays is open."""

def scatter_add(
    tensor: Any,
    index: Any,
    offsets: Any,
    value: Any,
    axis: Any = ...,
    mask: Any = ...,
) -> None:
    """Like `scatter`, but a place becomes its sum with the element, atomically."""

def scatter_max(
    tensor: Any,
    index: Any,
    offsets: Any,
    value: Any,
    axis: Any = ...,
    mask: Any = ...,
) -> None:
    """Like `scatter`, but a place becomes its maximum with the element, atomically."""

def scatter_min(
    tensor: Any,
    index: Any,
    offsets: Any,
    value: Any,
    axis: Any = ...,
    mask: Any = ...,
) -> None:
    """Like `scatter`, but a place becomes its minimum with the element, atomically."""

def atomic_add(
    tensor: Any,
    offsets: Any,
    value: Any,
    mask: Any = ...,
) -> None:
    """Every place becomes its sum with the element, atomically. The order of updates is open."""

def fetch_add(
    tensor: Any,
    offsets: Any,
    value: Any,
) -> Value:
    """Like `atomic_add`, and gives what each place held right before (0 outside the tensor)."""

def atomic_max(
    tensor: Any,
    offsets: Any,
    value: Any,
    mask: Any = ...,
) -> None:
    """Every place becomes its maximum with the element, atomically. The order of updates is open."""

def fetch_max(
    tensor: Any,
    offsets: Any,
    value: Any,
) -> Value:
    """Like `atomic_max`, and gives what each place held right before (0 outside the tensor)."""

def atomic_min(
    tensor: Any,
    offsets: Any,
    value: Any,
    mask: Any = ...,
) -> None:
    """Every place becomes its minimum with the element, atomically. The order of updates is open."""

def fetch_min(
    tensor: Any,
    offsets: Any,
    value: Any,
) -> Value:
    """Like `atomic_min`, and gives what each place held right before (0 outside the tensor)."""

def compare_and_swap(
    tensor: Any,
    offsets: Any,
    expected: Any,
    value: Any,
) -> Value:
    """Where a place holds the element of `expected`, it becomes that of `value`, atomically. Gives what was there."""

def cast(
    x: Any,
    dtype: Any,
    saturate: Any = ...,
    rounding: Any = ...,
) -> Value:
    """The same numbers in another dtype. To floats it rounds to nearest even, to integers towards zero; `rounding`
    is `nearest_even` or `toward_zero`. With `saturate` what is out of range becomes the nearest end of the
    range."""

def bitcast(
    x: Any,
    dtype: Any,
) -> Value:
    """The same bits read as another dtype of the same width."""

def where(
    condition: Any,
    a: Any,
    b: Any,
) -> Value:
    """`a` where the condition holds, else `b`, element by element; all three broadcast."""

def cdiv(
    a: Any,
    b: Any,
) -> Value:
    """`a / b` of whole numbers, rounded up."""

def maximum(
    a: Any,
    b: Any,
) -> Value:
    """The greater of two values; NaN wins."""

def minimum(
    a: Any,
    b: Any,
) -> Value:
    """The lesser of two values; NaN wins."""

def fmax(
    a: Any,
    b: Any,
) -> Value:
    """The greater of two values; a number wins over NaN."""

def fmin(
    a: Any,
    b: Any,
) -> Value:
    """The lesser of two values; a number wins over NaN."""

def clamp(
    x: Any,
    low: Any,
    high: Any,
) -> Value:
    """`x`, but at least `low` and at most `high`; NaN stays."""

def exp(
    x: Any,
) -> Value:
    """e to the power of x."""

def exp2(
    x: Any,
) -> Value:
    """2 to the power of x; faster than `exp`."""

def log(
    x: Any,
) -> Value:
    """The natural logarithm; NaN below 0."""

def log2(
    x: Any,
) -> Value:
    """The logarithm to base 2; NaN below 0."""

def sqrt(
    x: Any,
) -> Value:
    """The square root; NaN below 0."""

def rsqrt(
    x: Any,
) -> Value:
    """1 over the square root."""

def sin(
    x: Any,
) -> Value:
    """The sine of x in radians."""

def cos(
    x: Any,
) -> Value:
    """The cosine of x in radians."""

def tanh(
    x: Any,
) -> Value:
    """The hyperbolic tangent."""

def erf(
    x: Any,
) -> Value:
    """The error function."""

def floor(
    x: Any,
) -> Value:
    """The next whole number below."""

def ceil(
    x: Any,
) -> Value:
    """The next whole number above."""

def abs(  # noqa: A001
    x: Any,
) -> Value:
    """The magnitude."""

def rcp(
    x: Any,
) -> Value:
    """1 / x. 16-bit floats are computed in f32."""

def sigmoid(
    x: Any,
) -> Value:
    """1 / (1 + exp(-x)). 16-bit floats are computed in f32."""

def silu(
    x: Any,
) -> Value:
    """x / (1 + exp(-x)). 16-bit floats are computed in f32."""

def gelu(
    x: Any,
) -> Value:
    """x / 2 · (1 + erf(x / √2)). 16-bit floats are computed in f32."""

def gelu_tanh(
    x: Any,
) -> Value:
    """The approximation of `gelu` by tanh. 16-bit floats are computed in f32."""

def sum(  # noqa: A001
    x: Any,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """The sum along an axis; without one, of the whole tile, as a scalar."""

def prod(
    x: Any,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """The product along an axis; without one, of the whole tile, as a scalar."""

def any(  # noqa: A001
    x: Any,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """Whether one of the bools along an axis holds; without an axis, one of the tile."""

def all(  # noqa: A001
    x: Any,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """Whether all bools along an axis hold; without an axis, all of the tile."""

def max(  # noqa: A001
    x: Any,
    b: Any = ...,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """The maximum along an axis (all of the tile without one), or the maximum of two values. NaN wins."""

def min(  # noqa: A001
    x: Any,
    b: Any = ...,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Value:
    """The minimum along an axis (all of the tile without one), or the minimum of two values. NaN wins."""

def argmax(
    x: Any,
    axis: Any,
    keepdims: Any = ...,
) -> Value:
    """Where along an axis the maximum is (i32), the first place of equals; NaN counts as the maximum."""

def argmin(
    x: Any,
    axis: Any,
    keepdims: Any = ...,
) -> Value:
    """Where along an axis the minimum is (i32), the first place of equals; NaN counts as the minimum."""

def cumsum(
    x: Any,
    axis: Any,
    reverse: Any = ...,
) -> Value:
    """Element i is the sum of elements 0 to i along an axis; with `reverse`, of elements i to the last."""

def cumprod(
    x: Any,
    axis: Any,
    reverse: Any = ...,
) -> Value:
    """Element i is the product of elements 0 to i along an axis; with `reverse`, of elements i to the last."""

def cummax(
    x: Any,
    axis: Any,
    reverse: Any = ...,
) -> Value:
    """Element i is the maximum of elements 0 to i along an axis; with `reverse`, of elements i to the last."""

def cummin(
    x: Any,
    axis: Any,
    reverse: Any = ...,
) -> Value:
    """Element i is the minimum of elements 0 to i along an axis; with `reverse`, of elements i to the last."""

def scan(
    combine: Any,
    *tiles: Any,
    axis: Any = ...,
    reverse: Any = ...,
) -> Any:
    """A scan of one or several tiles with an associative function of the file, `def combine(a, b): return …`; of n
    tiles together it takes n values of the left part, then n of the right, and returns n."""

def reduce(
    combine: Any,
    *tiles: Any,
    axis: Any = ...,
    keepdims: Any = ...,
) -> Any:
    """A reduction with an associative function of the file, as in `scan`."""

def random(
    seed: Any,
    offsets: Any,
    shape: Any,
) -> Value:
    """Uniform numbers from 0 to below 1. They depend on the seed (64 bits) and an element's place alone (Philox
    4x32-10); offsets may have more dims."""

def random_bits(
    seed: Any,
    offsets: Any,
    shape: Any,
) -> Value:
    """Words of 32 random bits. They depend on the seed (64 bits) and an element's place alone (Philox 4x32-10);
    offsets may have more dims."""

def dot(
    a: Any,
    b: Any,
    acc: Any = ...,
) -> Value:
    """`acc + a @ b` of tiles MxK and KxN. f32, f16, bf16 and pairs of 8-bit floats sum in f32, i8 in i32, f64 in
    f64. `acc += dot(a, b)` is one operation."""

def dot_scaled(
    a: Any,
    a_scale: Any,
    b: Any,
    b_scale: Any,
    acc: Any = ...,
) -> Value:
    """`acc + (a * a_scale) @ (b * b_scale)`: 32 elements along K share a scale of e8m0. a is MxK and b KxN of
    f8e4m3fn, f8e5m2, f6e2m3, f6e3m2 or f4e2m1, a_scale is Mx(K/32), b_scale (K/32)xN. Only chips with scaled
    matrix instructions have it."""

def reshape(
    x: Any,
    shape: Any,
) -> Value:
    """The same elements in row-major order under other extents."""

def broadcast(
    x: Any,
    shape: Any,
) -> Value:
    """A tile or scalar repeated to this shape, as NumPy does."""

def transpose(
    x: Any,
    axes: Any = ...,
) -> Value:
    """The dims in another order: dim i of the result is dim `axes[i]` of `x`. `x.T` swaps the two dims of rank 2."""

def concat(
    a: Any,
    b: Any,
    axis: Any,
) -> Value:
    """Two tiles one after the other along an axis."""

def item(
    x: Any,
) -> Value:
    """The one element of a tile, as a scalar that conditions and bounds of loops may depend on."""

def print(  # noqa: A001
    *values: Any,
) -> None:
    """Writes values and texts with blanks between; shown by workgroups once all is done."""

def tile_ids(*extents: Any, order: Any = ..., chunk: Any = ..., window: Any = ...) -> Any:
    """The position of this workgroup in the grid of these extents."""

def tiles(*extents: Any, workgroups: Any, order: Any = ..., chunk: Any = ..., window: Any = ...) -> Any:
    """All tiles of a grid, shared by a fixed number of workgroups."""

def range(start: Any, stop: Any = ..., step: Any = ...) -> Any:  # noqa: A001
    """What a loop runs over."""

__all__ = [  # noqa: RUF022
    "Arithmetic", "Dim", "DimType", "Shaped", "Value", "abs", "all", "any", "argmax", "argmin", "atomic_add",
    "atomic_max", "atomic_min", "bf16", "bitcast", "bool_", "broadcast", "cast", "cdiv", "ceil", "chiplet", "clamp",
    "compare_and_swap", "concat", "cos", "cummax", "cummin", "cumprod", "cumsum", "declare", "dot", "dot_scaled",
    "e8m0", "erf", "exp", "exp2", "f16", "f32", "f4e2m1", "f64", "f6e2m3", "f6e3m2", "f8e4m3fn", "f8e4m3fnuz",
    "f8e5m2", "f8e5m2fnuz", "fetch_add", "fetch_max", "fetch_min", "floor", "fmax", "fmin", "full", "gather",
    "gelu", "gelu_tanh", "global_", "i16", "i32", "i64", "i8", "inf", "iota", "item", "load", "log", "log2", "max",
    "maximum", "min", "minimum", "nan", "nearest_even", "print", "prod", "random", "random_bits", "range", "rcp",
    "reduce", "reshape", "rows", "rsqrt", "scan", "scatter", "scatter_add", "scatter_max", "scatter_min", "sigmoid",
    "silu", "sin", "sqrt", "store", "sum", "tanh", "tile_ids", "tiles", "toward_zero", "transpose", "tune", "u16",
    "u32", "u8", "where", "zeros",
]  # fmt: skip
