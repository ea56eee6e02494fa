"""O = softmax(Q · Kᵀ · SCALE) · V, one head: a block of queries visits all keys with a running maximum and sum."""

from hkc import kernel
from hkc.language import (
    Dim,
    bf16,
    cast,
    cdiv,
    dot,
    exp,
    f32,
    full,
    global_,
    i32,
    inf,
    iota,
    load,
    max,
    maximum,
    range,
    store,
    sum,
    tile_ids,
    tune,
    where,
    zeros,
)  # fmt: skip

M = Dim
N = Dim
T = bf16
D = 64
SCALE = 0.125
BM = tune(64)
BN = tune(64)


@kernel
def attention(Q: global_[T, M, D], K: global_[T, N, D], V: global_[T, N, D], O: global_[T, M, D]) -> None:  # noqa: E741
    m = tile_ids(cdiv(M, BM)) * BM
    q = load(Q, [m, 0], [BM, D])
    high = full[f32, BM, 1](-inf)
    total = zeros[f32, BM, 1]
    acc = zeros[f32, BM, D]
    for n in range(0, N, BN):
        s = dot(q, load(K, [n, 0], [BN, D]).T) * SCALE
        s = where(iota[1, BN](axis=1) < cast(N - n, i32), s, -inf)
        new = maximum(high, max(s, axis=1, keepdims=True))
        p = exp(s - new)
        scale = exp(high - new)
        total = total * scale + sum(p, axis=1, keepdims=True)
        acc = dot(cast(p, T), load(V, [n, 0], [BN, D]), acc * scale)
        high = new
    store(O, [m, 0], cast(acc / total, T))
