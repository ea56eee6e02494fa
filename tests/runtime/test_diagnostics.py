"""What a kernel says while it runs: assertions that fail, and `print`, by the reference and as machine code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hkc
from hkc.cli import main
from hkc.machine import abi
from hkc.support.errors import HkcError
from hkc.targets.chip import names

CHIPS = names()

ASSERTS = """kernel k(X: global[f32, N], n: i32, Y: global[f32, N]):
    i = tile_ids(cdiv(N, 256)) * 256
    x = load(X, [i], [256])
    assert x < 100.0, "x is small"
    assert n < 2000, "few"
    for j in range(0, N, 100):
        y = x * cast(j, f32)
        assert y < 5000.0, "y is bounded"
    assert x > -1.0, "x is positive"
    store(Y, [i], x)

example N = 700, n = 1
"""


def kernel(text: str, arch: str, **constants: Any) -> hkc.CompiledKernel:
    return hkc.compile(text, arch, **constants)


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(
    ("at", "value", "n", "line", "message"),
    [
        (5, 100.0, 0, 4, "x is small"),
        (0, 0.0, 2000, 5, "few"),
        (520, 9.0, 0, 8, "y is bounded"),
        (600, -2.0, 0, 9, "x is positive"),
    ],
)
def test_an_assertion_names_message_line_and_lane(
    arch: str, at: int, value: float, n: int, line: int, message: str
) -> None:
    x = np.zeros(700, np.float32)
    k = kernel(ASSERTS, arch)
    assert not k(x, n=1, device="emulator").any()
    x[at] = value
    with pytest.raises(HkcError) as caught:
        k(x, n=n, device="emulator")
    text = str(caught.value)
    assert f"<string>:{line}:" in text and f"error[HK720]: assertion failed: {message}" in text, text
    assert f"assert {ASSERTS.splitlines()[line - 1].split('assert ')[1]}" in text
    if message != "few":  # which holds in no lane at all
        assert f"in workgroup {at // 256}, " in text
    with pytest.raises(HkcError, match=f"HK720.*{message}"):
        k(x, n=n, device="reference")


def test_the_command_line_reports_an_assertion(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.hk"
    path.write_text(ASSERTS)
    for device in ("emulator", "reference"):
        assert main(["run", str(path), "--arch", CHIPS[0], "--set", "n=3000", "--device", device]) == 1
        assert "assertion failed: few" in capsys.readouterr().err
    assert main(["check", str(path), "--arch", CHIPS[0], "--set", "n=3000,N=256"]) == 1
    said = capsys.readouterr()
    assert "k.hk:5:5: error[HK720]: assertion: assertion failed: few" in said.out + said.err


PRINTS = """kernel k(X: global[T, M, N], n: i32, Y: global[f32, M]):
    m = tile_ids(cdiv(M, 16)) * 16
    x = load(X, [m, 0], [16, 32])
    print("start", m, n, 2.5)
    s = zeros[f32, 16]
    for j in range(0, N, 32):
        y = load(X, [m, j], [16, 32])
        s = s + sum(cast(y, f32), axis=1)
        if j > 0:
            print("sum", s, "is above 0:", s > 0.0, "in", "all")
    print(x)
    print()
    store(Y, [m], s)

const T = f16
"""


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize("dtype", ["f16", "bf16", "f8e4m3fn", "i8", "i64"])
def test_machine_code_prints_what_the_reference_prints(
    arch: str, dtype: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from hkc.support.dtypes import DTYPES

    x = np.arange(-40, 40 * 48 - 40).reshape(40, 48) % 16
    k = kernel(PRINTS, arch, T=dtype)
    said = []
    for device in ("reference", "emulator"):
        k(x.astype(DTYPES[dtype].numpy), n=-7, device=device)
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert said[1].startswith("start 0 -7 2.5\nsum [") and "\nstart 16 -7 2.5\n" in said[1]
    assert np.array2string(np.asarray(x[:1, :32], DTYPES[dtype].numpy))[2:30] in said[1]


def test_prints_come_in_order_whatever_the_order_of_waves() -> None:
    from hkc.runtime.emulator import Emulator

    k = kernel(PRINTS.replace("):\n", ") with waves=4:\n", 1), CHIPS[-1])
    x = np.ones((70, 64), np.float16)
    texts = {k.launch(k.bind(x, n=1), Emulator(seed)).printed for seed in range(4)}
    assert len(texts) == 1 and texts.pop().count("start") == 5


def test_what_was_printed_before_an_assertion_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    text = ASSERTS.replace('    assert n < 2000, "few"', '    print("n is", n)\n    assert n < 2000, "few"')
    with pytest.raises(HkcError, match="few"):
        kernel(text, CHIPS[0])(np.zeros(256, np.float32), n=2001, device="emulator")
    assert capsys.readouterr().err == "n is 2001\n"


def test_what_does_not_fit_is_said_to_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    k = kernel("kernel k(Y: global[i32, N]):\n    for i in range(0, N, 1):\n        print(i)\n", CHIPS[0])
    from hkc.runtime import emulator, printing

    (site,) = k.info.prints[:1]
    room = abi.PRINTED_START + 3 * site.bytes(64)
    records = []
    for i in range(4):
        head = np.array([0, 0, 0, 1], np.int32).view(np.uint8)
        records += [head, np.full(64, i, np.int64).view(np.uint8)]
    asked = np.array([4 * site.bytes(64)] + [0] * 7, np.int64).view(np.uint8)
    monkeypatch.setattr(printing, "PRINTED_BYTES", room)
    info = k.info
    text = printing.printed(info, np.concatenate([asked, *records])[:room], 64)
    assert text.startswith("0\n1\n2\n(more was printed than fits: ")
    assert emulator.PRINTED_BYTES == abi.PRINTED_BYTES


def test_a_kernel_without_prints_has_no_buffer() -> None:
    k = kernel(ASSERTS, CHIPS[0])
    assert k.info.prints == () and [a.name for a in k.arguments][-1].startswith("Y")


EVERY = """kernel k(X: global[f32, M], n: i32, s: f32, Y: global[f32, M]):
    i = tile_ids(cdiv(M, 16)) * 16
    x = load(X, [i], [16])
    print("tile", i, "of", M, x > 0.0, cast(x, i8), cast(x, f8e4m3fn), cast(x, f8e5m2fnuz), cast(x, bf16), "and")
    print(n, s, s > 1.0, True, 3, 2.5, cast(n, u8), cast(n, i64), cast(cast(x, i16), u16))
    print(sum(x), reshape(x, [4, 4]).T, cast(x, f64), "end")
    store(Y, [i], x)
"""


@pytest.mark.parametrize("arch", CHIPS)
def test_one_line_holds_texts_and_values_of_any_type(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    k, said = kernel(EVERY, arch), []
    for device in ("reference", "emulator"):
        k(np.arange(-4, 15).astype(np.float32), n=-3, s=1.5, device=device)
        said.append(capsys.readouterr().err)
    assert said[0] == said[1]
    assert said[1].startswith("tile 0 of 19 [False False ")
    assert "] and\n-3 1.5 True True 3 2.5 253 -3 [65532 65533 65534 65535     0     1" in said[1]
    assert said[1].count(" end\n") == 2
