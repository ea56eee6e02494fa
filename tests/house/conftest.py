"""The checkout as the house rules see it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("frontend", "dialects", "passes", "targets")
FOLDERS = (*STAGES, "hkc", "tests", "bench", "docs", "examples", ".ci")


def _files(folder: Path) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        if entry.is_symlink() or entry.name == "__pycache__" or entry.name.startswith("."):
            continue
        if entry.is_dir():
            yield from _files(entry)
        else:
            yield entry.relative_to(ROOT)


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout's folder."""
    return ROOT


@pytest.fixture(scope="session")
def stages() -> tuple[str, ...]:
    """The folders at the top that are linked into hkc/."""
    return STAGES


@pytest.fixture(scope="session")
def files() -> tuple[Path, ...]:
    """Every file that belongs to the project, relative to the checkout, each once (links are not followed)."""
    top = (path.relative_to(ROOT) for path in ROOT.iterdir() if path.is_file() and not path.name.startswith(".git"))
    inside = (path for name in FOLDERS if (ROOT / name).is_dir() for path in _files(ROOT / name))
    return (*sorted(top), *inside)


@pytest.fixture(scope="session")
def sources(files: tuple[Path, ...]) -> tuple[Path, ...]:
    """The Python files among them."""
    return tuple(path for path in files if path.suffix == ".py")
