"""The compile-time values of a file: `const` and `tune` lines, and values given from outside in their place."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence

from hkc.frontend import syntax
from hkc.frontend.builder import Builder
from hkc.frontend.expressions import Expressions
from hkc.frontend.library import WORDS
from hkc.frontend.mistakes import shorten
from hkc.frontend.parse import read_number
from hkc.frontend.program import Value
from hkc.frontend.scope import Bound, Meaning, Number, Scope, Silenced, describe, predefined, suggestion
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Diagnostic, HkcError, HkcUsageError, Note, error


def constants(file: syntax.File, overrides: Mapping[str, str], diagnostics: list[Diagnostic]) -> dict[str, Bound]:
    """The names that all kernels of a file see. Raises `HkcUsageError` for overrides that don't fit."""
    known = [c.binding.name.name for c in file.constants]
    for word in overrides:
        if word not in known:
            hint = suggestion(word, known) or (f"it has {', '.join(known)}" if known else None)
            raise HkcUsageError(Diagnostic("HK305", f"{file.source.name} has no constant `{word}`", hint=hint))
    names = predefined()
    for constant in file.constants:
        name = constant.binding.name
        kind = "tune parameter" if constant.tunable else "constant"
        meaning: Meaning | None = None
        try:
            refuse_taken(name, names)
            meaning = _value(constant, kind, names)
        except HkcError as problem:
            diagnostics += problem.diagnostics
        except Silenced:
            pass
        if meaning is not None and name.name in overrides:
            meaning = _override(name.name, overrides[name.name], meaning)
        names.setdefault(name.name, Bound(meaning, kind, name.span))
    return names


def candidates(
    file: syntax.File, names: Mapping[str, Bound], diagnostics: list[Diagnostic]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The values that a search tries for each tune parameter that lists some; the default is one of them."""
    found = []
    for constant in file.constants:
        if constant.candidates is None:
            continue
        try:
            found.append((constant.binding.name.name, _candidates(constant, constant.candidates, names)))
        except HkcError as problem:
            diagnostics += problem.diagnostics
        except Silenced:
            pass
    return tuple(found)


def _candidates(constant: syntax.Constant, expr: syntax.Expr, names: Mapping[str, Bound]) -> tuple[int, ...]:
    if not isinstance(expr, syntax.Sequence):
        raise error("HK201", "candidates are a list", expr.span, hint="write [64, 128]")
    values = [compile_time(item, names, "a candidate") for item in expr.items]
    for item, value in zip(expr.items, values, strict=True):
        if not isinstance(value, int) or isinstance(value, bool):
            hint = "a value of another kind is a const"
            raise error("HK208", f"a tune parameter is a whole number, not {describe(value)}", item.span, hint=hint)
    default = compile_time(constant.binding.value, names, "the value of a tune parameter")
    if default not in values:
        raise error(
            "HK313",
            f"the default {default} is not among the candidates",
            constant.binding.value.span,
            expr.span,
            hint="choose one of them, or add it",
        )
    return tuple(v for v in values if isinstance(v, int))


def refuse_unmet(
    constraints: Sequence[syntax.Constraint], names: Mapping[str, Bound], diagnostics: list[Diagnostic]
) -> None:
    """Notes the constraints of tune parameters that don't hold for the values at hand."""
    for constraint in constraints:
        try:
            if not _holds(constraint, names):
                mentioned = syntax.names(constraint.condition)
                used = sorted({n for n in mentioned if n in names and names[n].span is not None})
                values = ", ".join(f"{n} = {names[n].meaning}" for n in used)
                hint = "choose values for which it holds"
                raise error("HK313", f"this constraint does not hold for {values}", constraint.span, hint=hint)
        except HkcError as problem:
            diagnostics += problem.diagnostics
        except Silenced:
            pass


def admits(
    constraints: Sequence[syntax.Constraint], constants: Sequence[tuple[str, Number | DType]], values: Mapping[str, int]
) -> bool:
    """Whether all constraints hold where tune parameters have these values instead of the file's."""
    names = predefined() | {name: Bound(values.get(name, value), "constant") for name, value in constants}
    return all(_holds(c, names) for c in constraints)


def _holds(constraint: syntax.Constraint, names: Mapping[str, Bound]) -> bool:
    value = compile_time(constraint.condition, names, "a constraint")
    if not isinstance(value, bool):
        hint = "compare: BM * BK <= 8192"
        raise error("HK204", f"a constraint is a condition, not {describe(value)}", constraint.span, hint=hint)
    return value


def refuse_taken(name: syntax.Name, names: Mapping[str, Bound]) -> None:
    """Raises `HkcError` where a new name is in use already, or a word of the language."""
    bound = names.get(name.name)
    if bound is not None:
        notes = (Note(f"`{name.name}` is defined here", bound.span),) if bound.span else ()
        raise error(
            "HK304", f"`{name.name}` is already a {bound.kind}", name.span, notes=notes, hint="choose another name"
        )
    if name.name in WORDS:
        raise error("HK304", f"`{name.name}` is a word of the language", name.span, hint="choose another name")


def compile_time(expr: syntax.Expr, names: Mapping[str, Bound], what: str) -> Meaning:
    """The value of an expression over constants. Raises `HkcError` where it is none."""
    operand = Expressions(Scope(ChainMap(dict(names))), Builder()).operand(expr)
    if isinstance(operand.meaning, Value):
        hint = "use numbers, and names made by const or tune"
        raise error("HK208", f"{what} must be known at compile time", operand.span, hint=hint)
    return operand.meaning


def _value(constant: syntax.Constant, kind: str, names: Mapping[str, Bound]) -> Meaning:
    expr = constant.binding.value
    meaning = compile_time(expr, names, f"the value of a {kind}")
    if constant.tunable and (not isinstance(meaning, int) or isinstance(meaning, bool)):
        raise error(
            "HK208", f"a tune parameter is a whole number, not {describe(meaning)}", expr.span, hint="use const"
        )
    return meaning


def _override(name: str, text: str, default: Meaning) -> Meaning:
    """The value that a text stands for, of the kind of the default. Raises `HkcUsageError`."""
    kind, value = _read(text, default)
    if value is None:
        hint = suggestion(text, DTYPES) if isinstance(default, DType) else None
        raise HkcUsageError(Diagnostic("HK305", f"`{name}` must be {kind}, not `{shorten(text)}`", hint=hint))
    return value


def _read(text: str, default: Meaning) -> tuple[str, Meaning | None]:
    """What kind of value the default is, and the text as one of that kind (None where it is none)."""
    match default:
        case DType():
            return "a dtype", DTYPES.get(text)
        case bool():
            return "true or false", {"true": True, "false": False}.get(text.lower())
        case int():
            value = read_number(text)
            return "a whole number", value if isinstance(value, int) and abs(value) < 2**63 else None
    return "a number", read_number(text)
