"""Whatever goes wrong: a located text on stderr, the right exit code, no traceback, nothing half-written."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hkc as package
from hkc.support import worker

Command = Callable[..., Any]
MISTAKES = sorted((Path(__file__).parents[1] / "mistakes").glob("*.hk"))
ROOT = Path(package.__file__).parents[1]


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.stem)
def test_broken_files(hkc: Command, path: Path) -> None:
    expected = path.with_suffix(".txt").read_text()
    for words in (("compile", path, "--arch", "gfx942,gfx950", "-o", "out"), ("run", path, "--arch", "gfx942")):
        ran = hkc(*words)
        assert (ran.code, ran.out) == (1, "")
        assert re.match(rf"{re.escape(str(path))}:\d+:\d+: error\[HK\d+\]: .", ran.err)
        assert ran.err.replace(str(path), path.name) == expected
    assert not list(Path().iterdir())


def test_files_that_are_none(hkc: Command) -> None:
    Path("empty.hk").write_text("")
    Path("binary.hk").write_bytes(b"\x7fELF\0\0\1")
    Path("latin.hk").write_bytes(b"# \xe9\n")
    Path("folder.hk").mkdir()
    for name, expected in (
        ("missing.hk", "error[HK121]: can't read `missing.hk`: no such file or directory"),
        ("folder.hk", "error[HK121]: can't read `folder.hk`: is a directory"),
        ("binary.hk", "error[HK121]: `binary.hk` is a binary file, not a kernel"),
        ("latin.hk", "error[HK121]: `latin.hk` is not UTF-8 text"),
        ("empty.hk", "empty.hk:1:1: error[HK122]: no kernel in this file"),
    ):
        ran = hkc("compile", name, "--arch", "gfx942", "-o", "out")
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(expected)
    assert not Path("out").exists()


def test_too_much_lds(hkc: Command, examples: Path) -> None:
    ran = hkc("compile", examples / "gemm.hk", "--arch", "gfx942", "--set", "BM=256,BN=128,BK=256", "-o", "out")
    assert (ran.code, ran.out) == (1, "")
    assert re.match(
        rf"{re.escape(str(examples / 'gemm.hk'))}:\d+:\d+: error\[HK\d+\]: .*131072 bytes of LDS.*65536", ran.err
    )
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "the following arguments are required: COMMAND"),
        (("frobnicate",), "invalid choice: 'frobnicate'"),
        (("compile",), "the following arguments are required: FILE, --arch"),
        (("compile", "k.hk", "--arch", "gfx942", "--set", "BM"), "NAME=VALUE is needed, not `BM`"),
        (("compile", "k.hk", "--arc", "gfx942"), "--arch"),
        (("compile", "k.hk", "--arch", "gfx941"), "error[HK422]: unknown chip `gfx941`; known: gfx942, gfx950"),
        (("compile", "k.hk", "--arch", "gfx942,"), "error[HK422]: unknown chip ``"),
        (("compile", "k.hk", "--arch", "gfx942", "--emit", "ptx"), "error[HK516]: there is no stage `ptx`"),
        (("run", "k.hk", "--arch", "mi300"), "error[HK422]: unknown chip `mi300`"),
        (("run", "k.hk", "--arch", "gfx942", "--device", "cuda"), "invalid choice: 'cuda'"),
        (("explain", "HK9999"), "error[HK516]: no explanation is known for `HK9999`"),
    ],
)
def test_wrong_calls(hkc: Command, words: tuple[str, ...], expected: str) -> None:
    ran = hkc(*words)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err
    assert "Traceback" not in ran.err


def test_without_a_gpu_the_chip_must_be_named(hkc: Command, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hkc.runtime import hip

    monkeypatch.setattr(hip, "available", lambda: (False, "there is no GPU"))
    ran = hkc("run", examples / "vector_add.hk")
    assert ran.code == 2
    assert ran.err == "error[HK514]: no chip is named, and there is no GPU\nhint: name one of gfx942, gfx950\n"
    ran = hkc("run", examples / "vector_add.hk", "--arch", "gfx942", "--device", "hip")
    assert ran.code == 1
    assert "no kernel can be launched on a GPU: there is no GPU" in ran.err


def test_our_bugs_leave_what_repeats_them(hkc: Command, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "call", lambda *args, **named: 1 // 0)
    ran = hkc("compile", examples / "vector_add.hk", "--arch", "gfx942")
    assert (ran.code, ran.out) == (70, "")
    (folder,) = Path().glob("hkc-bug-*")
    message, place, command = ran.err.splitlines()
    assert message.startswith("internal error: ZeroDivisionError: ")
    assert place == f"reproducer: {folder.absolute()}"
    assert command == f"replay it: python -m hkc.support.worker_main --replay {folder.absolute()}"
    assert "Traceback" in (folder / "report.txt").read_text()
    assert (folder / "vector_add.hk").read_text() == (examples / "vector_add.hk").read_text()
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    replay = [sys.executable, *command.split()[3:]]
    ran = subprocess.run(replay, env=environment, capture_output=True, text=True, timeout=120, check=True)
    assert "vector_add.gfx942.hsaco" in ran.stdout  # without the patch it works


@pytest.mark.parametrize(
    ("words", "code", "place"),
    [
        (("check", "missing.hk"), 1, "HK121"),
        (("check", "broken.hk"), 1, "HK101"),
        (("check", "broken.py"), 1, "HK"),
        (("check",), 2, "HK528"),
        (("check", "--frob", "k.hk"), 2, "HK528"),
        (("check", "k.hk", "--seed", "-1"), 2, "HK528"),
        (("check", "k.hk", "--kernel", "other"), 2, "HK305"),
        (("check", "k.hk", "--arch", "gfx941"), 2, "HK422"),
        (("check", "k.hk", "--only", "rases"), 2, "HK305"),
        (("check", "k.hk", "--set", "Q=1"), 2, "HK305"),
        (("run", "k.hk", "--arch", "gfx942", "--set", "N=4000000000000000"), 1, None),
        (("run", "k.hk", "--arch", "gfx942", "--input", "A=no.npy"), 1, "HK520"),
        (("emulate", "k.hk"), 1, "HK601"),
        (("emulate", "missing.hsaco"), 1, "HK713"),
        (("emulate", "k.hsaco", "--kernel", "other"), 2, "HK606"),
        (("emulate", "k.hsaco", "--kernel", "vector_add", "--args", "f32[4]"), 2, "HK712"),
        (("emulate", "k.hsaco", "--arch", "gfx950"), 2, "HK608"),
        (("emulate", "k.hsaco", "--list", "--arch", "gfx950"), 2, "HK608"),
        (("explain-kernel", "broken.hk", "--arch", "gfx942"), 1, "HK101"),
    ],
    ids=str,
)
def test_json_after_a_failure(
    hkc: Command, examples: Path, words: tuple[str, ...], code: int, place: str | None
) -> None:
    Path("k.hk").write_text((examples / "vector_add.hk").read_text())
    Path("broken.hk").write_text("kernel k(A: global[f32, N]):\n    x = (1\n")
    Path("broken.py").write_text("import hkc\n\n@hkc.kernel\ndef k(A: 'global[f32, N]'):\n    x = nothing\n")
    Path("k.hsaco").write_bytes(package.compile(examples / "vector_add.hk", "gfx942").hsaco)
    ran = hkc(*words, "--json")
    assert ran.code == code, ran.err
    document = ran.json
    assert (document["ok"], document["exit_code"]) == (False, code)
    error = document["errors"][0]
    assert error["code"] is None if place is None else error["code"].startswith(place)
    assert error["message"] in ran.err and "Traceback" not in ran.err
    if str(words[1:2]).startswith("('broken"):
        assert error["file"] == words[1] and error["line"] >= 2 and error["column"] >= 1


def test_json_after_a_bug(hkc: Command, examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "call", lambda *args, **named: 1 // 0)
    for words in (
        ("check", examples / "vector_add.hk", "--json"),
        ("compile", examples / "vector_add.hk", "--report", "json", "--arch", "gfx942"),
    ):
        ran = hkc(*words)
        assert (ran.code, ran.json["ok"], ran.json["exit_code"]) == (70, False, 70)
        (error,) = ran.json["errors"]
        assert error["message"].startswith("ZeroDivisionError") and Path(error["reproducer"]).is_dir()


def test_memory_that_is_not_there_is_no_bug(hkc: Command, examples: Path) -> None:
    ran = hkc("run", examples / "vector_add.hk", "--arch", "gfx942", "--set", "N=4000000000000000")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: there is not enough memory")


def process(*words: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    return subprocess.Popen(
        [sys.executable, "-m", "hkc", *words],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell's background jobs ignore it
    )  # fmt: skip


def test_ctrl_c(examples: Path) -> None:
    running = process("run", str(examples / "vector_add.hk"), "--arch", "gfx942", "--set", "N=20000000")
    time.sleep(1.5)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    # Python ends by the signal itself, a shell's 130, if that came while it ran a text, as `dataclass` does.
    assert running.returncode in (130, -signal.SIGINT)
    assert (out, err) == ("", "interrupted\n")


def test_nobody_reads() -> None:
    running = process("explain")
    assert running.stdout is not None
    assert running.stderr is not None
    running.stdout.close()
    with running.stderr:
        assert running.stderr.read() == ""
    assert running.wait(timeout=60) == 141


def test_a_full_disk_is_reported() -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    with full.open("w") as out:
        ran = subprocess.run(
            [sys.executable, "-m", "hkc", "explain"],
            env=environment, stdout=out, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stderr == "error: can't write the output: no space left on device\n"
