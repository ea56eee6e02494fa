"""The IR in a pass's docstring, made into a module and run. The functions from `run_pass` on are for the worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

GENERIC = re.compile(r'(?:([%\w, ]+) = )?"[\w.]+"\(([^)]*)\)(?: \{[^}]*\})? : \((.*)\) -> (.*)$')
CUSTOM = re.compile(r"([%\w]+) = (?:arith|math)\.\w+ ([%\w, ]+) : (\S+)$")
ATTRIBUTES = '{hkc.kernel, hkc.entry = "aligned", hkc.waves = 1 : i64, hkc.grid = ["1"], hkc.hints = {}}'


def blocks(doc: str) -> dict[str, list[str]]:
    """The indented blocks of a docstring by the word in front of them (`Before`, `After`)."""
    found: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for line in doc.splitlines():
        if line.strip() and not line.startswith(" "):
            lines = found.setdefault(line.strip(" :"), []) if line.rstrip().endswith("::") else None
        elif lines is not None and line.strip():
            lines.append(line[4:])
    return found


def as_kernel(lines: list[str]) -> str:
    """A module of these lines. Lines without a function become the body of a kernel: its free values are arguments,
    and what nobody uses is kept alive by an unknown op."""
    text = re.sub(r"\n\s+:", " :", "\n".join(lines))
    if "func.func" in text or "llvm.func" in text:
        return text
    body = text.splitlines()
    aliases = [line for line in body if line.startswith("#")]
    body = [line for line in body if not line.startswith("#")]
    defined: dict[str, str] = {}
    used: dict[str, str] = {}
    for line in body:
        results, operands = _values(line)
        for name, kind in operands:
            used.setdefault(name, kind)
        defined |= dict(results)
    head = ", ".join(f"{n}: {t}" for n, t in used.items() if n not in defined)
    keep = [f'"test.keep"({n}) : ({t}) -> ()' for n, t in defined.items() if n not in used]
    inside = "\n  ".join([*body, *keep, "return"])
    return "\n".join([*aliases, f"func.func @k({head}) attributes {ATTRIBUTES} {{\n  {inside}\n}}\n"])


def _values(line: str) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The results and the operands of an op, with their types."""
    line = line.strip()
    if found := GENERIC.match(line):
        results, operands, kinds, given = found.groups()
        return list(_typed(results or "", given.strip("()"))), list(_typed(operands, kinds))
    if found := CUSTOM.match(line):
        result, operands, kind = found.groups()
        return [(result, kind)], [(name.strip(), kind) for name in operands.split(",")]
    raise ValueError(f"this line of an example has no form that the test knows: {line}")


def _typed(names: str, kinds: str) -> Iterator[tuple[str, str]]:
    listed = [n.strip() for n in names.split(",") if n.strip()]
    yield from zip(listed, split_types(kinds), strict=True)


def split_types(text: str) -> list[str]:
    """Types of a list, split at the commas outside brackets and quotes."""
    depth, quoted, parts = 0, False, [""]
    for c in text:
        quoted ^= c == '"'
        depth += not quoted and c in "<([{"
        depth -= not quoted and c in ">)]}"
        if c == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts if p.strip()]


def directives(lines: list[str]) -> str:
    """`After` lines as FileCheck directives: a `%name` is any SSA name, the same wherever it is written again."""
    known: set[str] = set()

    def variable(found: re.Match[str]) -> str:
        name = found[1]
        first = name not in known
        known.add(name)
        return f"[[{name}:%[A-Za-z0-9_#]+]]" if first else f"[[{name}]]"

    return "\n".join("CHECK: " + re.sub(r"%([A-Za-z]\w*)", variable, line.strip()) for line in lines)


def run_pass(module: str, name: str, text: str, arch: str) -> str:
    """A module after the pass `name` of the Python module `module`."""
    import importlib

    from hkc.dialects.load import load
    from hkc.passes.define import check_forms
    from hkc.support.mlir import context, ir
    from hkc.targets.chip import load as load_chip

    step: Any = getattr(importlib.import_module(module), name)()
    with context() as made, ir.Location.unknown():
        made.allow_unregistered_dialects = True
        load()
        parsed = ir.Module.parse(text)
        step.run(parsed, load_chip(arch))
        assert parsed.operation.verify()
        if "test.keep" not in text:
            check_forms(parsed, step.gives, step.name)
        return str(parsed)


def form_holds(name: str, text: str) -> str | None:
    """Why a form does not hold of a module, or None."""
    from hkc.dialects.forms import FORMS, walk
    from hkc.dialects.load import load
    from hkc.support.mlir import context, ir

    with context(), ir.Location.unknown():
        load()
        module = ir.Module.parse(text)  # the ops live only as long as their module
        return FORMS[name].check(walk(module))


def form_names() -> list[str]:
    from hkc.dialects.forms import FORMS

    return list(FORMS)


def pass_order() -> list[tuple[str, str, str, str, list[str], list[str], list[str]]]:
    """The passes of the pipeline in order: stage, module, class, docstring, and the forms they need, give and drop."""
    from hkc.pipeline import stages

    return [
        (
            stage,
            type(p).__module__,
            type(p).__name__,
            type(p).__doc__ or "",
            sorted(p.needs),
            sorted(p.gives),
            sorted(p.drops),
        )
        for stage, passes in stages().items()
        for p in passes
    ]
