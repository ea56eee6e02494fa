"""Passes of MLIR itself, by name, on modules of ours."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from hkc.dialects.forms import FORMS, walk
from hkc.support.errors import Diagnostic, HkcUsageError
from hkc.support.mlir import passmanager

COMMON = ("canonicalize", "cse", "loop-invariant-code-motion", "symbol-dce")
"""Those that are useful on their own. Any other that the bindings register can be run as well."""


def run_builtin(module: Any, name: str, forms: frozenset[str], ours: Iterable[str]) -> frozenset[str]:
    """Run a pass of MLIR; returns the forms that still hold. `ours` are names for the hint about an unknown one.

    Raises `HkcUsageError` HK476 where MLIR has no such pass.
    """
    try:
        manager = passmanager.PassManager.parse(f"builtin.module({name})")
    except ValueError:
        near = get_close_matches(name.replace("-", "_"), [*ours, *COMMON], n=1)
        hint = f"did you mean {near[0]}?" if near else "`hkc opt --list` names ours"
        raise HkcUsageError(Diagnostic("HK476", f"there is no pass `{name}`", hint=hint)) from None
    manager.run(module.operation)
    ops = walk(module)
    return frozenset(form for form in forms if FORMS[form].check(ops) is None)
