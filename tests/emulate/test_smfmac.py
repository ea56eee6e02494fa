"""Sparse matrix instructions on small integers, whose sums are exact, with every legal pair of positions.

Who holds what is written out here once more: a lane's stored elements are consecutive along k; b comes in chunks of 16
bytes, dealt to the groups of lanes in turn (as one-hot probes on the newer chip found).
"""

from typing import Any

import numpy as np
import pytest
from emulated import CHIPS, Wave, assembled
from numpy.typing import NDArray
from test_mfma import LANE, NUMPY, pack

from hkc.targets import chip as chips
from hkc.targets.mfma import BITS, Mfma

FORMS = {arch: [form for form in chips.load(arch).mfmas if form.sparse] for arch in CHIPS}
CASES = [(arch, number) for arch in CHIPS for number in range(len(FORMS[arch]))]
PAIRS = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def line(form: Mfma, modifiers: str) -> str:
    return (
        f"{form.mnemonic} v[128:{127 + form.acc_vgprs}], v[0:{form.a_vgprs - 1}], v[16:{15 + form.b_vgprs}], "
        f"v100{modifiers}"
    )


def lines(arch: str) -> tuple[str, ...]:
    return tuple(line(form, modifiers) for form in FORMS[arch] for modifiers in ("", " abid:1", " cbsz:1 abid:1"))


def held_by_lanes(matrix: NDArray[Any], chunk: int) -> NDArray[Any]:
    """[rows, k] → [lanes, elements]."""
    rows, depth = matrix.shape
    groups = 64 // rows
    element = np.arange(depth // groups)
    k = element // chunk * chunk * groups + (LANE // rows)[:, None] * chunk + element % chunk
    return matrix[(LANE % rows)[:, None], k]


def result_of(wave: Wave, form: Mfma) -> NDArray[Any]:
    i, j = np.meshgrid(np.arange(form.m), np.arange(form.n), indexing="ij")
    groups = 64 // form.n
    register = i // (4 * groups) * 4 + i % 4
    lane = i // 4 % groups * form.n + j
    values = np.stack([wave.v(128 + r, NUMPY[form.acc]) for r in range(form.acc_vgprs)])
    return values[register, lane]


@pytest.mark.parametrize(("arch", "number"), CASES, ids=lambda v: str(v))
@pytest.mark.parametrize("part", (0, 1, 2))
def test_sparse_products(arch: str, number: int, part: int) -> None:
    """Part 1 takes the second index of the register, part 2 the first again, since cbsz is set."""
    form = FORMS[arch][number]
    rng = np.random.default_rng(number)
    stored = rng.integers(-2, 3, (form.m, form.k // 2))
    b = rng.integers(-2, 3, (form.n, form.k))
    pairs = np.array(PAIRS)[rng.integers(0, 6, (form.m, form.k // 4))]
    dense = np.zeros((form.m, form.k), np.int64)
    where = (np.arange(form.k // 4) * 4)[None, :, None] + pairs
    np.put_along_axis(dense, where.reshape(form.m, -1), stored, axis=1)
    per_lane = form.a_vgprs * 32 // BITS[form.a]
    wave = Wave(arch)
    for first, operand, dtype, chunk in ((0, stored, form.a, per_lane), (16, b, form.b, 128 // BITS[form.b])):
        for i, word in enumerate(pack(held_by_lanes(operand, chunk), dtype)):
            wave.vector(first + i, word)
    held = held_by_lanes(pairs.reshape(form.m, -1), per_lane).astype(np.uint64)
    index = sum(held[:, e] << np.uint64(2 * e) for e in range(per_lane))
    bits = 2 * per_lane
    other = np.uint64(0x44444444 & (1 << bits) - 1)
    first, second = (other, index) if part == 1 and bits < 32 else (index, other)
    word = first | second << np.uint64(bits) if bits < 32 else index
    wave.vector(100, word.astype(np.int64) & 0xFFFFFFFF)
    start = np.array(7, NUMPY[form.acc]).view(np.uint32)
    for i in range(form.acc_vgprs):
        wave.vector(128 + i, np.full(64, int(start)))
    wave.step(assembled(lines(arch), arch)[3 * number + part])
    np.testing.assert_array_equal(result_of(wave, form), dense @ b.T + 7)
