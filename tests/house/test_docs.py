"""The documents say what is so: quoted code is the code, every dependency is explained, links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

LINK = re.compile(r"\]\((?!https?:)([^)#]+)")
PACKAGE = re.compile(r"[\w-]+")


def test_the_readme_quotes_the_example(root: Path) -> None:
    assert (root / "examples/gemm.hk").read_text() in (root / "README.md").read_text()


def test_every_dependency_is_explained(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    wanted = [
        *project["dependencies"],
        *(line for extra in project["optional-dependencies"].values() for line in extra),
    ]
    names = {match.group() for line in wanted if (match := PACKAGE.match(line))}
    text = (root / "docs/dependencies.md").read_text()
    assert sorted(name for name in names if f"`{name}`" not in text) == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/architecture.md", "docs/dependencies.md"])
def test_links_lead_somewhere(root: Path, page: str) -> None:
    path = root / page
    assert [link for link in LINK.findall(path.read_text()) if not (path.parent / link).exists()] == []
