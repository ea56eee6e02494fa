"""Kernels in Triton, and what compiles them for a chip without a GPU. Runs in an environment that holds `triton`.

`python triton_kernels.py FOLDER CHIP… [--only WORD,…]` writes `triton-NAME.CHIP.hsaco` and `.json` (symbol, threads,
dynamic LDS, constants) to the folder. The kernels are written for this benchmark, in the usual style of each.
"""
# ruff: noqa: D103 (kernels say by their names what they compute)

import sys

import triton
import triton.language as tl
from output import BuildError, main, save
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(x + i, mask=i < n) + tl.load(y + i, mask=i < n), mask=i < n)


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * columns
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layernorm(x, weight, bias, out, mean_out, rstd_out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / columns
    squares = tl.zeros([BLOCK], tl.float32)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
        d = tl.where(i < columns, v - mean, 0.0)
        squares += d * d
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / columns + eps)
    tl.store(mean_out + row, mean)
    tl.store(rstd_out + row, rstd)
    for start in range(0, columns, BLOCK):
        i = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
        w = tl.load(weight + i, mask=i < columns).to(tl.float32)
        b = tl.load(bias + i, mask=i < columns).to(tl.float32)
        tl.store(out + row * columns + i, (v - mean) * rstd * w + b, mask=i < columns)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, ACC: tl.constexpr):
    """C[M, N] = A[M, K] · B[K, N]; programs in groups of 4 rows of tiles, as in Triton's tutorial."""
    rows, columns = tl.cdiv(M, BM), tl.cdiv(N, BN)
    program = tl.program_id(0)
    group = program // (4 * columns)
    height = min(rows - group * 4, 4)
    row = group * 4 + program % (4 * columns) % height
    column = program % (4 * columns) // height
    m, n, k = row * BM + tl.arange(0, BM), column * BN + tl.arange(0, BN), tl.arange(0, BK)
    pa = a + (m[:, None] % M) * K + k[None, :]
    pb = b + k[:, None] * N + (n[None, :] % N)
    acc = tl.zeros([BM, BN], ACC)
    for start in range(0, K, BK):
        left = tl.load(pa, mask=k[None, :] < K - start, other=0.0)
        right = tl.load(pb, mask=k[:, None] < K - start, other=0.0)
        acc = tl.dot(left, right, acc, out_dtype=ACC)
        pa += BK
        pb += BK * N
    inside = (m[:, None] < M) & (n[None, :] < N)
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty), mask=inside)


@triton.jit
def split_k(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    """C += A · B with K shared among SPLIT programs that add atomically."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = start + tl.arange(0, BK)
        left = tl.load(a + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        right = tl.load(b + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(left, right)
    tl.atomic_add(c + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention(q, k, v, out, lse, L, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, CAUSAL: tl.constexpr):
    """Flash attention forward, one head per program_id(1); q, k, v are [heads, L, D]."""
    start, head = tl.program_id(0) * BM, tl.program_id(1).to(tl.int64) * L
    m, d = start + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + (head + m[:, None]) * D + d[None, :], mask=m[:, None] < L, other=0.0)
    high = tl.full([BM], -float("inf"), tl.float32)
    total = tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    end = tl.minimum(start + BM, L) if CAUSAL else L
    for first in range(0, end, BN):
        n = first + tl.arange(0, BN)
        keys = tl.load(k + (head + n[None, :]) * D + d[:, None], mask=n[None, :] < L, other=0.0)
        s = tl.dot(query, keys) * (scale * 1.44269504)
        s = tl.where((n[None, :] < L) & ((m[:, None] >= n[None, :]) if CAUSAL else True), s, -float("inf"))
        new = tl.maximum(high, tl.max(s, axis=1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(high - new)
        total = total * shrink + tl.sum(p, axis=1)
        values = tl.load(v + (head + n[:, None]) * D + d[None, :], mask=n[:, None] < L, other=0.0)
        acc = tl.dot(p.to(v.dtype.element_ty), values, acc * shrink[:, None])
        high = new
    acc = acc / total[:, None]
    tl.store(out + (head + m[:, None]) * D + d[None, :], acc.to(out.dtype.element_ty), mask=m[:, None] < L)
    tl.store(lse + head + m, (high + tl.log2(total)) / 1.44269504, mask=m < L)


@triton.jit
def cumsum(x, out, columns, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    r, i = tl.program_id(0) * ROWS + tl.arange(0, ROWS), tl.arange(0, BLOCK)
    at = r[:, None] * columns + i[None, :]
    v = tl.load(x + at, mask=i[None, :] < columns, other=0.0)
    tl.store(out + at, tl.cumsum(v, axis=1), mask=i[None, :] < columns)


@triton.jit
def _follow(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def recurrence(a, b, out, BLOCK: tl.constexpr):
    """h[t] = a[t] h[t-1] + b[t] along each row."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a + at), tl.load(b + at)), 0, _follow)
    tl.store(out + at, h)


@triton.jit
def histogram(x, counts, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + i, mask=i < n, other=0), 1, mask=i < n)


@triton.jit
def atomics(x, f, low, high, seen, swapped, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_min(low + i % 16, v, mask=i < n)
    tl.atomic_max(high + i % 16, v, mask=i < n)
    tl.atomic_or(seen + i % 16, v, mask=i < n)
    tl.atomic_add(f + i % 16, v.to(tl.float16), mask=i < n)
    tl.atomic_cas(swapped, tl.program_id(0), tl.program_id(0) + 1)


@triton.jit
def sort(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, tl.where(tl.rand(seed, i) > p, v / (1 - p), 0.0), mask=i < n)


@triton.jit
def functions(x, out, n, BLOCK: tl.constexpr):
    """Rows of `out`: what the mathematics of a kernel library is made of."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1.0)
    size = tl.abs(v) + 0.125
    tl.store(out + i, tl.sin(v), mask=i < n)
    tl.store(out + n + i, tl.cos(v), mask=i < n)
    tl.store(out + 2 * n + i, tl.exp(v), mask=i < n)
    tl.store(out + 3 * n + i, tl.log(size), mask=i < n)
    tl.store(out + 4 * n + i, tl.sqrt_rn(size), mask=i < n)
    tl.store(out + 5 * n + i, tl.rsqrt(size), mask=i < n)
    tl.store(out + 6 * n + i, tl.erf(v), mask=i < n)
    tl.store(out + 7 * n + i, tl.sigmoid(v), mask=i < n)
    tl.store(out + 8 * n + i, tl.div_rn(v, size), mask=i < n)
    tl.store(out + 9 * n + i, tl.floor(v) + tl.ceil(v * 3), mask=i < n)


@triton.jit
def integers(x, y, out, n, BLOCK: tl.constexpr):
    """Rows of `out`: 64-bit and division arithmetic."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b = tl.load(x + i, mask=i < n, other=1), tl.load(y + i, mask=i < n, other=1)
    tl.store(out + i, a // b, mask=i < n)
    tl.store(out + n + i, a % b, mask=i < n)
    tl.store(out + 2 * n + i, a * b, mask=i < n)
    tl.store(out + 3 * n + i, (a << (b & 63)) ^ (a >> (b & 31)), mask=i < n)
    tl.store(out + 4 * n + i, tl.umulhi(a.to(tl.uint64), b.to(tl.uint64)).to(tl.int64), mask=i < n)
    tl.store(out + 5 * n + i, (a.to(tl.int32) // b.to(tl.int32)).to(tl.int64), mask=i < n)


@triton.jit
def casts(x, bf, half, small, large, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=0.0)
    tl.store(bf + i, v.to(tl.bfloat16), mask=i < n)
    tl.store(half + i, v.to(tl.float16), mask=i < n)
    tl.store(small + i, v.to(small.dtype.element_ty), mask=i < n)
    tl.store(large + i, v.to(large.dtype.element_ty), mask=i < n)


@triton.jit
def scaled(
    a, sa, b, sb, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, AF: tl.constexpr, BF: tl.constexpr
):
    """Block-scaled matmul: a [M, K] and b [K, N] in the formats AF and BF, one e8m0 scale per 32 elements along K."""
    ap: tl.constexpr = 2 if AF == "e2m1" else 1
    bp: tl.constexpr = 2 if BF == "e2m1" else 1
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros([BM, BN], tl.float32)
    for start in range(0, K, BK):
        ka = start // ap + tl.arange(0, BK // ap)
        kb = start // bp + tl.arange(0, BK // bp)
        ks = start // 32 + tl.arange(0, BK // 32)
        left = tl.load(a + m[:, None] * (K // ap) + ka[None, :])
        right = tl.load(b + kb[:, None] * N + n[None, :])
        ls = tl.load(sa + m[:, None] * (K // 32) + ks[None, :])
        rs = tl.load(sb + n[:, None] * (K // 32) + ks[None, :])
        acc = tl.dot_scaled(left, ls, AF, right, rs, BF, acc)
    tl.store(c + m[:, None] * N + n[None, :], acc)


FLOAT8 = {"gfx942": "fp8e4b8", "gfx950": "fp8e4nv"}
BLOCK = {"BLOCK": 1024}


def tiles(rows: int, columns: int, depth: int, acc: object = tl.float32) -> dict[str, object]:
    return {"BM": rows, "BN": columns, "BK": depth, "ACC": acc}


def flash(depth: int, causal: bool, rows: int = 128, columns: int = 64) -> dict[str, object]:
    return {"D": depth, "BM": rows, "BN": columns, "CAUSAL": causal}


BUILDS = {
    "add": (add, "*fp32 *fp32 *fp32 i32", BLOCK, {}),
    "softmax": (softmax, "*fp32 *fp32 i32", BLOCK, {}),
    "layernorm": (layernorm, "*fp16 *fp16 *fp16 *fp16 *fp32 *fp32 i32 fp32", {"BLOCK": 512}, {}),
    "matmul_bf16": (matmul, "*bf16 *bf16 *bf16 i32 i32 i32", tiles(128, 128, 64), {"num_warps": 4}),
    "matmul_f16": (matmul, "*fp16 *fp16 *fp32 i32 i32 i32", tiles(64, 128, 32), {"num_stages": 3}),
    "matmul_f32": (matmul, "*fp32 *fp32 *fp32 i32 i32 i32", tiles(64, 64, 32), {}),
    "matmul_f64": (matmul, "*fp64 *fp64 *fp64 i32 i32 i32", tiles(32, 32, 16, tl.float64), {}),
    "matmul_f8": (matmul, "*F8 *F8 *fp16 i32 i32 i32", tiles(128, 128, 64), {}),
    "matmul_i8": (matmul, "*i8 *i8 *i32 i32 i32 i32", tiles(64, 64, 64, tl.int32), {}),
    "matmul_256": (matmul, "*bf16 *bf16 *bf16 i32 i32 i32", tiles(256, 256, 32), {"num_warps": 8, "num_stages": 3}),
    "split_k": (split_k, "*fp16 *fp16 *fp32 i32 i32 i32", {"BM": 64, "BN": 64, "BK": 32, "SPLIT": 4}, {}),
    "attention_f16": (attention, "*fp16 *fp16 *fp16 *fp16 *fp32 i32 fp32", flash(64, False), {}),
    "attention_causal": (attention, "*bf16 *bf16 *bf16 *bf16 *fp32 i32 fp32", flash(64, True, 64, 32), {}),
    "attention_d128": (attention, "*bf16 *bf16 *bf16 *bf16 *fp32 i32 fp32", flash(128, False), {}),
    "cumsum": (cumsum, "*fp32 *fp32 i32", {"BLOCK": 512, "ROWS": 4}, {}),
    "recurrence": (recurrence, "*fp32 *fp32 *fp32", {"BLOCK": 2048}, {}),
    "histogram": (histogram, "*i32 *i32 i32", BLOCK, {}),
    "atomics": (atomics, "*i32 *fp16 *i32 *i32 *i32 *i32 i32", BLOCK, {}),
    "sort": (sort, "*i32 *i32", {"BLOCK": 512}, {}),
    "dropout": (dropout, "*fp32 *fp32 i32 fp32 i32", BLOCK, {}),
    "functions": (functions, "*fp32 *fp32 i32", BLOCK, {}),
    "integers": (integers, "*i64 *i64 *i64 i32", BLOCK, {}),
    "casts": (casts, "*fp32 *bf16 *fp16 *F8 *F8X i32", BLOCK, {}),
    "scaled_f8f4": (
        scaled,
        "*fp8e4nv *u8 *u8 *u8 *fp32 i32 i32",
        {"BM": 64, "BN": 64, "BK": 128, "AF": "e4m3", "BF": "e2m1"},
        {},
    ),
}
"""Name → kernel, types of its arguments, constants, options. `F8` and `F8X` are the chip's own 8-bit floats."""


def build(name: str, chip: str, folder: str) -> None:
    """Compile one kernel and save it."""
    kernel, types, constants, options = BUILDS[name]
    if name.startswith("scaled") and chip == "gfx942":
        raise BuildError("the chip has no scaled matrix instructions")
    eight = {"*F8": f"*{FLOAT8[chip]}", "*F8X": "*fp8e5b16" if chip == "gfx942" else "*fp8e5"}
    kinds = [eight.get(kind, kind) for kind in types.split()]
    signature = dict(zip(kernel.arg_names, kinds + ["constexpr"] * len(constants), strict=True))
    made = triton.compile(
        ASTSource(kernel, signature, constants), target=GPUTarget("hip", chip, 64), options={"num_warps": 4, **options}
    )
    facts = {
        "version": triton.__version__,
        "symbol": made.metadata.name,
        "threads": [made.metadata.num_warps * 64, 1, 1],
        "dynamic_lds": made.metadata.shared,
        "scratch": made.metadata.global_scratch_size,
        "constants": {key: value for key, value in constants.items() if isinstance(value, int | str)},
    }
    save(folder, "triton", name, chip, made.asm["hsaco"], facts)


if __name__ == "__main__":
    sys.exit(main(__doc__, list(BUILDS), build))
