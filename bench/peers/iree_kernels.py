"""Kernels by IREE, and what compiles them for a chip without a GPU. Runs in an environment that holds `iree-compile`.

`python iree_kernels.py FOLDER CHIP… [--only WORD,…]` writes `iree-NAME.CHIP.hsaco` and `.json` (symbol, grid, threads)
to the folder. Programs that IREE splits into several kernels are compiled so that one is left.
"""
# ruff: noqa: D103

import importlib.metadata
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from output import BuildError, main, save

FILL = """  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<{shape}xf32>
  %init = linalg.fill ins(%zero: f32) outs(%empty: tensor<{shape}xf32>) -> tensor<{shape}xf32>
"""


def matmul(m: int, n: int, k: int, kind: str) -> str:
    return (
        f"func.func @run(%a: tensor<{m}x{k}x{kind}>, %b: tensor<{k}x{n}x{kind}>) -> tensor<{m}x{n}xf32> {{\n"
        + FILL.format(shape=f"{m}x{n}")
        + f"""  %c = linalg.matmul ins(%a, %b: tensor<{m}x{k}x{kind}>, tensor<{k}x{n}x{kind}>)
                     outs(%init: tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
  return %c : tensor<{m}x{n}xf32>
}}"""
    )


ELEMENTWISE = """func.func @run(%a: tensor<1000x37xf32>, %b: tensor<37xf32>) -> tensor<1000x37xf32> {
  %empty = tensor.empty() : tensor<1000x37xf32>
  %c = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b: tensor<1000x37xf32>, tensor<37xf32>) outs(%empty: tensor<1000x37xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %s = arith.addf %x, %y : f32
      %t = math.tanh %s : f32
      linalg.yield %t : f32
  } -> tensor<1000x37xf32>
  return %c : tensor<1000x37xf32>
}"""

REDUCTION = (
    "func.func @run(%a: tensor<128x3000xf32>) -> tensor<128xf32> {\n"
    + FILL.format(shape="128")
    + """  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%a: tensor<128x3000xf32>) outs(%init: tensor<128xf32>) {
    ^bb0(%x: f32, %o: f32):
      %s = arith.addf %x, %o : f32
      linalg.yield %s : f32
  } -> tensor<128xf32>
  return %c : tensor<128xf32>
}"""
)

SOFTMAX = """func.func @run(%a: tensor<64x1024xf16>) -> tensor<64x1024xf16> {
  %empty = tensor.empty() : tensor<64x1024xf16>
  %c = linalg.softmax dimension(1) ins(%a: tensor<64x1024xf16>) outs(%empty: tensor<64x1024xf16>) -> tensor<64x1024xf16>
  return %c : tensor<64x1024xf16>
}"""

ATTENTION = """func.func @run(%q: tensor<4x256x64xf16>, %k: tensor<4x256x64xf16>, %v: tensor<4x256x64xf16>)
    -> tensor<4x256x64xf16> {
  %scale = arith.constant 0.125 : f16
  %empty = tensor.empty() : tensor<4x256x64xf16>
  %o = iree_linalg_ext.attention <{
      indexing_maps = [affine_map<(b, m, n, k, l) -> (b, m, k)>, affine_map<(b, m, n, k, l) -> (b, l, k)>,
                       affine_map<(b, m, n, k, l) -> (b, l, n)>, affine_map<(b, m, n, k, l) -> ()>,
                       affine_map<(b, m, n, k, l) -> (b, m, n)>]}>
      ins(%q, %k, %v, %scale : tensor<4x256x64xf16>, tensor<4x256x64xf16>, tensor<4x256x64xf16>, f16)
      outs(%empty : tensor<4x256x64xf16>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x256x64xf16>
  return %o : tensor<4x256x64xf16>
}"""

EXPORT = re.compile(
    r"hal\.executable\.export public @(\w+) .*?{\n(.*?)hal\.return (.*?) : .*?workgroup_size = \[(.*?)\]", re.DOTALL
)
"""An exported kernel in the text before code generation: symbol, constants, workgroup counts, workgroup size."""

BUILDS = {
    "matmul_f16": matmul(256, 128, 512, "f16"),
    "matmul_f32": matmul(192, 128, 256, "f32"),
    "matmul_odd": matmul(113, 77, 130, "f16"),
    "elementwise": ELEMENTWISE,
    "reduction": REDUCTION,
    "softmax": SOFTMAX,
    "attention": ATTENTION,
}


def compiler(source: Path, target: Path, chip: str, *options: str) -> None:
    """Run `iree-compile` on a file. Raises BuildError with its first complaint."""
    tool = Path(sys.executable).parent / "iree-compile"
    device = ["--iree-hal-target-device=hip", f"--iree-rocm-target={chip}"]
    done = subprocess.run([tool, *device, *options, source, "-o", target], capture_output=True, text=True)
    if done.returncode:
        raise BuildError(done.stderr.strip().partition("\n")[0])


def build(name: str, chip: str, folder: str) -> None:
    """Compile one program; its only kernel is saved."""
    with tempfile.TemporaryDirectory() as work:
        source, binaries, lowered = Path(work, "run.mlir"), Path(work, "binaries"), Path(work, "lowered.mlir")
        source.write_text(BUILDS[name])
        compiler(source, lowered, chip, "--compile-to=executable-targets")
        compiler(source, Path(work, "run.vmfb"), chip, f"--iree-hal-dump-executable-binaries-to={binaries}")
        made = list(binaries.glob("*.hsaco"))
        exports = EXPORT.findall(lowered.read_text())
        if (len(made), len(exports)) != (1, 1):
            raise BuildError(f"the program became {len(exports)} kernels in {len(made)} files")
        symbol, constants, counts, threads = exports[0]
        values = dict(re.findall(r"%(\w+) = arith.constant (\d+)", constants))
        facts = {
            "version": importlib.metadata.version("iree-base-compiler"),
            "symbol": symbol,
            "grid": [int(values[name]) for name in re.findall(r"%(\w+)", counts)],
            "threads": [int(extent) for extent in re.findall(r"(\d+) : index", threads)],
            "dynamic_lds": 0,
        }
        save(folder, "iree", name, chip, made[0].read_bytes(), facts)


if __name__ == "__main__":
    sys.exit(main(__doc__, list(BUILDS), build))
