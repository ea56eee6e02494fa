"""Random kernels of whole numbers: every integer dtype, tiles of rank 1 to 3, and every op that is exact on them.

What wraps around wraps in a known way, so that results must agree bit for bit; undefined cases (a zero divisor, a shift
by the width, an integer that a float can't hold) are kept out by clamps.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from programs import Draw, Program

from hkc.support.dtypes import DTYPES

Shape = tuple[int, ...]

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64")
FLOATS = ("f32", "f16", "bf16", "f64", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz", "f6e2m3", "f6e3m2", "f4e2m1")
SHAPES: tuple[Shape, ...] = (
    (64,), (48,), (256,), (1,), (16, 16), (32, 16), (16, 48), (48, 32), (80, 16), (1, 64), (64, 1), (8, 8), (2, 32),
    (4, 16, 8), (2, 16, 16), (16, 1, 16), (1, 48, 4),
)  # fmt: skip
MOST = 4096
"""Elements of the largest tile."""

FUNCTIONS = """def larger(a, b):
    return where(b > a, b, a)
def affine(a, b, c, d):
    return a * c, b * c + d
def first_of(a, b, c, d):
    return where(c < a, c, a), where(c < a, d, b)
"""


@dataclass
class Writer:
    """Writes typed expressions; `tensors` are the parameters that they use, `lines` the statements before them."""

    draw: Draw
    tensors: dict[str, tuple[str, Shape]] = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)
    names: int = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def tile(self, dtype: str, shape: Shape, depth: int) -> str:
        """An expression for a tile of integers."""
        if depth <= 0:
            return self.leaf(dtype, shape)
        kind = self.pick(
            *("arithmetic", "arithmetic", "divided", "bits", "shifted", "chosen", "unary", "folded", "kept", "scanned"),
            *("moved", "moved", "cast", "cast", "float", "place", "gathered", "masked", "called", "product", "named"),
            *("counted", "reduced", "looped", "branched", "repeated"),
        )
        return str(getattr(self, f"_{kind}")(dtype, shape, depth - 1))

    def leaf(self, dtype: str, shape: Shape) -> str:
        kind = self.pick("load", "load", "load", "iota", "full")
        if kind == "full":
            return f"full[{dtype}, {extents(shape)}]({self.number(0, 9)})"
        if kind == "iota":
            return self.cast(f"iota[{extents(shape)}](axis={self.number(0, len(shape) - 1)})", "i32", dtype)
        name = self.tensor(dtype, len(shape))
        offsets = ", ".join(f"p + {self.number(-9, 9)}" if self.pick(0, 1) else str(self.number(-9, 5)) for _ in shape)
        fill = self.pick("", f", fill={self.number(0, 5)}")
        return f"load({name}, [{offsets}], [{extents(shape)}]{fill})"

    def tensor(self, dtype: str, rank: int) -> str:
        name = f"T_{dtype}_{rank}"
        if name not in self.tensors:
            self.tensors[name] = dtype, tuple(self.number(1, {1: 300, 2: 40, 3: 20}[rank]) for _ in range(rank))
        return name

    def cast(self, text: str, old: str, new: str, words: str = "") -> str:
        return text if old == new else f"cast({text}, {new}{words})"

    def condition(self, shape: Shape, depth: int) -> str:
        """A tile of bools."""
        dtype = self.pick(*INTEGERS)
        op = self.pick("<", "<=", "==", "!=", ">", ">=")
        first = f"({self.tile(dtype, shape, depth)} {op} {self.tile(dtype, shape, 0)})"
        kind = self.pick("plain", "plain", "not", "and", "xor", "any", "load")
        if kind == "any":
            axis = self.number(0, len(shape) - 1)
            return f"broadcast({self.pick('any', 'all')}({first}, axis={axis}, keepdims=True), [{extents(shape)}])"
        if kind == "load":
            return f"(load({self.tensor('bool', len(shape))}, [{', '.join('p' * len(shape))}], [{extents(shape)}]))"
        second = f"({self.tile(dtype, shape, 0)} > {self.number(0, 5)})"
        return {"plain": first, "not": f"~{first}", "and": f"({first} & {second})", "xor": f"({first} ^ {second})"}[
            kind
        ]

    # Element by element.

    def _arithmetic(self, dtype: str, shape: Shape, depth: int) -> str:
        a, b = self.tile(dtype, shape, depth), self.tile(dtype, shape, self.number(0, depth))
        op = self.pick("+", "-", "*", "max", "min")
        return f"{op}({a}, {b})" if op.isalpha() else f"({a} {op} {b})"

    def _divided(self, dtype: str, shape: Shape, depth: int) -> str:
        divisor = f"(({self.tile(dtype, shape, 0)} & 7) + 1)"
        if dtype[0] == "i" and self.pick(True, False):
            divisor = f"(-1 - {divisor})"
        return f"({self.tile(dtype, shape, depth)} {self.pick('//', '%')} {divisor})"

    def _bits(self, dtype: str, shape: Shape, depth: int) -> str:
        return f"({self.tile(dtype, shape, depth)} {self.pick('&', '|', '^')} {self.tile(dtype, shape, 0)})"

    def _shifted(self, dtype: str, shape: Shape, depth: int) -> str:
        return f"({self.tile(dtype, shape, depth)} {self.pick('<<', '>>')} ({self.tile(dtype, shape, 0)} & 7))"

    def _chosen(self, dtype: str, shape: Shape, depth: int) -> str:
        condition = self.condition(shape, depth)
        return f"where({condition}, {self.tile(dtype, shape, depth)}, {self.tile(dtype, shape, 0)})"

    def _unary(self, dtype: str, shape: Shape, depth: int) -> str:
        forms = ("~({})", "clamp({}, 2, 60)", *(("-({})", "abs(max({}, -100))") if dtype[0] == "i" else ()))
        return str(self.pick(*forms).format(self.tile(dtype, shape, depth)))

    def _counted(self, dtype: str, shape: Shape, depth: int) -> str:
        return f"cast({self.condition(shape, depth)}, {dtype})"

    # Along an axis.

    def _wider(self, shape: Shape) -> tuple[Shape, int]:
        """A shape with one more axis, and which."""
        axis = self.number(0, len(shape))
        room = MOST // math.prod(shape)
        extent = self.pick(*[n for n in (1, 2, 4, 16, 48, 64) if n <= room])
        return (*shape[:axis], extent, *shape[axis:]), axis

    def _folded(self, dtype: str, shape: Shape, depth: int) -> str:
        if len(shape) == 3:
            return self._kept(dtype, shape, depth)
        wider, axis = self._wider(shape)
        kind = self.pick("sum", "prod", "max", "min")
        return f"{kind}({self.tile(dtype, wider, depth)}, axis={axis})"

    def _kept(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, kind = self.number(0, len(shape) - 1), self.pick("sum", "prod", "max", "min")
        folded = f"{kind}({self.tile(dtype, shape, depth)}, axis={axis}, keepdims=True)"
        return f"({self.tile(dtype, shape, 0)} ^ {folded})"

    def _place(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, kind = self.number(0, len(shape) - 1), self.pick("argmax", "argmin")
        found = f"{kind}({self.tile(self.pick(*INTEGERS), shape, depth)}, axis={axis}, keepdims=True)"
        return f"broadcast({self.cast(found, 'i32', dtype)}, [{extents(shape)}])"

    def _scanned(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, back = self.number(0, len(shape) - 1), self.pick("", ", reverse=True")
        kind = self.pick("cumsum", "cumprod", "cummax", "cummin")
        return f"{kind}({self.tile(dtype, shape, depth)}, axis={axis}{back})"

    def _called(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, back = self.number(0, len(shape) - 1), self.pick("", ", reverse=True")
        if self.pick(True, False):
            return f"scan(larger, {self.tile(dtype, shape, depth)}, axis={axis}{back})"
        a, b = self.name(), self.name()
        both = f"{self.tile(dtype, shape, depth)}, {self.tile(dtype, shape, 0)}"
        self.lines.append(f"{a}, {b} = scan(affine, {both}, axis={axis}{back})")
        return f"({a} ^ {b})"

    def _reduced(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, other = self.number(0, len(shape) - 1), self.pick(*INTEGERS)
        place = self.cast(f"iota[{extents(shape)}](axis={axis})", "i32", other)
        key = f"({self.tile(dtype, shape, depth)} | {self.cast(place, other, dtype)})"
        a, b = self.name(), self.name()
        self.lines.append(f"{a}, {b} = reduce(first_of, {key}, {place}, axis={axis}, keepdims=True)")
        return f"({self.tile(dtype, shape, 0)} + {a} + {self.cast(f'min({b}, 0)', other, dtype)})"

    def name(self) -> str:
        self.names += 1
        return f"x{self.names}"

    # Moving elements, and other dtypes.

    def _moved(self, dtype: str, shape: Shape, depth: int) -> str:
        kind = self.pick("transpose", "reshape", "slice", "concat", "broadcast")
        return str(getattr(self, f"_move_{kind}")(dtype, shape, depth))

    def _move_transpose(self, dtype: str, shape: Shape, depth: int) -> str:
        order = self.draw(st.permutations(range(len(shape))))
        back = tuple(shape[order.index(i)] for i in range(len(shape)))
        return f"transpose({self.tile(dtype, back, depth)}, {list(order)})"

    def _move_reshape(self, dtype: str, shape: Shape, depth: int) -> str:
        size = math.prod(shape)
        others = [s for s in SHAPES if math.prod(s) == size] + [(size,)]
        return f"reshape({self.tile(dtype, self.pick(*others), depth)}, [{extents(shape)}])"

    def _move_slice(self, dtype: str, shape: Shape, depth: int) -> str:
        axis = self.number(0, len(shape) - 1)
        larger = self.pick(*[n for n in (1, 2, 4, 8, 16, 32, 48, 64, 80, 256) if n >= shape[axis]], 512)
        if math.prod(shape) // shape[axis] * larger > MOST:
            return self.tile(dtype, shape, depth)
        start = self.number(0, larger - shape[axis])
        cuts = [f"{start}:{start + shape[axis]}" if i == axis else ":" for i in range(len(shape))]
        whole = (*shape[:axis], larger, *shape[axis + 1 :])
        return f"({self.tile(dtype, whole, depth)})[{', '.join(cuts)}]"

    def _move_concat(self, dtype: str, shape: Shape, depth: int) -> str:
        axis = self.number(0, len(shape) - 1)
        legal = [n for n in range(1, shape[axis]) if _legal(n) and _legal(shape[axis] - n)]
        if not legal:
            return self.tile(dtype, shape, depth)
        first = self.pick(*legal)
        parts = [(*shape[:axis], n, *shape[axis + 1 :]) for n in (first, shape[axis] - first)]
        return f"concat({self.tile(dtype, parts[0], depth)}, {self.tile(dtype, parts[1], 0)}, axis={axis})"

    def _move_broadcast(self, dtype: str, shape: Shape, depth: int) -> str:
        axis = self.number(0, len(shape) - 1)
        small = (*shape[:axis], 1, *shape[axis + 1 :])
        return f"broadcast({self.tile(dtype, small, depth)}, [{extents(shape)}])"

    def _cast(self, dtype: str, shape: Shape, depth: int) -> str:
        other = self.pick(*INTEGERS)
        return self.cast(self.tile(other, shape, depth), other, dtype, self.pick("", ", saturate=True"))

    def _float(self, dtype: str, shape: Shape, depth: int) -> str:
        """Through floats, which hold small whole numbers exactly."""
        kinds = self.pick(*FLOATS), self.pick("f32", "f64", "f16", "bf16")
        small = f"(({self.tile(dtype, shape, depth)} & 15) + 1)"
        return f"cast(cast(cast({small}, {kinds[0]}), {kinds[1]}), {dtype})"

    def _product(self, dtype: str, shape: Shape, depth: int) -> str:
        if len(shape) != 2 or any(n % 16 for n in shape):
            return self.tile(dtype, shape, depth)
        k = self.pick(16, 32, 64)
        kind = self.pick("i8", "f16", "bf16", "f32")
        total = "i32" if kind == "i8" else "f32"
        a, b = (
            self.cast(f"({self.tile('i8', s, d)} & 3)", "i8", kind)
            for s, d in (((shape[0], k), depth), ((k, shape[1]), 0))
        )
        if self.pick(True, False):
            b = self.cast(f"({self.tile('i8', (shape[1], k), 0)} & 3)", "i8", kind) + ".T"
        return self.cast(f"dot({a}, {b})", total, dtype)

    # Memory, control.

    def _masked(self, dtype: str, shape: Shape, depth: int) -> str:
        at = ", ".join(self.pick("p", "0", "-3", "2") for _ in shape)
        mask = self.condition(shape, depth)
        return f"load({self.tensor(dtype, len(shape))}, [{at}], [{extents(shape)}], fill=7, mask={mask})"

    def _gathered(self, dtype: str, shape: Shape, depth: int) -> str:
        axis = self.number(0, len(shape) - 1)
        index = f"(cast({self.tile(self.pick('i16', 'u16'), shape, depth)}, i32) % 50 - 5)"
        at = ", ".join(self.pick("p", "0", "-2") for _ in shape[1:])
        return f"gather({self.tensor(dtype, len(shape))}, {index}, [{at}], axis={axis}, fill=3)"

    def _named(self, dtype: str, shape: Shape, depth: int) -> str:
        name = self.name()
        self.lines.append(f"{name} = {self.tile(dtype, shape, depth)}")
        return f"({name} + {name})"

    def _looped(self, dtype: str, shape: Shape, depth: int) -> str:
        name, before = self.name(), self.tile(dtype, shape, 0)
        outer, self.lines = self.lines, []
        step = self.tile(dtype, shape, depth)
        inner, self.lines = self.lines, outer
        bounds = self.pick("n", "1, n", "n, 0, -1", "2")
        self.lines += [f"{name} = {before}", f"for k{name} in range({bounds}):"]
        self.lines += [f"    {line}" for line in (*inner, f"{name} = {self.combined(dtype, name, step)}")]
        return name

    def _repeated(self, dtype: str, shape: Shape, depth: int) -> str:
        name, counter, before = self.name(), self.name(), self.tile(dtype, shape, 0)
        outer, self.lines = self.lines, []
        step = self.tile(dtype, shape, depth)
        inner, self.lines = self.lines, outer
        self.lines += [f"{name} = {before}", f"{counter} = n", f"while {counter} > {self.pick('0', '2', 'p')}:"]
        change = f"{name} = {self.combined(dtype, name, step)}"
        self.lines += [f"    {line}" for line in (*inner, change, f"{counter} -= {self.pick(1, 2)}")]
        return name

    def combined(self, dtype: str, a: str, b: str) -> str:
        """Of two tiles one that depends on both."""
        return f"{a} * 3 ^ {b}"

    def _branched(self, dtype: str, shape: Shape, depth: int) -> str:
        name, condition = self.name(), self.pick("n > 2", "p == 0", "n % 2 == 1", "OUT0 < 20")
        self.lines.append(f"{name} = {self.tile(dtype, shape, 0)}")
        for head in (f"if {condition}:", "else:"):
            outer, self.lines = self.lines, []
            value = self.tile(dtype, shape, depth)
            inner, self.lines = self.lines, outer
            self.lines += [head, *(f"    {line}" for line in (*inner, f"{name} = {value}"))]
        return name


def extents(shape: Shape) -> str:
    """`16, 48`."""
    return ", ".join(map(str, shape))


def _legal(extent: int) -> bool:
    return extent & (extent - 1) == 0 or extent % 16 == 0


@st.composite
def wide_programs(draw: Draw) -> Program:
    """A random program and its inputs. Its output is `OUT`, of any integer dtype; tiles reach over its edges."""
    writer = Writer(draw)
    dtype, shape = writer.pick(*INTEGERS), writer.pick(*SHAPES)
    value = writer.tile(dtype, shape, writer.number(1, 4))
    tail = _ending(writer, dtype, shape, value)
    parameters = parameters_of(writer, dtype, shape)
    texts = []
    for name, (kind, dims) in parameters.items():
        own = [f"{name}{i}" for i in range(len(dims))]
        texts.append(f"{name}: global[{kind}, {', '.join(own)}]")
    head = f"kernel wide({', '.join(texts)}, n: i32):\n    p = tile_ids(cdiv(OUT0, {shape[0]}))\n"
    waves = writer.pick("", "", " with waves=1", " with waves=2", " with waves=8")
    text = FUNCTIONS + head.replace("):\n", f"){waves}:\n", 1) + "".join(f"    {x}\n" for x in (*writer.lines, tail))
    rng = np.random.default_rng(writer.number(0, 1000))
    arrays = {name: values_of(rng, kind, dims) for name, (kind, dims) in parameters.items()}
    return Program(text, arrays, {"n": writer.number(0, 5)})


def parameters_of(writer: Writer, dtype: str, shape: Shape) -> dict[str, tuple[str, Shape]]:
    """Dtype and extents of all tensors by name: of the output, whose edges cut through tiles, and of those used."""
    rows = writer.number(1, 2 * shape[0] + 1)
    return {"OUT": (dtype, (rows, *(max(1, n + writer.number(-2, 1)) for n in shape[1:]))), **writer.tensors}


def _ending(writer: Writer, dtype: str, shape: Shape, value: str) -> str:
    """A statement that brings a tile into `OUT`. Updates may overlap, within a workgroup and between two: in any order
    they give one result."""
    kind = writer.pick("store", "store", "store", "masked", "atomic", "atomic", "scattered", "moved")
    zeros = ", 0" * (len(shape) - 1)
    if kind == "store":
        return f"store(OUT, [p * {shape[0]}{zeros}], {value})"
    if kind == "masked":
        return f"store(OUT, [p * {shape[0]}{zeros}], {value}, mask={writer.condition(shape, 1)})"
    update = writer.pick("add", "max", "min")
    if kind == "scattered":
        axis = writer.number(0, len(shape) - 1)
        index = f"(cast({writer.tile('i16', shape, 1)}, i32) % {writer.pick(3, 20, 70)} - 1)"
        at = ", ".join(writer.pick("p", "0", "-1") for _ in shape[1:])
        return f"scatter_{update}(OUT, {index}, [{at}], {value}, axis={axis})"
    mask = f", mask={writer.condition(shape, 1)}" if writer.pick(True, False) else ""
    start = f"p * {shape[0]}" if kind == "atomic" else f"p * {writer.pick(0, 1, 3)} - {writer.number(0, 2)}"
    return f"atomic_{update}(OUT, [{start}{zeros}], {value}{mask})"


def values_of(rng: np.random.Generator, kind: str, dims: Shape) -> np.ndarray:
    """Elements of a tensor: integers of the whole range, small multiples of 1/8, bools."""
    if kind == "bool":
        return rng.integers(0, 2, dims).astype(bool)
    if DTYPES[kind].is_float:
        return (rng.integers(-32, 33, dims) / 8).astype(DTYPES[kind].numpy)
    info = np.iinfo({"i": "int", "u": "uint"}[kind[0]] + kind[1:])
    values = rng.integers(info.min, info.max, dims, dtype=info.dtype, endpoint=True)
    small = rng.integers(0, 10, dims)
    return np.where(rng.integers(0, 3, dims) == 0, values, small.astype(info.dtype))
