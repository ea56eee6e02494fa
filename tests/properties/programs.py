"""Random well-typed kernels: element-wise work, reductions, broadcasts, products, loops, branches, masks.

Inputs are small whole numbers, so that most results are exact. A program is text with the arrays to run it on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

Shape = tuple[int, int]
Draw = Callable[[st.SearchStrategy[Any]], Any]

HEAD = (
    "def mixed(x, y, count):\n"
    "    for step in range(count):\n"
    "        x, y = y, clamp(x - y, -9.0, 9.0)\n"
    "    return x\n"
    "kernel random_program(A: global[f32, M, N], B: global[f32, K, N], I: global[i32, M, N], OUT: global[f32, M, N], "
    "n: i32, s: f32):\n"
    "    p, q = tile_ids(cdiv(M, {0}), cdiv(N, {1}))\n"
    "    i, j = p * {0}, q * {1}\n"
)


@dataclass(frozen=True)
class Program:
    """A kernel's text, its tensors by name, and its numbers."""

    text: str
    arrays: dict[str, np.ndarray] = field(compare=False)
    scalars: dict[str, Any]


@dataclass
class _Writer:
    """Writes lines of a kernel; `tiles` are the variables of f32 that exist, all of one shape."""

    draw: Draw
    shape: Shape
    lines: list[str]
    tiles: list[str]
    loops: int = 0

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def tile(self, depth: int) -> str:
        """An expression for a tile of f32 of the program's shape."""
        if depth == 0:
            return self.pick(*self.tiles, *self._leaves())
        kinds = (
            *("binary", "binary", "unary", "where", "reduced", "masked", "cast", "dot", "scan", "conditional"),
            *("moved", "gathered", "placed", "inlined"),
        )
        kind = self.pick(*kinds)
        return str(getattr(self, f"_{kind}")(depth - 1))

    def _leaves(self) -> list[str]:
        rows, columns = self.shape
        number = self.draw(st.integers(-3, 3))
        offset = self.draw(st.integers(-5, 5))
        return [
            f"load(A, [i, j], [{rows}, {columns}])",
            f"load(A, [i + {offset}, j], [{rows}, {columns}], fill={number}.0)",
            f"full[f32, {rows}, {columns}]({number}.0)",
            f"broadcast(s, [{rows}, {columns}])",
            f"cast(load(I, [i, j], [{rows}, {columns}]), f32)",
        ]

    def _binary(self, depth: int) -> str:
        op = self.pick("+", "-", "max", "min")
        a, b = self.tile(depth), self.tile(depth)
        return f"{op}({a}, {b})" if op.isalpha() else f"({a} {op} {b})"

    def _unary(self, depth: int) -> str:
        form = self.pick("-({})", "abs({})", "({}) * 0.5", "clamp({}, -4.0, 4.0)")
        return str(form.format(self.tile(depth)))

    def _condition(self, depth: int) -> str:
        rows, columns = self.shape
        index = self.pick(
            f"load(I, [i, j], [{rows}, {columns}]) > 0",
            f"iota[{columns}] % 3 == 0",
            f"iota[{rows}, 1](axis=0) // 2 < n",
            f"(load(I, [i, j], [{rows}, {columns}]) & 1) == 1",
        )
        floats = f"{self.tile(depth)} {self.pick('<', '>=', '!=')} {self.tile(depth)}"
        return self.pick(index, floats, f"({index}) & ({floats})")

    def _where(self, depth: int) -> str:
        return f"where({self._condition(depth)}, {self.tile(depth)}, {self.tile(depth)})"

    def _reduced(self, depth: int) -> str:
        kind, axis = self.pick("sum", "max", "min"), self.pick(0, 1)
        folded = f"{kind}({self.tile(depth)}, axis={axis}, keepdims=True)"
        return f"({self.tile(depth)} - clamp({folded}, -8.0, 8.0))"

    def _masked(self, depth: int) -> str:
        rows, columns = self.shape
        return f"load(A, [i, j], [{rows}, {columns}], fill=1.0, mask={self._condition(depth)})"

    def _cast(self, depth: int) -> str:
        return f"cast(cast(clamp({self.tile(depth)}, -64.0, 64.0), {self.pick('bf16', 'f16', 'i32')}), f32)"

    def _dot(self, depth: int) -> str:
        rows = self.shape[0]
        a = f"cast(clamp({self.tile(depth)}, -2.0, 2.0), bf16)"
        return f"dot(cast(load(B, [0, 0], [{rows}, {rows}]), bf16), {a}) * 0.125"

    def _scan(self, depth: int) -> str:
        return f"clamp(cumsum({self.tile(depth)}, axis={self.pick(0, 1)}), -16.0, 16.0)"

    def _conditional(self, depth: int) -> str:
        return f"({self.tile(depth)} if n > {self.draw(st.integers(0, 4))} else {self.tile(depth)})"

    def _moved(self, depth: int) -> str:
        rows, columns = self.shape
        half = columns // 2 if columns != 48 else 16
        form = self.pick(
            f"concat(({{0}})[:, {half}:], ({{0}})[:, :{half}], axis=1)",
            f"concat(({{0}})[{rows // 2} :], ({{0}})[: {rows // 2}], axis=0)",
            f"reshape(reshape({{0}}, [{rows // 2}, {2 * columns}]), [{rows}, {columns}])",
            "transpose(({0}).T)",
            f"broadcast(({{0}})[{rows - 1}:], [{rows}, {columns}])",
        )
        return str(form.format(self.tile(depth)))

    def _gathered(self, depth: int) -> str:
        rows, columns = self.shape
        index = f"load(I, [i, j], [{rows}, {columns}]) + cast(clamp({self.tile(depth)}, 0.0, 9.0), i32)"
        return f"gather(A, {index}, [{self.pick('j', 'j + 1', '0')}], axis=0, fill=-2.0)"

    def _placed(self, depth: int) -> str:
        kind, axis = self.pick("argmax", "argmin"), self.pick(0, 1)
        rows, columns = self.shape
        place = f"{kind}(load(I, [i, j], [{rows}, {columns}]), axis={axis}, keepdims=True)"
        return f"broadcast(cast({place}, f32), [{rows}, {columns}])"

    def _inlined(self, depth: int) -> str:
        return f"mixed({self.tile(depth)}, {self.tile(depth)}, {self.pick('n', '2', 'n + 1')})"

    # Statements.

    def block(self, indent: str, statements: int, depth: int) -> None:
        for _ in range(statements):
            kind = self.pick("assign", "assign", "change", "if", "for", "while") if depth else "change"
            getattr(self, f"_write_{kind}")(indent, depth)

    def _write_assign(self, indent: str, depth: int) -> None:
        name = f"x{len(self.tiles)}"
        self.lines.append(f"{indent}{name} = {self.tile(2)}")
        self.tiles.append(name)

    def _write_change(self, indent: str, depth: int) -> None:
        self.lines.append(f"{indent}{self.pick(*self.tiles)} = {self.tile(1)}")

    def _inner(self, indent: str, depth: int) -> None:
        known = list(self.tiles)
        self.block(indent + "    ", self.draw(st.integers(1, 2)), depth - 1)
        self.tiles = known

    def _write_if(self, indent: str, depth: int) -> None:
        self.lines.append(f"{indent}if {self.pick('n > 2', 'p == 0', 'j < N - 20 and n != 1', 'not n == 3')}:")
        self._inner(indent, depth)
        if self.draw(st.booleans()):
            self.lines.append(f"{indent}else:")
            self._inner(indent, depth)

    def _write_for(self, indent: str, depth: int) -> None:
        self.loops += 1
        bounds = self.pick("n", "n, 0, -2", "0, n, 2", "2", "n, n")
        self.lines.append(f"{indent}for k{self.loops} in range({bounds}):")
        self._inner(indent, depth)

    def _write_while(self, indent: str, depth: int) -> None:
        self.loops += 1
        counter = f"c{self.loops}"
        self.lines += [f"{indent}{counter} = n", f"{indent}while {counter} > 1:"]
        self._inner(indent, depth)
        self.lines.append(f"{indent}    {counter} -= 2")


@st.composite
def programs(draw: Draw) -> Program:
    """A random program and its inputs."""
    shape = draw(st.sampled_from([(16, 16), (16, 32), (32, 16), (32, 32), (16, 48)]))
    writer = _Writer(draw, shape, [], ["x0"])
    writer.lines.append(f"    x0 = load(A, [i, j], [{shape[0]}, {shape[1]}])")
    writer.block("    ", draw(st.integers(1, 4)), 2)
    body = "\n".join(writer.lines)
    text = f"{HEAD.format(*shape)}{body}\n    store(OUT, [i, j], {writer.tile(1)})\n"
    m, n, k = draw(st.integers(1, 40)), draw(st.integers(1, 60)), 32
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    arrays = {
        "A": rng.integers(-4, 5, (m, n)).astype(np.float32),
        "B": rng.integers(-2, 3, (k, n)).astype(np.float32),
        "I": rng.integers(-5, 6, (m, n)).astype(np.int32),
        "OUT": np.zeros((m, n), np.float32),
    }
    return Program(text, arrays, {"n": draw(st.integers(0, 5)), "s": float(draw(st.integers(-3, 3)))})
