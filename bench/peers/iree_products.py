"""Matrix products by IREE with the tiles of `bench/hot_loops.py`. Runs in an environment that holds `iree-compile`.

`python iree_products.py FOLDER CHIP… [--only WORD,…]` writes `iree-NAME.CHIP.hsaco` and `.json` to the folder. IREE
would choose tiles of 128 x 128; those of the table are asked for by the attributes with which its tuner does so.
"""
# ruff: noqa: D103

import importlib.metadata
import re
import sys
import tempfile
from pathlib import Path

from iree_kernels import compiler
from output import main, save

WAVES = (2, 4)
TILES = {"bf16": ((256, 256, 64), (256, 128, 64)), "fp8": ((256, 256, 128),)}
INSTRUCTIONS = {
    ("gfx942", "bf16"): "MFMA_F32_16x16x16_BF16", ("gfx950", "bf16"): "MFMA_F32_16x16x32_BF16",
    ("gfx942", "fp8"): "MFMA_F32_16x16x32_F8E4M3FNUZ", ("gfx950", "fp8"): "MFMA_F32_16x16x128_F8E4M3FN",
}  # fmt: skip
ELEMENTS = {("gfx942", "fp8"): "f8E4M3FNUZ", ("gfx950", "fp8"): "f8E4M3FN"}

PROGRAM = """
#config = #iree_gpu.lowering_config<{{mma_kind = #iree_gpu.mma_layout<{instruction}>, promote_operands = [0, 1],
    reduction = [0, 0, {steps}], subgroup = [{rows}, {columns}, 0], workgroup = [{bm}, {bn}, 0]}}>
#translation = #iree_codegen.translation_info<pipeline = #iree_gpu.pipeline<TileAndFuse>
    workgroup_size = [512, 1, 1] subgroup_size = 64, {{gpu_pipeline_options = #iree_gpu.pipeline_options<
    prefetch_num_stages = 2, no_reduce_shared_memory_bank_conflicts = false, use_igemm_convolution = false>}}>
#info = #iree_codegen.compilation_info<lowering_config = #config, translation_info = #translation>
func.func @run(%a: tensor<4096x4096x{t}>, %b: tensor<4096x4096x{t}>) -> tensor<4096x4096xf32> {{
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4096x4096xf32>
  %init = linalg.fill ins(%zero: f32) outs(%empty: tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %c = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      {{compilation_info = #info}}
      ins(%a, %b: tensor<4096x4096x{t}>, tensor<4096x4096x{t}>) outs(%init: tensor<4096x4096xf32>)
      -> tensor<4096x4096xf32>
  return %c : tensor<4096x4096xf32>
}}"""

BUILDS = {
    f"gemm_{kind}_{'x'.join(map(str, tile))}_w{WAVES[0] * WAVES[1]}": (kind, tile)
    for kind, tiles in TILES.items()
    for tile in tiles
}


def program(kind: str, tile: tuple[int, int, int], chip: str) -> str:
    instruction = INSTRUCTIONS[chip, kind]
    m, n, k = map(int, re.findall(r"(\d+)x(\d+)x(\d+)", instruction)[0])
    return PROGRAM.format(
        instruction=instruction, t=ELEMENTS.get((chip, kind), kind), bm=tile[0], bn=tile[1], steps=tile[2] // k,
        rows=tile[0] // (WAVES[0] * m), columns=tile[1] // (WAVES[1] * n),
    )  # fmt: skip


def build(name: str, chip: str, folder: str) -> None:
    """Compile one product."""
    kind, tile = BUILDS[name]
    with tempfile.TemporaryDirectory() as work:
        source, binaries = Path(work, "run.mlir"), Path(work, "binaries")
        source.write_text(program(kind, tile, chip))
        compiler(source, Path(work, "run.vmfb"), chip, f"--iree-hal-dump-executable-binaries-to={binaries}")
        (made,) = binaries.glob("*.hsaco")
        facts = {"version": importlib.metadata.version("iree-base-compiler"), "symbol": None, "lds": 0}
        save(folder, "iree", name, chip, made.read_bytes(), facts)


if __name__ == "__main__":
    sys.exit(main(__doc__, list(BUILDS), build))
