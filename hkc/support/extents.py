"""Integer expressions over symbolic dims, kept as text: `cdiv(M, 128)`, `M * 2 + 1`. Evaluated without `eval`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_CALLS: dict[str, Callable[..., int]] = {"cdiv": lambda a, b: -(-a // b), "min": min, "max": max}


def evaluate(text: str | int, names: Mapping[str, int]) -> int:
    """The value of an extent expression. Raises `KeyError` for an unknown name, `ValueError` for another form."""
    return text if isinstance(text, int) else _value(ast.parse(text, mode="eval").body, names)


def names_in(text: str | int) -> frozenset[str]:
    """The symbolic names that an extent expression mentions."""
    if isinstance(text, int):
        return frozenset()
    nodes = ast.walk(ast.parse(text, mode="eval"))
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and node.id not in _CALLS)


def _value(node: ast.expr, names: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(v)):
            return v
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=x):
            return -_value(x, names)
        case ast.BinOp(left=a, op=op, right=b) if type(op) in _BINARY:
            return _BINARY[type(op)](_value(a, names), _value(b, names))
        case ast.Call(func=ast.Name(id=name), args=args) if name in _CALLS:
            return _CALLS[name](*(_value(a, names) for a in args))
    raise ValueError(f"not an extent expression: {ast.unparse(node)}")
