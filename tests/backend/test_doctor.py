"""The doctor: what it finds here, what it says where something is missing, and that its proof can fail."""

import pytest

from hkc.backend import doctor, probe
from hkc.support import worker
from hkc.targets.chip import load, names


@pytest.fixture(autouse=True)
def bug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HKC_BUG_DIR", str(tmp_path))


@pytest.fixture
def fresh_worker():
    worker.shutdown()
    yield
    worker.shutdown()


def test_everything_that_is_required_is_here():
    checks = {c.name: c for c in doctor.diagnose()}
    for name in ("Python", "MLIR bindings", "LLVM", "linker", "numpy", "msgpack"):
        assert checks[name].ok and checks[name].version and checks[name].where, name
    assert not [c for c in checks.values() if c.required and not c.ok]
    assert checks["GPU"].ok or checks["GPU"].note


@pytest.mark.parametrize("arch", names())
def test_the_proof_holds_for_every_chip(arch):
    check = doctor.prove(arch)
    assert check.ok, check.note
    assert f"{len(probe.probes(load(arch)))} operations" in check.note


def test_the_proof_covers_what_only_one_chip_has():
    expected = {arch: {p.expected for p in probe.probes(load(arch))} for arch in ("gfx942", "gfx950")}
    assert "v_permlane32_swap_b32" in expected["gfx950"] - expected["gfx942"]
    assert "buffer_load_dwordx4 * lds" in expected["gfx950"] - expected["gfx942"]
    assert "buffer_load_dword * lds" in expected["gfx950"] & expected["gfx942"]
    assert "v_mfma_f32_16x16x8_xf32 " in expected["gfx942"] - expected["gfx950"]


def test_the_proof_names_what_did_not_come_out():
    script = (
        "import hkc.backend.probe as p; from dataclasses import replace;"
        "p._PROBES = (*p._PROBES, replace(p._PROBES[0], expected='v_no_such_instruction'))"
    )
    worker.call("builtins:exec", script)
    check = doctor.prove("gfx942")
    worker.shutdown()
    assert not check.ok and check.note == "not generated: v_no_such_instruction"


def test_an_unknown_chip_is_a_failed_check():
    check = doctor.prove("gfx000")
    assert not check.ok and "unknown chip `gfx000`" in check.note


@pytest.mark.usefixtures("fresh_worker")
def test_missing_pieces_are_reported_and_not_raised(monkeypatch):
    monkeypatch.setenv("HKC_LIBLLVM", "/nowhere/libLLVM.so")
    monkeypatch.setenv("HKC_LLD", "/nowhere/ld.lld")
    monkeypatch.setattr(doctor, "_PACKAGES", ("numpy", "hkc_has_no_such_package"))
    checks = {c.name: c for c in doctor.diagnose()}
    assert not checks["LLVM"].ok and "/nowhere/libLLVM.so" in checks["LLVM"].note
    assert not checks["linker"].ok and "no linker runs: /nowhere/ld.lld" in checks["linker"].note
    assert checks["hkc_has_no_such_package"].note == "run `pip install hkc_has_no_such_package`"
    assert checks["MLIR bindings"].ok
    assert not doctor.prove("gfx942").ok


@pytest.mark.usefixtures("fresh_worker")
def test_missing_bindings_are_reported(monkeypatch):
    worker.call("builtins:exec", "from hkc.support import mlir; mlir.ROOTS = ('hkc_has_no_such_package',)")
    check = next(c for c in doctor.diagnose() if c.name == "MLIR bindings")
    assert not check.ok and "pip install torch-mlir" in check.note
