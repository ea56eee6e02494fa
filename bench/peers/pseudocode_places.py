"""Variables of the pseudocode, their parts, and literals."""

from __future__ import annotations

import math
from typing import Any, Protocol

from peers.pseudocode_values import Value, as_type, convert, from_float, integer, parse_type

Place = tuple[str, list[tuple[str, Any]]]
"""A variable and what follows its name: types, bits, slices."""


class Unsupported(Exception):
    """The interpreter does not know something that the text uses."""


class Machine(Protocol):
    """What places need of a machine."""

    variables: dict[str, Any]
    written: dict[str, int]
    kind: dict[str, str]


def literal(token: str) -> Value:
    """A number as it stands in the text."""
    width, _, body = token.rpartition("'")
    if "." in body:
        bits = int(width) if width else 32 if body.endswith("F") else 64
        return from_float(float(body.rstrip("F")), bits)
    kind = "u" if "U" in body else "i"
    default = 64 if body.endswith("LL") else 32
    if body.endswith("F") and not body.startswith("0x"):
        return from_float(float(body[:-1]), 32)
    return Value(kind, int(width) if width else default, int(body.rstrip("UL"), 0))


def constant(name: str, accessors: list[tuple[str, Any]]) -> Value:
    """The named constants of the guides, `INF` or `INF.f16`."""
    known = {"INF": math.inf, "NAN": math.nan, "PI": math.pi}
    if name not in known:
        raise Unsupported(name)
    return from_float(known[name], parse_type(accessors[0][1])[1] if accessors else 64)


def read(m: Machine, place: Place) -> Value:
    """The value of a variable, a constant, or a part of one."""
    name, accessors = place
    value = m.variables[name] if name in m.variables else constant(name, accessors)
    return read_part(m, value, accessors)


def read_part(m: Machine, value: Any, accessors: list[tuple[str, Any]]) -> Value:
    """What types, bits and slices behind a value make of it."""
    for what, detail in accessors:
        if what == "type":
            value = as_type(value, *parse_type(detail))
        elif what == "bit" and isinstance(value, list):
            value = value[integer(detail(m))]
        elif what == "bit":
            value = Value("u", 1, value.bits >> integer(detail(m)) & 1)
        else:
            low, width, backwards = _range(m, what, detail)
            bits = value.bits >> low & (1 << width) - 1
            if backwards:
                bits = int(f"{bits:0{width}b}"[::-1], 2)
            value = Value("u" if value.kind == "u" else "b", width, bits)
    result: Value = value
    return result


def _range(m: Machine, what: str, detail: Any) -> tuple[int, int, bool]:
    first, second = (integer(x(m)) for x in detail)
    if what == "part":
        return first, second, False
    return min(first, second), abs(first - second) + 1, first < second


def write(m: Machine, place: Place, value: Value) -> None:
    """Assign to a variable or to a part of one."""
    name, accessors = place
    old = m.variables.get(name, Value("b", 128, 0))
    if not accessors:
        known = name in m.variables and name.startswith(("D", "S"))
        m.variables[name] = as_type(value, "b", 64) if known else value
        m.written[name] = (1 << value.width) - 1
        m.kind[name] = f"{value.kind}{value.width}"
        return
    if isinstance(old, list):
        old[integer(accessors[0][1](m))] = value
        return
    low, width, kind = 0, old.width, "b"
    for what, detail in accessors:
        if what == "type":
            kind, width = parse_type(detail)
        elif what == "bit":
            low, width = low + integer(detail(m)), 1
        else:
            start, width, _ = _range(m, what, detail)
            low += start
    if (kind in ("f", "bf") and value.kind != "b") or value.kind == "r":
        value = convert(value, kind, width)
    mask = (1 << width) - 1
    bits = as_type(value, "b", width).bits if value.width >= width else integer(value) & mask
    m.variables[name] = Value(old.kind, max(old.width, low + width), old.bits & ~(mask << low) | bits << low)
    m.written[name] = m.written.get(name, 0) | mask << low
    m.kind[name] = f"{kind}{width}"
