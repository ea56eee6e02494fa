"""Syntax to a checked program. Mistakes are collected statement by statement and raised together."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hkc.frontend import syntax
from hkc.frontend.builder import Builder
from hkc.frontend.constants import candidates, compile_time, constants, refuse_taken, refuse_unmet
from hkc.frontend.grid import Grid
from hkc.frontend.inline import Inliner
from hkc.frontend.parse import parse, read
from hkc.frontend.program import Checked, Kernel
from hkc.frontend.reference import check_references
from hkc.frontend.scope import Bound, Scope, Silenced, describe, given_by, suggestion
from hkc.frontend.signature import Signature
from hkc.frontend.statements import Statements
from hkc.support import collector
from hkc.support.dtypes import DType
from hkc.support.errors import Diagnostic, HkcError, HkcUsageError, Note, Span, error


def check_file(path: str | Path, overrides: Mapping[str, str] | None = None) -> Checked:
    """Reads, parses and checks a file. Raises `HkcError` with every mistake that was found."""
    return check(parse(read(path)), overrides)


@collector.held()
def check(file: syntax.File, overrides: Mapping[str, str] | None = None) -> Checked:
    """The checked program of a file, with `overrides` (NAME -> text) in place of its `const` and `tune` values.

    Raises `HkcError` with all mistakes in the order of the text, and `HkcUsageError` for overrides that don't fit.
    """
    diagnostics: list[Diagnostic] = []
    names = constants(file, overrides or {}, diagnostics)
    tried = candidates(file, names, diagnostics)
    refuse_unmet(file.constraints, names, diagnostics)
    functions = _functions(file, names, diagnostics)
    kernels: list[Kernel] = []
    places: dict[str, Span] = {}
    for kernel in file.kernels:
        name = kernel.name.name
        if name in places:
            note = Note("the first one is here", places[name])
            diagnostics += error(
                "HK304", f"a kernel `{name}` exists already", kernel.span, notes=(note,), hint="choose another name"
            ).diagnostics
        places.setdefault(name, kernel.span)
        kernels.append(_kernel(kernel, names, functions, diagnostics))
    examples = _examples(file.examples, names, kernels, diagnostics)
    check_references(file.references, names, kernels, diagnostics)
    if diagnostics:
        raise HkcError(*sorted(_unique(diagnostics), key=_position))
    values = tuple(
        (n, b.meaning) for n, b in names.items() if b.span and isinstance(b.meaning, (bool, int, float, DType))
    )
    return Checked(file.source, values, tried, file.constraints, tuple(kernels), examples, file.references)


def only(checked: Checked, name: str) -> Checked:
    """A checked file with one of its kernels, and the references that this needs. Raises `HkcUsageError` HK305 where
    none has this name."""
    chosen = next((k for k in checked.kernels if k.name == name), None)
    if chosen is None:
        known = [k.name for k in checked.kernels]
        hint = suggestion(name, known) or f"there are {', '.join(known)}"
        raise HkcUsageError(Diagnostic("HK305", f"{checked.source.name} has no kernel `{name}`", hint=hint))
    wanted, given = set(chosen.outputs), {p.name for p in chosen.params}
    kept: list[syntax.Binding] = []
    for reference in reversed(checked.references):
        if reference.name.name in wanted:
            kept.insert(0, reference)
            wanted |= set(syntax.names(reference.value)) - given
    return replace(checked, kernels=(chosen,), references=tuple(kept))


def _functions(
    file: syntax.File, names: Mapping[str, Bound], diagnostics: list[Diagnostic]
) -> dict[str, syntax.Function]:
    """The functions of a file by name; each is checked where it is called."""
    found: dict[str, syntax.Function] = {}
    for function in file.functions:
        name = function.name
        try:
            refuse_taken(name, names)
            if name.name in found:
                note = Note("the first one is here", found[name.name].span)
                hint = "choose another name"
                raise error("HK304", f"a function `{name.name}` exists already", name.span, notes=(note,), hint=hint)
            _refuse_repeated(function)
        except HkcError as problem:
            diagnostics += problem.diagnostics
        found.setdefault(name.name, function)
    return found


def _refuse_repeated(function: syntax.Function) -> None:
    seen: dict[str, Span] = {}
    for formal in function.parameters:
        if formal.name.name in seen:
            note = Note("the first one is here", seen[formal.name.name])
            raise error(
                "HK304",
                f"a parameter `{formal.name.name}` exists already",
                formal.span,
                notes=(note,),
                hint="choose another name",
            )
        seen[formal.name.name] = formal.span


def _kernel(
    kernel: syntax.Kernel,
    names: Mapping[str, Bound],
    functions: Mapping[str, syntax.Function],
    diagnostics: list[Diagnostic],
) -> Kernel:
    builder = Builder()
    signature = Signature(dict(names), builder, diagnostics)
    signature.declare(kernel.parameters)
    hints = signature.hints(kernel.hints)
    grid = Grid()
    inliner = Inliner(functions, names, diagnostics, kernel.name.name)
    Statements(Scope(ChainMap(signature.names)), builder, diagnostics, grid, inliner).body(kernel.body)
    return Kernel(
        kernel.name.name,
        tuple(signature.params),
        tuple(signature.arguments),
        grid.extents,
        hints,
        tuple(builder.ops),
        kernel.span,
        tuple(builder.functions),
        tuple(signature.conditions),
    )


def _examples(
    bindings: Sequence[syntax.Binding],
    names: Mapping[str, Bound],
    kernels: Sequence[Kernel],
    diagnostics: list[Diagnostic],
) -> tuple[tuple[str, int | float], ...]:
    """The values of dims and scalars that a run uses where nothing else is said."""
    dims = {d for k in kernels for d in k.dims}
    scalars = {s for k in kernels for s in k.scalars}
    found: dict[str, int | float] = {}
    for binding in bindings:
        name = binding.name
        try:
            if name.name not in dims | scalars:
                hint = suggestion(name.name, sorted(dims | scalars)) or given_by(dims | scalars)
                raise error("HK310", f"no kernel has a dim or scalar `{name.name}`", name.span, hint=hint)
            if name.name in found:
                raise error(
                    "HK310", f"`{name.name}` has an example value already", name.span, hint="leave one of them out"
                )
            value = compile_time(binding.value, names, "an example value")
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise error(
                    "HK310",
                    f"an example value is a number, not {describe(value)}",
                    binding.value.span,
                    hint=f"{name.name} = 64",
                )
            if name.name in dims and not (isinstance(value, int) and 0 <= value < 2**63):
                hint = f"{name.name} = 64"
                raise error("HK310", f"an extent is a whole number from 0, not {value}", binding.value.span, hint=hint)
            found[name.name] = value
        except HkcError as problem:
            diagnostics += problem.diagnostics
        except Silenced:
            pass
    return tuple(found.items())


def _unique(diagnostics: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Each mistake once: a function that is called twice makes its mistakes twice."""
    return list({(d.code, d.message, d.spans): d for d in reversed(diagnostics)}.values())


def _position(diagnostic: Diagnostic) -> tuple[int, int]:
    return (diagnostic.spans[0].line, diagnostic.spans[0].column) if diagnostic.spans else (0, 0)
