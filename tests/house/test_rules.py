"""House rules that no other tool checks: sizes, names, places. (Docstrings, complexity and style: ruff.)"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

MAX_FILE = 400
MAX_FUNCTION = 50
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
CHIP = re.compile(r"\bgfx\d+[a-z]?\b|\bMI\d{3}[A-Z]?\b")
MAY_NAME_CHIPS = {"targets", "bench", "tests"}
MACHINE_PATH = re.compile(r"(?<![\w.}/-])/(?:work|home|root|tmp)/|\.\./shared\b")


def test_the_stage_folders_are_links(root: Path, stages: tuple[str, ...]) -> None:
    for stage in stages:
        link = root / "hkc" / stage
        assert link.is_symlink(), (
            f"hkc/{stage} is not a symbolic link to ../{stage}: this checkout or copy did not keep symbolic links "
            "(git: core.symlinks=true; copying: cp -a; archives: tar, not zip)"
        )
        assert link.readlink() == Path("..", stage)
        assert link.is_dir()


def test_files_are_short(root: Path, sources: tuple[Path, ...]) -> None:
    lengths = {str(path): len((root / path).read_text().splitlines()) for path in sources}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_FILE} == {}


def test_functions_are_short(root: Path, sources: tuple[Path, ...]) -> None:
    long = {
        f"{path}:{function.lineno} {function.name}": lines
        for path in sources
        for function in _functions(root / path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > MAX_FUNCTION
    }
    assert long == {}


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_chips_are_named_in_data_alone(root: Path, sources: tuple[Path, ...]) -> None:
    assert _lines(root, (path for path in sources if path.parts[0] not in MAY_NAME_CHIPS), CHIP) == []


def test_modules_are_named_for_what_they_do(sources: tuple[Path, ...]) -> None:
    assert [str(path) for path in sources if VAGUE & {path.stem, *path.parts}] == []


def test_no_path_of_one_machine(root: Path, files: tuple[Path, ...]) -> None:
    """A folder of somebody's machine in a file means that it works only there."""
    assert _lines(root, (path for path in files if path.name != Path(__file__).name), MACHINE_PATH) == []


def _lines(root: Path, paths: Iterator[Path], pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        for number, line in enumerate((root / path).read_text(errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
