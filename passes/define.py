"""What a pass is: a frozen dataclass whose fields are its options, with the forms it needs, gives and drops."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from hkc.dialects.forms import FORMS, walk
from hkc.support.errors import HkcBug
from hkc.targets.chip import Chip


@dataclass(frozen=True)
class Pass:
    """One step on a module. Subclasses set `name` and the forms, and define `run`.

    The docstring of a subclass holds `Before::` and `After::` IR, which a test executes.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[frozenset[str]] = frozenset()
    drops: ClassVar[frozenset[str]] = frozenset()

    def run(self, module: Any, chip: Chip) -> None:
        """Change `module` in place for `chip`. Raises `HkcError` for what the kernel author can mend."""
        raise NotImplementedError


def forms_after(held: frozenset[str], step: Pass) -> frozenset[str]:
    """The forms that hold after a pass. Raises `HkcBug` where one that it needs does not hold before."""
    missing = step.needs - held
    if missing:
        raise HkcBug(f"pass `{step.name}` needs the forms {', '.join(sorted(missing))}")
    return (held - step.drops) | step.gives


def check_forms(module: Any, names: frozenset[str], after: str) -> None:
    """Raise `HkcBug` where a form that should hold does not."""
    ops = walk(module)
    for name in sorted(names):
        why = FORMS[name].check(ops)
        if why:
            raise HkcBug(f"after `{after}`: {why}")


def dump(module: Any, name: str) -> None:
    """With `HKC_DUMP=1`, leave the module as the next numbered file in the folder `hkc-dump`."""
    if os.environ.get("HKC_DUMP") != "1":
        return
    folder = Path("hkc-dump")
    folder.mkdir(exist_ok=True)
    number = 1 + len(list(folder.iterdir()))
    (folder / f"{number:02}-{name}.mlir").write_text(str(module), encoding="utf-8")
