"""Names that newcomers bring from Python, NumPy, Triton or CUDA, and what they are here."""

from __future__ import annotations

FOREIGN = {
    "program_id": "i, j = tile_ids(cdiv(M, BM), cdiv(N, BN)) gives the position of a workgroup",
    "num_programs": "the extents that tile_ids(…) is given",
    "arange": "iota[16] counts 0, 1, 2, …",
    "ones": "full[f32, 16](1.0)",
    "empty": "zeros[f32, 16]",
    "len": "the dims in a tensor's type, `A: global[f32, M]`, are its extents",
    "float": "f32 or f64",
    "int": "i32 or i64",
    "half": "f16",
    "bfloat16": "bf16",
    "double": "f64",
    "None": "leave the argument out",
    "pow": "exp2(y * log2(x)), or multiply",
    "mean": "sum(x, axis=…) divided by the extent",
    "softmax": "exp(x - max(x, …)) divided by its sum",
    "relu": "maximum(x, 0.0)",
    "matmul": "dot(a, b)",
    "mma": "dot(a, b)",
    "expand_dims": "x[:, None]",
    "permute": "transpose(x, [1, 0])",
    "view": "reshape(x, [extent, …])",
    "astype": "cast(x, dtype)",
    "syncthreads": "nothing: hkc places barriers itself",
    "debug_barrier": "nothing: hkc places barriers itself",
    "static_range": "range(…); loops are unrolled as far as that pays",
    "static_assert": "assert condition, checked when it is known at compile time",
    "constexpr": "const or tune at the left margin",
    "tl": "the language's functions have no prefix: load(…), dot(…)",
    "np": "the language's functions have no prefix: load(…), dot(…)",
    "torch": "the language's functions have no prefix: load(…), dot(…)",
    "threadIdx": "tiles are shared by all lanes; iota[…] gives the place of an element",
    "blockIdx": "tile_ids(…) gives the position of a workgroup",
}
"""The name and a hint."""
