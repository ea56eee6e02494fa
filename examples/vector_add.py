"""C = A + B, element by element."""

from hkc import kernel
from hkc.language import Dim, cdiv, f32, global_, load, store, tile_ids, tune

N = Dim
T = f32
BLOCK = tune(1024)


@kernel
def vector_add(A: global_[T, N], B: global_[T, N], C: global_[T, N]) -> None:
    i = tile_ids(cdiv(N, BLOCK))
    a = load(A, [i * BLOCK], [BLOCK])
    b = load(B, [i * BLOCK], [BLOCK])
    store(C, [i * BLOCK], a + b)
