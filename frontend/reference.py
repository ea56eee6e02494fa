"""The oracle of a file: its `reference` formulas, checked and evaluated with NumPy, without `eval`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hkc.frontend import syntax
from hkc.frontend.program import Checked, Kernel
from hkc.frontend.scope import Bound, given_by, suggestion
from hkc.machine.abi import GlobalParam
from hkc.support.dtypes import DType
from hkc.support.errors import Diagnostic, HkcError, Span, error

REDUCTIONS = ("sum", "prod", "max", "min")
ELEMENT_WISE = {
    **dict.fromkeys(("exp", "exp2", "log", "log2", "sqrt", "sin", "cos", "tanh", "floor", "ceil", "abs"), 1),
    "maximum": 2, "minimum": 2, "where": 3,
}  # fmt: skip
"""NumPy functions by name, with their number of arguments."""
_OF_NOTHING = {"max": float("-inf"), "min": float("inf")}
FUNCTIONS = (*REDUCTIONS, *ELEMENT_WISE)

_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a / b,
    "//": lambda a, b: a // b, "%": lambda a, b: a % b, "**": lambda a, b: a**b, "@": lambda a, b: a @ b,
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}  # fmt: skip


def evaluate(checked: Checked, names: Mapping[str, Any]) -> dict[str, Any]:
    """The outputs that the references of a file give, by parameter name, as float64 arrays.

    `names` holds float64 arrays by tensor name, and the values of dims and scalars. Raises `HkcError` at the formula
    where shapes don't go together.
    """
    import numpy as np

    tensors = {p.name for k in checked.kernels for p in k.params if isinstance(p, GlobalParam)}
    known = {n: v for n, v in checked.constants if not isinstance(v, DType)} | {
        "inf": np.inf,
        "nan": np.nan,
        "True": True,
        "False": False,
    }
    known |= names
    outputs: dict[str, Any] = {}
    with np.errstate(all="ignore"):
        for reference in checked.references:
            name = reference.name.name
            known[name] = _value(reference.value, known)
            if name in tensors:
                outputs[name] = np.asarray(known[name], np.float64)
    return outputs


def _value(expr: syntax.Expr, names: Mapping[str, Any]) -> Any:
    try:
        match expr:
            case syntax.Number(value=value):
                return value
            case syntax.Name(name=name):
                return names[name]
            case syntax.Unary(op=op, operand=operand):
                return -_value(operand, names) if op == "-" else _value(operand, names)
            case syntax.Binary(op=op, left=left, right=right):
                return _OPERATORS[op](_value(left, names), _value(right, names))
            case syntax.Attribute(base=base):
                return _value(base, names).T
            case syntax.Call():
                return _call(expr, names)
    except (ValueError, TypeError, ArithmeticError, AttributeError) as problem:
        hint = "formulas are NumPy: extents must broadcast"
        raise error("HK310", f"this formula can't be evaluated: {problem}", expr.span, hint=hint) from None
    except KeyError as problem:
        raise error(
            "HK310", f"{problem} has no value", expr.span, hint="give it one on the example line, or with --set"
        ) from None
    raise AssertionError(f"not checked: {expr}")


def _call(call: syntax.Call, names: Mapping[str, Any]) -> Any:
    import numpy as np

    assert isinstance(call.callee, syntax.Name)
    arguments = [_value(a, names) for a in call.arguments]
    keywords = {k.name.name: _value(k.value, names) for k in call.keywords}
    if call.callee.name in _OF_NOTHING:  # as the language has it, a fold over no elements gives what changes nothing
        keywords["initial"] = _OF_NOTHING[call.callee.name]
    return getattr(np, call.callee.name)(*arguments, **keywords)


def check_references(
    references: Sequence[syntax.Binding],
    constants: Mapping[str, Bound],
    kernels: Sequence[Kernel],
    diagnostics: list[Diagnostic],
) -> None:
    """Notes what is wrong with the formulas: names and functions that don't exist, results that nothing uses."""
    tensors = {p.name for k in kernels for p in k.params if isinstance(p, GlobalParam)}
    known = set(constants) | tensors | {n for k in kernels for n in (*k.dims, *k.scalars)}
    used: set[str] = set()
    for reference in references:
        try:
            _check(reference.value, known, used)
        except HkcError as problem:
            diagnostics += problem.diagnostics
        known.add(reference.name.name)
    for reference in references:
        name = reference.name
        if name.name not in tensors | used:
            diagnostics += error(
                "HK310",
                f"no kernel has a tensor `{name.name}`",
                name.span,
                hint=suggestion(name.name, sorted(tensors)) or given_by(tensors),
            ).diagnostics


def _check(expr: syntax.Node, known: set[str], used: set[str]) -> None:
    match expr:
        case syntax.Name(name=name):
            if name not in known:
                hint = suggestion(name, sorted(known)) or given_by(known)
                raise error("HK301", f"unknown name `{name}`", expr.span, hint=hint)
            used.add(name)
        case syntax.Attribute(base=base, name=word):
            if word.name != "T":
                raise error("HK310", f"references have no `.{word.name}`", word.span, hint="only `.T`")
            _check(base, known, used)
        case syntax.Call():
            _check_call(expr)
            for part in (*expr.arguments, *(k.value for k in expr.keywords)):
                _check(part, known, used)
        case _:
            _refuse_unknown(expr)
            for child in syntax.children(expr):
                _check(child, known, used)


def _refuse_unknown(expr: syntax.Node) -> None:
    """Raises `HkcError` for what kernels have and references don't."""
    match expr:
        case syntax.Index() | syntax.Sequence() | syntax.Several():
            raise error(
                "HK310", "references have no lists and no indexing", expr.span, hint="compute with whole arrays"
            )
        case syntax.Conditional() | syntax.Text():
            raise error("HK310", "references are formulas of arrays and numbers", expr.span, hint="where(c, a, b)")
        case syntax.Unary(op=op) | syntax.Binary(op=op) if op not in _OPERATORS:
            raise error("HK310", f"references have no `{op}`", expr.span, hint="choose with where(c, a, b)")


def _check_call(call: syntax.Call) -> None:
    name = call.callee.name if isinstance(call.callee, syntax.Name) else ""
    if name not in FUNCTIONS:
        raise error(
            "HK310",
            f"references have no function `{name}`" if name else "only functions can be called",
            call.callee.span,
            hint=suggestion(name, FUNCTIONS) or f"there are {', '.join(FUNCTIONS)}",
        )
    wanted = ELEMENT_WISE.get(name, 1)
    if len(call.arguments) != wanted:
        raise _arguments(
            f"`{name}` takes {wanted} unnamed argument{'s' if wanted > 1 else ''} in a reference", call.span, name
        )
    for keyword in call.keywords:
        if name not in REDUCTIONS or keyword.name.name not in ("axis", "keepdims"):
            raise _arguments(f"`{name}` has no argument `{keyword.name.name}`", keyword.name.span, name)


def _arguments(message: str, span: Span, name: str) -> HkcError:
    return error(
        "HK211", message, span, hint=f"{name}(x, axis=1, keepdims=True)" if name in REDUCTIONS else f"{name}(…)"
    )
