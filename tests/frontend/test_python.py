"""Kernels as Python functions: the same syntax, the same machine code, errors at the Python file's line."""

from __future__ import annotations

import importlib.util
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hkc
from hkc.frontend.check import check
from hkc.frontend.manual import made
from hkc.frontend.parse import parse
from hkc.frontend.python import read_function
from hkc.frontend.python_file import read_file
from hkc.support.errors import HkcError, Source
from hkc.support.worker import call
from hkc.targets.chip import names

ROOT = Path(__file__).parents[2]
TWINS = sorted((ROOT / "examples").glob("*.py"))
FIELD = sorted((ROOT / "tests" / "language" / "field").glob("*.hk"))
TEXTS = [
    *sorted((ROOT / "examples").glob("*.hk")),
    *sorted((ROOT / "tests" / "golden" / "frontend").glob("*.hk")),
    *FIELD,
]

IMPORTS = """from __future__ import annotations
import hkc
from hkc.language import {words}
"""


def module_of(path: Path) -> ModuleType:
    """A Python file as a module of its own."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_python(text: str) -> str:
    """A `.hk` text without references as the Python file that means the same: only its item lines differ."""
    text = re.sub(r"(?ms)^reference.*?(?=^\S|\Z)", "", text)
    text = re.sub(r"(?m)^example .*$", "", text)
    text = re.sub(r"(?m)^const (\w+) *= *(.*)$", r"\1 = \2", text)

    def tuned(line: re.Match[str]) -> str:
        parts = re.split(r",\s*(?=\w+ *= )", line.group(1))
        return "\n".join(re.sub(r"(\w+) *= *(.*)", r"\1 = tune(\2)", p) for p in parts)

    text = re.sub(r"(?m)^tune (.*)$", tuned, text)

    def header(line: re.Match[str]) -> str:
        hints = line.group(3) or ""
        return f"@hkc.kernel({hints})\ndef {line.group(1)}({line.group(2)}):"

    text = re.sub(r"(?ms)^kernel (\w+)\((.*?)\)(?: with ([^:]*))?:", header, text)
    return re.sub(r"\bglobal\[", "global_[", text)


def words() -> str:
    """All that a kernel can import."""
    from hkc.frontend.library import WORDS
    from hkc.support.dtypes import DTYPES

    return ", ".join([*sorted({*(WORDS - {"global"}), "global_", *DTYPES} - {"bool"}), "bool_", "tune", "inf", "nan"])


def kernels(module: ModuleType) -> list[hkc.PythonKernel]:
    return [v for v in vars(module).values() if isinstance(v, hkc.PythonKernel)]


@pytest.mark.parametrize("path", TWINS, ids=lambda p: p.stem)
@pytest.mark.parametrize("chip", names())
def test_python_gives_the_same_bytes(path: Path, chip: str) -> None:
    (kernel,) = kernels(module_of(path))
    text = hkc.compile(path.with_suffix(".hk"), chip)
    assert kernel.compile(chip).hsaco == text.hsaco
    assert kernel.compile(chip).info == text.info


def twin_of(path: Path, folder: Path) -> list[hkc.PythonKernel]:
    """The kernels of a text as a Python file has them."""
    twin = folder / f"{path.stem}.py"
    twin.write_text(IMPORTS.format(words=words()) + as_python(path.read_text()))
    return kernels(module_of(twin))


SHORT = ("rotary", "histogram")


@pytest.mark.parametrize(
    "path", [pytest.param(p, marks=[] if p.stem in SHORT else [pytest.mark.long], id=p.stem) for p in FIELD]
)
@pytest.mark.parametrize("chip", names())
def test_the_twins_of_the_field_give_the_same_bytes(path: Path, chip: str, tmp_path: Path) -> None:
    (kernel,) = twin_of(path, tmp_path)
    twin, text = kernel.compile(chip), hkc.compile(path, chip)
    assert (twin.hsaco, twin.info) == (text.hsaco, text.info)


@pytest.mark.parametrize("path", TEXTS, ids=lambda p: p.stem)
def test_every_text_is_python_too(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    irs = [call("hkc.frontend.emit:text", check(read_function(k.function))) for k in twin_of(path, tmp_path)]
    wanted = call("hkc.frontend.emit:text", check(parse(Source(path.name, text))))
    if len(irs) == 1:
        assert irs[0] == wanted
    else:  # a function knows the constants that it names, a kernel in a file all of the file's
        functions = [f for ir in irs for f in _functions(ir)]
        assert functions == _functions(wanted)


def _functions(ir: str) -> list[str]:
    return re.findall(r"(?ms)^  func\.func @.*?^  }", re.sub(r"constants = .*?, inputs", "inputs", ir))


def told(function: Callable[..., Any]) -> str:
    with pytest.raises(HkcError) as caught:
        check(read_function(getattr(function, "function", function)))
    return str(caught.value)


MISTAKES = '''from hkc import kernel
from hkc.language import Dim, cast, cdiv, f32, global_, load, range, store, tile_ids, tune

M = Dim
BIG = 100
word = "text"


def helper(x, y=2.0):
    """Twice."""
    return x * y + cast(x, BIG)


@kernel
def extent(A: global_[f32, M]):
    store(A, [0], load(A, [0], [BIG]))


@kernel
def within(A: global_[f32, M]):
    store(A, [0], helper(load(A, [0], [64])))


@kernel
def broken(A: global_[f32, M]):
    with open("x") as f:
        store(A, [0], load(A, [0], [64]))


@kernel
def chained(A: global_[f32, M], n: f32):
    ähnlich = load(A, [0], [64]); b = 1 if 0 < n < 3 else 2


@kernel
def untyped(A):
    store(A, [0], load(A, [0], [64]))


@kernel(wavs=4)
def hint(A: global_[f32, M]):
    store(A, [0], load(A, [0], [64]))


@kernel
def unknown(A: global_[f32, M]):
    for i in range(3):
        stor(A, [0], load(A, [0], [64]))


@kernel
def quoted(A: global_[f32, M]):
    i = tile_ids(cdiv(M, 64), order="chiplet")
    store(A, [i * 64], load(A, [0], [64]))


@kernel(schedule="PingPong")
def spoken(A: global_[f32, M]):
    store(A, [0], load(A, [0], [64]))
'''


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("extent", "mistakes.py:16:33: error[HK431]: a tile can't have the extent 100"),
        ("within", "mistakes.py:11:28: error[HK201]: a dtype is needed here, not the number 100"),
        ("broken", "mistakes.py:26:5: error[HK109]: `with` is not in the language"),
        ("chained", "mistakes.py:32:44: error[HK112]: comparisons can't be chained"),
        ("untyped", "mistakes.py:36:13: error[HK116]: the parameter `A` has no type"),
        ("hint", "mistakes.py:40:9: error[HK307]: unknown hint `wavs`"),
        ("unknown", "mistakes.py:48:9: error[HK301]: unknown function `stor`"),
        ("quoted", "hint: one of rows, chiplet, without quotes"),
        ("spoken", "hint: one of pingpong, interleave, plain; did you mean `pingpong`?"),
    ],
)
def test_mistakes_are_at_their_line(name: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "mistakes.py"
    path.write_text(MISTAKES)
    assert message in told(getattr(module_of(path), name))


def test_the_call_of_a_function_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "mistakes.py"
    path.write_text(MISTAKES)
    assert "mistakes.py:21:19: note: in the call of `helper` here" in told(module_of(path).within)


def test_tune_parameters_and_constants(tmp_path: Path) -> None:
    path = tmp_path / "tuned.py"
    path.write_text(
        IMPORTS.format(words=words())
        + "B = tune(64, [32, 64])\nNEG = -2.5\nLOW = -inf\n"
        + "@hkc.kernel\ndef k(A: global_[f32, M]):\n    store(A, [0], full[f32, B](NEG if LOW < 0.0 else 1.0))\n"
    )
    program = check(read_function(module_of(path).k.function), {"B": "32"})
    assert dict(program.constants) == {"B": 32, "NEG": -2.5, "LOW": -math.inf}
    assert program.candidates == (("B", (32, 64)),)


@pytest.mark.parametrize("name", ["softmax", "attention"])
def test_all_names_can_be_imported_at_once(name: str, tmp_path: Path) -> None:
    """Run and read, the file means the same; outside of kernels, Python's own names stay what they are."""
    path, twin = ROOT / "examples" / f"{name}.py", tmp_path / "twin.py"
    text = re.sub(r"(?m)^from hkc.language import (\([^)]*\)|.*)", STAR_LINE, path.read_text())
    assert STAR_LINE in text and text.count("hkc.language") == 1
    twin.write_text(f"{text}\nMOST = max(3, 4)\n")
    module = module_of(twin)
    (kernel,) = kernels(module)
    wanted = call("hkc.frontend.emit:text", check(read_function(kernels(module_of(path))[0].function)))
    for file in (read_function(kernel.function), read_file(Source(str(twin), twin.read_text()))):
        assert call("hkc.frontend.emit:text", check(file)) == wanted
    assert module.MOST == 4


STAR_LINE = "from hkc.language import *"


def test_the_names_do_nothing_outside_of_kernels() -> None:
    from hkc import language

    assert language.global_[language.f32, language.Dim] is language.global_
    with pytest.raises(TypeError, match="inside a kernel"):
        language.load(1, 2)
    with pytest.raises(AttributeError, match="no `lod`"):
        _ = language.lod


def test_generated_files_are_fresh() -> None:
    stale = [str(path) for path, text in made().items() if not path.exists() or path.read_text("utf-8") != text]
    assert not stale, "run `python -m hkc.frontend.manual`"


@pytest.mark.long
def test_a_type_checker_is_content(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--strict", f"--cache-dir={tmp_path}", *map(str, TWINS)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert checked.returncode == 0, checked.stdout


WRONG = """import hkc
from hkc.language import Dim, f32, global_, load, store, sum, zeros, cast

M = Dim

@hkc.kernel
def k(A: global_[f32, M]) -> None:
    x = load(A, [0], [64])
    y = lood(A, [0], [64])
    z = load(A)
    store(A, [0], x, msk=x)
    w = sum(x, axes=0)
    v = cast(x, f32, saturating=True)
"""


@pytest.mark.long
def test_a_type_checker_sees_wrong_calls(tmp_path: Path) -> None:
    path = tmp_path / "wrong.py"
    path.write_text(WRONG, "utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", f"--cache-dir={tmp_path}", str(path)]
    checked = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    lines = [int(line.split(":")[1]) for line in checked.stdout.splitlines() if ": error:" in line]
    assert (checked.returncode, sorted(set(lines))) == (1, [9, 10, 11, 12, 13]), checked.stdout
