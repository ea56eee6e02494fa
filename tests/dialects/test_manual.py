"""Generated files are fresh, and a stock mlir-opt reads our tile IR by the generated definition alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from contract import as_module

import hkc
import hkc.dialects.tile
from hkc.dialects.define import TILE_DIALECT
from hkc.dialects.manual import made
from hkc.support import worker
from hkc.support.errors import HkcBug, Source
from hkc.targets.chip import names

IRDL = Path(__file__).parents[2] / "dialects" / "tile.irdl"
FOLDERS = "/usr/lib/llvm-22/bin:/usr/lib/llvm-23/bin"
MLIR_OPT = shutil.which("mlir-opt") or shutil.which("mlir-opt", path=FOLDERS)
needs_mlir_opt = pytest.mark.skipif(MLIR_OPT is None, reason="no mlir-opt here (Debian: apt-get install mlir-22-tools)")


def test_generated_files_are_fresh() -> None:
    stale = [str(path) for path, text in made().items() if not path.exists() or path.read_text() != text]
    assert not stale, "run `python -m hkc.dialects.manual`"


def mlir_opt(text: str) -> subprocess.CompletedProcess[str]:
    assert MLIR_OPT is not None
    command = [MLIR_OPT, f"--irdl-file={IRDL}", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


@needs_mlir_opt
def test_a_stock_mlir_opt_reads_every_example() -> None:
    examples = [e for r in TILE_DIALECT.ops.values() for e in r.examples]
    module = "\n".join(as_module(e).replace("@f(", f"@f{i}(") for i, e in enumerate(examples))
    result = mlir_opt(worker.call("contract:round_trip", module)[0])
    assert result.returncode == 0, result.stderr


@needs_mlir_opt
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('%t = "hkc_tile.cast"() : () -> tensor<64xf32>', "operand"),
        ('%s = "hkc_tile.reduce"(%x) {axis = 1 : i64} : (tensor<64x32xf32>) -> tensor<64x1xf32>', "attribute"),
        (
            '%d = "hkc_tile.dot"(%a, %b, %c) : (tensor<8x8xf16>, tensor<8x8xf16>, tensor<8x8xf32>) -> tensor<8x8xf16>',
            "expected 'tensor<8x8xf32>' but got 'tensor<8x8xf16>'",
        ),
        ('%t = "hkc_tile.cast"(%x) : (index) -> tensor<64xf32>', "base type 'builtin.tensor'"),
        ('%t = "hkc_tile.unheard_of"(%x) : (tensor<64xf32>) -> tensor<64xf32>', "unheard_of"),
    ],
)
def test_a_stock_mlir_opt_refuses_what_the_definition_refuses(body: str, why: str) -> None:
    result = mlir_opt(as_module(body))
    assert result.returncode == 1 and why in result.stderr, result.stderr


@needs_mlir_opt
@pytest.mark.parametrize("path", sorted((IRDL.parents[1] / "examples").glob("*.hk")), ids=lambda p: p.stem)
def test_a_stock_mlir_opt_reads_whole_kernels(path: Path) -> None:
    """As the front end makes them, and with their layouts."""
    for chip in names():
        text = hkc.compile(path, chip, keep=["tile"]).texts["tile"]
        assert mlir_opt(text).returncode == 0
        passes = ["split_entries", "peel_ragged_loops", "stage_cuts", "select_layouts"]
        laid_out = worker.call("hkc.pipeline:transform", Source("x.mlir", text), passes)
        result = mlir_opt(laid_out)
        assert result.returncode == 0 and "#hkc_tile.layout" in result.stdout, result.stderr


@needs_mlir_opt
def test_a_fill_of_another_type_is_for_our_own_verifier() -> None:
    body = '%x = "hkc_tile.load"(%A, %f, %i) : (memref<?xf16, strided<[?]>>, f32, index) -> tensor<64xf16>'
    assert mlir_opt(as_module(body)).returncode == 0
    with pytest.raises(HkcBug, match="the fill is f32, but the tensor holds f16"):
        worker.call("contract:round_trip", as_module(body))
