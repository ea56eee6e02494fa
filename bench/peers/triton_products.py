"""Matrix products in Triton with the tiles of `bench/hot_loops.py`. Runs in an environment that holds `triton`.

`python triton_products.py FOLDER CHIP… [--only WORD,…]` writes `triton-NAME.CHIP.hsaco` and `.json` to the folder.
"""

import sys

import triton
import triton.language as tl
from output import main, save
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_kernels import FLOAT8

WAVES = 8
TILES = {"bf16_256x256x64": "*bf16", "fp8_256x256x128": "*F8", "bf16_256x128x64": "*bf16"}


@triton.jit
def product(a, b, c, M, N, K, lda, ldb, ldc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C[M, N] = A[M, K] · B[N, K]ᵀ where K is a multiple of BK: nothing is masked in the loop."""
    columns = tl.cdiv(N, BN)
    m = tl.program_id(0) // columns * BM + tl.arange(0, BM)
    n = tl.program_id(0) % columns * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    pa = a + (m[:, None] % M) * lda + k[None, :]
    pb = b + k[:, None] + (n[None, :] % N) * ldb
    acc = tl.zeros([BM, BN], tl.float32)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(pa), tl.load(pb), acc)
        pa += BK
        pb += BK
    tl.store(c + m[:, None] * ldc + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


BUILDS = {f"gemm_{tile}_w{WAVES}s{stages}": (tile, stages) for tile in TILES for stages in (2, 3)}


def build(name: str, chip: str, folder: str) -> None:
    """Compile one product as Triton would for tensors below 2 GiB whose addresses, extents and strides are multiples of
    16, with its autotuner's usual choice of 16 x 16 matrix instructions."""
    tile, stages = BUILDS[name]
    element = TILES[tile].replace("F8", FLOAT8[chip])
    extents = dict(zip(("BM", "BN", "BK"), map(int, tile.partition("_")[2].split("x")), strict=True))
    kinds = [element, element, "*fp32", *["i32"] * 6, *["constexpr"] * len(extents)]
    signature = dict(zip(product.arg_names, kinds, strict=True))
    small = [["tt.pointer_range", 32]]
    aligned = {(i,): [["tt.divisibility", 16], *(small if i < 3 else [])] for i in range(9)}
    source = ASTSource(product, signature, extents, aligned)
    options = {"num_warps": WAVES, "num_stages": stages, "matrix_instr_nonkdim": 16}
    made = triton.compile(source, target=GPUTarget("hip", chip, 64), options=options)
    facts = {"version": triton.__version__, "symbol": made.metadata.name, "lds": made.metadata.shared}
    save(folder, "triton", name, chip, made.asm["hsaco"], facts)


if __name__ == "__main__":
    sys.exit(main(__doc__, list(BUILDS), build))
