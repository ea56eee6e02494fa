"""Softmax of every row, for rows of any length: one pass for maximum and sum, one that writes."""

from hkc import kernel
from hkc.language import (
    Dim,
    cast,
    cdiv,
    exp,
    f32,
    full,
    global_,
    inf,
    load,
    max,
    maximum,
    range,
    store,
    sum,
    tile_ids,
    tune,
    zeros,
)  # fmt: skip

M = Dim
N = Dim
T = f32
ROWS = tune(4)
COLUMNS = tune(256)


@kernel
def softmax(X: global_[T, M, N], Y: global_[T, M, N]) -> None:
    row = tile_ids(cdiv(M, ROWS)) * ROWS
    high = full[f32, ROWS, 1](-inf)
    total = zeros[f32, ROWS, 1]
    for j in range(0, N, COLUMNS):
        x = cast(load(X, [row, j], [ROWS, COLUMNS], fill=-inf), f32)
        new = maximum(high, max(x, axis=1, keepdims=True))
        total = total * exp(high - new) + sum(exp(x - new), axis=1, keepdims=True)
        high = new
    for j in range(0, N, COLUMNS):
        x = cast(load(X, [row, j], [ROWS, COLUMNS], fill=-inf), f32)
        store(Y, [row, j], cast(exp(x - high) / total, T))
