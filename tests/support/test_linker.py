"""Which linker is taken, and what linking gives."""

import stat
from pathlib import Path

import pytest

from hkc.machine.codeobject import CodeObject
from hkc.support import linker, worker
from hkc.support.errors import HkcBug, HkcError

KERNEL = "define amdgpu_kernel void @k() { ret void }"


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without any linker: no ROCm, nothing in /usr/lib or on PATH, no wheel."""
    for name in ("HKC_LLD", "ROCM_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "rocm"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(linker, "_SYSTEM", tmp_path / "lib")
    monkeypatch.setattr(linker, "_ROCM", tmp_path / "opt")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return tmp_path


def program(path: Path, script: str = "exit 0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def kernel_object() -> bytes:
    content = worker.call("hkc.support.llvm:emit", KERNEL, "gfx942").outputs["object"]
    assert isinstance(content, bytes)
    return content


def test_order(bare, monkeypatch):
    on_path = program(bare / "bin" / "ld.lld")
    for version in (9, 17, 18, 22):
        program(bare / "lib" / f"llvm-{version}" / "bin" / "ld.lld")
    program(bare / "lib" / "llvm-toolchain" / "bin" / "ld.lld")
    rocm = program(bare / "rocm" / "lib" / "llvm" / "bin" / "ld.lld")
    debian = [bare / "lib" / f"llvm-{version}" / "bin" / "ld.lld" for version in (22, 18)]
    assert [Path(c.command[0]) for c in linker.candidates()] == [rocm, *debian, on_path]
    monkeypatch.setenv("HKC_LLD", "/my/lld")
    assert [c.command for c in linker.candidates()] == [("/my/lld",)]


def test_without_any_linker_it_says_what_to_install(bare):
    with pytest.raises(HkcError, match=r"(?s)HK653.*there is no ld\.lld.*lld-22.*ziglang"):
        linker.link(b"")


def test_a_linker_that_does_not_run_is_passed_over(bare, monkeypatch):
    monkeypatch.setenv("HKC_LLD", str(bare / "nowhere"))
    with pytest.raises(HkcError, match=r"no linker runs: .*nowhere"):
        linker.link(b"")


def test_a_linker_that_refuses_is_followed_by_the_next(bare):
    program(bare / "lib" / "llvm-22" / "bin" / "ld.lld", "echo unknown emulation >&2; exit 1")
    good = program(bare / "lib" / "llvm-18" / "bin" / "ld.lld", 'for target; do :; done; printf linked > "$target"')
    assert linker.link(b"object") == b"linked"
    good.unlink()
    with pytest.raises(HkcBug, match="no linker accepts the object") as caught:
        linker.link(b"object")
    assert "unknown emulation" in caught.value.details


def test_every_linker_of_this_machine_gives_the_same_code():
    content = kernel_object()
    linked = [CodeObject.parse(c.link(content)) for c in linker.candidates()]
    assert linked
    assert len({(c.arch, c.version, c.code(c.kernel())) for c in linked}) == 1
    assert all(c.version.startswith(("LLD", "Debian LLD", "AMD LLD")) for c in linker.candidates())


def test_linking_is_repeatable_and_leaves_nothing(tmp_path, monkeypatch):
    content = kernel_object()
    first = linker.link(content)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert linker.link(content) == first
    assert not list(tmp_path.iterdir())


def test_no_object_is_rejected_in_the_linkers_words():
    with pytest.raises(HkcBug) as caught:
        linker.link(b"no object")
    assert "ld.lld" in caught.value.details
