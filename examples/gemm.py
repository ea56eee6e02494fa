"""C = A · Bᵀ, both operands with K as their last dimension."""

from hkc import kernel
from hkc.language import Dim, bf16, cast, cdiv, dot, f32, global_, load, range, store, tile_ids, tune, zeros

M = Dim
N = Dim
K = Dim
T = bf16
OUT = bf16
BM = tune(128)
BN = tune(128)
BK = tune(32)


@kernel
def gemm(A: global_[T, M, K], B: global_[T, N, K], C: global_[OUT, M, N]) -> None:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m * BM, k], [BM, BK]), load(B, [n * BN, k], [BN, BK]).T)
    store(C, [m * BM, n * BN], cast(acc, OUT))
