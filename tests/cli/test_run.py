"""`hkc run`: values, inputs, oracles, verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from hkc.runtime.device import LaunchResult
from hkc.runtime.emulator import Emulator

Command = Callable[..., Any]

SCALE = """
kernel scale(X: global[f32, N], Y: global[f32, N], a: f32):
    i = tile_ids(cdiv(N, 64))
    store(Y, [i*64], load(X, [i*64], [64]) * a)

example N = 100, a = 2.5
"""


@pytest.fixture
def scale(tmp_path: Path) -> Path:
    path = tmp_path / "scale.hk"
    path.write_text(SCALE)
    return path


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    ("name", "setting"), [("gemm", "M=65,N=33,K=100"), ("softmax", "M=5,N=300"), ("vector_add", "N=1000")]
)
def test_the_examples_are_right(hkc: Command, examples: Path, chip: str, name: str, setting: str) -> None:
    ran = hkc("run", examples / f"{name}.hk", "--arch", chip, "--set", setting, "--device", "emulator", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert list(ran.json)[:7] == ["device", "arch", "max_error", "bound", "ok", "seconds", "instructions"]
    assert (ran.json["device"], ran.json["arch"], ran.json["ok"]) == ("emulator", chip, True)
    assert 0 < ran.json["max_error"] <= ran.json["bound"] < 1
    assert ran.json["instructions"] > 100
    assert ran.json["oracle"] == "the file's reference"
    assert ran.json["findings"] == 0


def test_the_text_says_the_same(hkc: Command, scale: Path) -> None:
    ran = hkc("run", scale, "--arch", "gfx942", "--set", "N=70", "--device", "emulator")
    first, second, third = ran.out.splitlines()
    assert first == "scale for gfx942 on the emulator: N=70, a=2.5"
    assert second.startswith("Y: ok, max error ")
    assert second.endswith("(oracle: the tile operations)")
    assert third.endswith(" wave-instructions")


def test_the_reference_as_a_device(hkc: Command, examples: Path) -> None:
    ran = hkc("run", examples / "softmax.hk", "--set", "M=3,N=40", "--device", "reference", "--json")
    assert (ran.code, ran.json["device"], ran.json["instructions"]) == (0, "reference", None)


def test_files_in_and_out(hkc: Command, examples: Path) -> None:
    a, b = np.random.default_rng(3).integers(-3, 4, (2, 9, 20)).astype(ml_dtypes.bfloat16)
    np.save("a.npy", a[:5])
    np.save("b.npy", b)
    files = ("--input", "A=a.npy", "--input", "B=b.npy", "--output", "C=out/c.npy")
    ran = hkc("run", examples / "gemm.hk", "--arch", "gfx942", "--set", "OUT=f32", *files, "--json")
    assert ran.code == 0
    assert ran.json["set"] == {"M": 5, "K": 20, "N": 9}
    assert np.array_equal(np.load("out/c.npy"), a[:5].astype(np.float32) @ b.T.astype(np.float32))
    clash = hkc("run", examples / "gemm.hk", "--arch", "gfx942", "--set", "M=6", *files)
    assert clash.code == 1
    assert clash.err == "error[HK505]: `M` is 6 in the call but 5 in dim 0 of `A`\n"


def test_a_seed_fixes_the_inputs(hkc: Command, scale: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        hkc("run", scale, "--arch", "gfx942", "--seed", seed, "--output", f"X={name}.npy")
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    assert not np.array_equal(np.load("a.npy"), np.load("c.npy"))


def test_values_that_are_missing_or_wrong(hkc: Command, scale: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.hk"
    bare.write_text(SCALE[: SCALE.index("example")])
    for words, code, expected in (
        ((bare,), 2, "error[HK519]: no value for N, a\nhint: --set N=…,a=…\n"),
        ((bare, "--set", "N=4"), 2, "error[HK519]: no value for a\nhint: --set a=…\n"),
        (
            (scale, "--set", "M=4"),
            2,
            f"error[HK305]: {scale} has no constant, dim or scalar `M`\nhint: there are N, a\n",
        ),
        ((scale, "--set", "N=x"), 2, "error[HK305]: `N` must be a whole number, not `x`\n"),
        ((scale, "--set", "a=x"), 2, "error[HK305]: `a` must be a number, not `x`\n"),
        ((scale, "--set", "a=1e40"), 1, "error[HK506]: `a` is f32, which can't hold 1e+40\n"),
        ((scale, "--set", "N=-1"), 1, "error[HK505]: `N` is -1; an extent is a whole number from 0\n"),
        ((scale, "--set", f"N={2**64}"), 1, f"error[HK505]: `X` of {2**64} elements fits no memory\n"),
        ((scale, "--input", "Z=z.npy"), 2, "error[HK305]: `scale` has no tensor `Z`\nhint: it has X, Y\n"),
        ((scale, "--output", "Z=z.npy"), 2, "error[HK305]: `scale` has no tensor `Z`\nhint: it has X, Y\n"),
    ):
        ran = hkc("run", *words, "--arch", "gfx942")
        assert (ran.code, ran.out, ran.err) == (code, "", expected)


def test_unreadable_inputs(hkc: Command, scale: Path) -> None:
    Path("text.npy").write_text("no array")
    for path, said in (
        ("text.npy", "`text.npy` is no .npy file"),
        ("missing.npy", "can't read `missing.npy`: no such"),
    ):
        ran = hkc("run", scale, "--arch", "gfx942", "--input", f"X={path}")
        assert ran.code == 1
        assert ran.err.lower().startswith(f"error[hk520]: {said}")
    np.save("f64.npy", np.zeros(4))
    ran = hkc("run", scale, "--arch", "gfx942", "--input", "X=f64.npy")
    assert (ran.code, ran.err) == (1, "error[HK503]: `X` holds f32, but the array holds f64\n")


def test_a_wrong_reference_is_told_from_wrong_code(hkc: Command, scale: Path) -> None:
    scale.write_text(f"{SCALE}reference Y = X * a + 1\n")
    ran = hkc("run", scale, "--arch", "gfx942", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert ran.json["max_error"] == pytest.approx(1)
    assert "is 1 off" in ran.err
    assert ran.err.endswith("what was run is what the kernel says; it and the reference disagree\n")


OPEN = "where(iota[64] < 3, 1.0 / (load(X, [0], [64]) * a / 3.0 - load(X, [0], [64]) * a / 3.0), 0.0)"


def test_what_no_bound_covers_is_not_called_ok(hkc: Command, scale: Path) -> None:
    """Where rounding errors could make an element anything, nothing was compared: text and document say so."""
    said = "`Y` was not checked where rounding errors could make it any number\n"
    scale.write_text(SCALE.replace("load(X, [i*64], [64]) * a", OPEN))
    ran = hkc("run", scale, "--arch", "gfx942", "--set", "N=40")
    assert (ran.code, ran.err) == (0, said)
    assert "Y: NOT CHECKED in 3 elements, max error 0, bound infinite (" in ran.out and "ok" not in ran.out
    ran = hkc("run", scale, "--arch", "gfx942", "--set", "N=40", "--json")
    assert (ran.json["bound"], ran.json["unchecked"], ran.json["outputs"]["Y"]["unchecked"]) == (None, 3, 3)
    scale.write_text(SCALE)
    assert hkc("run", scale, "--arch", "gfx942", "--set", "N=40", "--json").json["unchecked"] == 0


RUNNING = """\
const START = -1e30
kernel running(X: global[f32, M, N], Y: global[f32, M]) with waves=1:
    row = tile_ids(cdiv(M, 16)) * 16
    high = full[f32, 16, 1](START)
    total = zeros[f32, 16, 1]
    for k in range(0, N, 16):
        x = load(X, [row, k], [16, 16])
        x = where(iota[1, 16](axis=1) + cast(k, i32) >= cast(SKIP, i32), x, START)
        new = maximum(high, max(x, axis=1, keepdims=True))
        total = total * exp(high - new) + sum(exp(x - new), axis=1, keepdims=True)
        high = new
    store(Y, [row], reshape(total, [16]))
example M = 16, N = 48
"""


@pytest.mark.parametrize("skip", [0, 3])
@pytest.mark.parametrize("start", ["-1e30", "-3e38", "-10000", "-inf"])
def test_running_maxima_may_start_anywhere_below(hkc: Command, start: str, skip: int) -> None:
    """The error of a start that every number exceeds doesn't reach the result, and exp of the difference to it is 0."""
    Path("running.hk").write_text(RUNNING.replace("SKIP", str(skip)))
    ran = hkc("run", "running.hk", "--arch", "gfx950", "--set", f"START={start}", "--json")
    assert (ran.code, ran.json["unchecked"]) == (0, 0)
    assert ran.json["max_error"] <= ran.json["bound"] < 1e-3


def test_a_block_without_any_key_has_a_bound_too(hkc: Command) -> None:
    """A first block that is masked as a whole leaves the running maximum where it starts."""
    Path("running.hk").write_text(RUNNING.replace("SKIP", "20"))
    ran = hkc("run", "running.hk", "--arch", "gfx950", "--json")
    assert (ran.code, ran.json["unchecked"]) == (0, 0)
    assert ran.json["max_error"] <= ran.json["bound"] < 1e-3


@pytest.mark.parametrize(("step", "total"), [(-7, 325), (9, 0), (0, 0), (-100, 64)])
def test_bounds_are_of_the_trips_that_run(hkc: Command, step: int, total: int) -> None:
    """Indices that are chosen when the kernel runs, such as the number of trips, are numbers to the oracle as well."""
    Path("steps.hk").write_text(
        "kernel steps(Y: global[f32, N], n: i64):\n"
        "    i = tile_ids(1)\n"
        "    total = zeros[f32, 64]\n"
        "    for k in range(N, -1, n):\n"
        "        total += cast(cast(k, i32), f32)\n"
        "    store(Y, [i], total)\n"
        "example N = 64\n"
    )
    ran = hkc("run", "steps.hk", "--arch", "gfx942", "--set", f"n={step}", "--json", "--output", "Y=y.npy")
    assert (ran.code, ran.json["max_error"], ran.json["bound"]) == (0, 0, 0)
    assert (np.load("y.npy") == total).all()


def test_what_is_never_stored_shows(hkc: Command, scale: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A device that does nothing leaves NaN, which is infinitely far from any number."""
    monkeypatch.setattr(Emulator, "run", lambda *given: LaunchResult("emulator", 0.0, 0, None))
    ran = hkc("run", scale, "--arch", "gfx942", "--device", "emulator", "--json")
    assert (ran.code, ran.json["ok"], ran.json["max_error"]) == (1, False, None)
    assert ran.err.endswith("what was run is not what the kernel says: this is a bug of hkc\n")
    assert math.isfinite(ran.json["bound"])


def test_references_of_another_shape(hkc: Command, scale: Path) -> None:
    scale.write_text(f"{SCALE}reference Y = sum(X)\n")
    ran = hkc("run", scale, "--arch", "gfx942")
    assert ran.code == 1
    assert ran.err.startswith("error[HK310]: the reference of `Y` is [], but the kernel writes [100]")


def test_a_kernel_without_outputs(hkc: Command, tmp_path: Path) -> None:
    path = tmp_path / "idle.hk"
    path.write_text("kernel idle(X: global[f32, N]):\n    i = tile_ids(N)\nexample N = 3\n")
    ran = hkc("run", path, "--arch", "gfx942")
    assert ran.code == 1
    assert ran.err.startswith(f"{path}:1:")
    assert "error[HK" in ran.err


def test_several_orders_of_waves(hkc: Command, examples: Path) -> None:
    words = ("run", examples / "softmax.hk", "--arch", "gfx942", "--set", "M=3,N=70", "--interleavings", "3")
    ran = hkc(*words, "--json")
    assert ran.code == 0 and (ran.json["interleavings"], ran.json["order"], ran.json["ok"]) == (3, 0, True)
    assert "3 orders of waves" in hkc(*words).out
    ran = hkc(*words, "--device", "reference")
    assert ran.code == 2 and "only runs on the emulator can be stopped, traced, watched and interleaved" in ran.err


def test_what_was_found_is_shown_before_what_stops_a_run(
    hkc: Command, scale: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second store of a kernel's two goes beyond the output, the load before it reads what was never written."""
    from hkc.runtime import emulator

    copy = emulator._Copies._copy

    def forget(self: Any, region: Any) -> None:
        copy(self, region)
        for made in self._copies.values():
            made.space.complete = False
            made.space.valid[:] = 0

    monkeypatch.setattr(emulator._Copies, "_copy", forget)
    ran = hkc("run", scale, "--arch", "gfx942", "--device", "emulator")
    assert "error[HK722]: uninitialised: load of never-written memory at 0x" in ran.err
    assert "scale.hk:4:" in ran.err and "(wave 0, workgroup 0, lane 0" in ran.err
