"""Random kernels of floats: arithmetic, functions, sums, products, scans, casts to and from all dtypes, moves, control.

Numbers are small multiples of 1/8 and clamped again and again, so that what is exact stays exact in the error bounds,
and the bounds of what is not stay small.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from programs import Draw, Program
from wide import FLOATS, FUNCTIONS, SHAPES, Shape, Writer, extents, parameters_of, values_of

REALS = ("f32", "f32", "f16", "bf16", "f64")
UNARY = ("-({})", "abs({})", "({}) * 0.5", "clamp({}, -4.0, 4.0)", "floor({})", "ceil({})", "sqrt(abs({}))")
BOUNDED = ("exp2({})", "exp({})", "tanh({})", "sigmoid({})", "sin({})", "cos({})", "rcp(({}) * ({}) + 1.0)", "silu({})")
"""Functions of what has been clamped to [-4, 4]; f64 has none of them."""


KINDS = (
    "arithmetic arithmetic arithmetic unary function chosen folded kept scanned moved moved cast narrow whole gathered "
    "masked product named looped branched repeated"
).split()


class RealWriter(Writer):
    """Writes tiles of floats; those of integers and bools as `Writer` does."""

    def tile(self, dtype: str, shape: Shape, depth: int) -> str:
        """An expression for a tile of a dtype."""
        if dtype not in REALS:
            return super().tile(dtype, shape, depth)
        if depth <= 0:
            return self._real_leaf(dtype, shape)
        kind = self.pick(*KINDS)
        write = getattr(self, f"_real_{kind}", None) or getattr(self, f"_{kind}")
        return str(write(dtype, shape, depth - 1))

    def combined(self, dtype: str, a: str, b: str) -> str:
        """Of two tiles one that depends on both."""
        return f"{a} * 0.5 + clamp({b}, -8.0, 8.0)" if dtype in REALS else super().combined(dtype, a, b)

    def condition(self, shape: Shape, depth: int) -> str:
        """A tile of bools, of which no rounding error decides."""
        if self.pick(True, False):
            return super().condition(shape, 0)
        dtype = self.pick(*REALS)
        return (
            f"({self._real_leaf(dtype, shape)} {self.pick('<', '<=', '==', '!=', '>')} {self._real_leaf(dtype, shape)})"
        )

    def _real_leaf(self, dtype: str, shape: Shape) -> str:
        if self.pick(True, False, False):
            return f"full[{dtype}, {extents(shape)}]({self.number(-24, 24) / 8})"
        name = self.tensor(dtype, len(shape))
        offsets = ", ".join(f"p + {self.number(-9, 9)}" if self.pick(0, 1) else str(self.number(-9, 5)) for _ in shape)
        fill = self.pick("", f", fill={self.number(-3, 3)}.0")
        return f"load({name}, [{offsets}], [{extents(shape)}]{fill})"

    def _real_arithmetic(self, dtype: str, shape: Shape, depth: int) -> str:
        a, b = self.tile(dtype, shape, depth), self.tile(dtype, shape, self.number(0, depth))
        op = self.pick("+", "-", "max", "min", "fmax", "*", "/")
        if op == "*":
            return f"({a} * clamp({b}, -2.0, 2.0))"
        if op == "/":
            return f"({a} / (abs({b}) + 1.0))"
        return f"{op}({a}, {b})" if op.isalpha() else f"({a} {op} {b})"

    def _real_unary(self, dtype: str, shape: Shape, depth: int) -> str:
        return str(self.pick(*UNARY).format(self.tile(dtype, shape, depth)))

    def _real_function(self, dtype: str, shape: Shape, depth: int) -> str:
        small = f"clamp({self.tile(dtype, shape, depth)}, -4.0, 4.0)"
        return small if dtype == "f64" else str(self.pick(*BOUNDED).format(small, small))

    def _real_folded(self, dtype: str, shape: Shape, depth: int) -> str:
        if len(shape) == 3:
            return self._real_kept(dtype, shape, depth)
        wider, axis = self._wider(shape)
        return f"{self.pick('sum', 'max', 'min')}({self.tile(dtype, wider, depth)}, axis={axis})"

    def _real_kept(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, kind = self.number(0, len(shape) - 1), self.pick("sum", "max", "min")
        folded = f"{kind}({self.tile(dtype, shape, depth)}, axis={axis}, keepdims=True)"
        return f"({self.tile(dtype, shape, 0)} - clamp({folded}, -8.0, 8.0))"

    def _real_scanned(self, dtype: str, shape: Shape, depth: int) -> str:
        axis, back = self.number(0, len(shape) - 1), self.pick("", ", reverse=True")
        kind = self.pick("cumsum", "cummax", "cummin")
        return f"clamp({kind}({self.tile(dtype, shape, depth)}, axis={axis}{back}), -16.0, 16.0)"

    def _real_cast(self, dtype: str, shape: Shape, depth: int) -> str:
        other = self.pick(*REALS)
        words = self.pick("", "", ", rounding=toward_zero") if other != dtype else ""
        return self.cast(f"clamp({self.tile(other, shape, depth)}, -64.0, 64.0)", other, dtype, words)

    def _real_narrow(self, dtype: str, shape: Shape, depth: int) -> str:
        """Through a dtype that is only stored: what is exact is rounded by it, always in the same way."""
        narrow, words = self.pick(*FLOATS[4:]), self.pick("", ", saturate=True")
        exact = self.pick(self._real_leaf(dtype, shape), f"({self._real_leaf(dtype, shape)} * 3.0)")
        small = f"clamp({exact}, -6.0, 6.0)" if not words else exact
        return f"max(cast(cast({small}, {narrow}{words}), {dtype}), {self.tile(dtype, shape, depth)})"

    def _real_whole(self, dtype: str, shape: Shape, depth: int) -> str:
        whole = self.pick("i8", "i16", "i32", "u8", "i64")
        return f"(cast({super().tile(whole, shape, depth)} & 15, {dtype}) * 0.25)"

    def _real_product(self, dtype: str, shape: Shape, depth: int) -> str:
        if len(shape) != 2 or any(n % 16 for n in shape):
            return self.tile(dtype, shape, depth)
        k, kind = self.pick(16, 32, 64), self.pick("f16", "bf16", "f32", "f8e4m3fn", "f8e5m2fnuz")
        a = self.cast(f"clamp({self.tile('f32', (shape[0], k), depth)}, -2.0, 2.0)", "f32", kind)
        b = self.cast(f"clamp({self.tile('f32', (k, shape[1]), 0)}, -2.0, 2.0)", "f32", kind)
        if self.pick(True, False):
            b = self.cast(f"clamp({self.tile('f32', (shape[1], k), 0)}, -2.0, 2.0)", "f32", kind) + ".T"
        return self.cast(f"(dot({a}, {b}) * 0.125)", "f32", dtype)


@st.composite
def real_programs(draw: Draw) -> Program:
    """A random program and its inputs. Its output is `OUT`, of any float dtype with arithmetic."""
    writer = RealWriter(draw)
    dtype, shape = writer.pick(*REALS), writer.pick(*SHAPES)
    value = writer.tile(dtype, shape, writer.number(1, 4))
    parameters = parameters_of(writer, dtype, shape)
    typed = [f"{n}: global[{k}, {', '.join(f'{n}{i}' for i in range(len(d)))}]" for n, (k, d) in parameters.items()]
    waves = writer.pick("", "", " with waves=1", " with waves=2", " with waves=8")
    head = f"kernel real({', '.join(typed)}, n: i32){waves}:\n    p = tile_ids(cdiv(OUT0, {shape[0]}))\n"
    tail = f"store(OUT, [p * {shape[0]}{', 0' * (len(shape) - 1)}], {value})"
    rng = np.random.default_rng(writer.number(0, 1000))
    arrays = {name: values_of(rng, kind, dims) for name, (kind, dims) in parameters.items()}
    text = FUNCTIONS + head + "".join(f"    {x}\n" for x in (*writer.lines, tail))
    return Program(text, arrays, {"n": writer.number(0, 5)})
