"""The page about instructions says what is so."""

import importlib.util
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def coverage() -> ModuleType:
    spec = importlib.util.spec_from_file_location("isa_coverage", ROOT / "bench" / "isa_coverage.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_fresh() -> None:
    assert (ROOT / "docs/reference/isa.md").read_text(encoding="utf-8") == coverage().page(), (
        "run `python bench/isa_coverage.py --record`"
    )


def test_nothing_that_is_executed_lacks_a_test() -> None:
    assert "| untested |" not in coverage().page()
