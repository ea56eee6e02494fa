"""Matrix instructions: lane rules against closed forms written out independently, and records that refuse to lie."""

import dataclasses

import numpy as np
import pytest

from hkc.support.errors import HkcError
from hkc.targets.chip import load
from hkc.targets.mfma import BITS, Mfma

FORMS = [(chip, form) for chip in ("gfx942", "gfx950") for form in load(chip).mfmas]
DENSE = [(chip, form) for chip, form in FORMS if form.has_layouts]


def name(value):
    return f"{value.mnemonic}-{value.a}-{value.b}" if isinstance(value, Mfma) else value


def closed_operand(form, dtype, dim):
    """(lane, element) of every (block, i, k), from the rule in words.

    Lanes come in groups of `dim` per block. A group holds consecutive k; only where a lane holds more than 16 elements
    of 8 bits do k come in chunks of 16, dealt to the groups in turn; so do those of b in sparse forms, 16 bytes each.
    """
    stored = form.k // 2 if form.sparse and dim == form.m and dtype == "a" else form.k
    groups = 64 // (dim * form.blocks)
    per_lane = stored // groups
    block, i, k = np.meshgrid(np.arange(form.blocks), np.arange(dim), np.arange(stored), indexing="ij")
    element_bits = BITS[getattr(form, dtype)]
    if per_lane * element_bits > 128 and (element_bits == 8 or form.sparse):
        size = 128 // element_bits
        chunk = k // size
        group, element = chunk % groups, chunk // groups * size + k % size
    else:
        group, element = k // per_lane, k % per_lane
    return (block, i, k), group * dim * form.blocks + block * dim + i, element


# (m, n, blocks, f64) -> lane and register of acc[block][i, j], as the instruction calculator prints them
CLOSED_RESULTS = {
    (32, 32, 1, False): (lambda b, i, j: (32 * (i // 4)) % 64 + j, lambda b, i, j: 4 * (i // 8) + i % 4),
    (32, 32, 2, False): (lambda b, i, j: (32 * (i // 4)) % 64 + j, lambda b, i, j: 16 * b + 4 * (i // 8) + i % 4),
    (16, 16, 1, False): (lambda b, i, j: 16 * (i // 4) + j, lambda b, i, j: i % 4),
    (16, 16, 4, False): (lambda b, i, j: 16 * (i // 4) + j, lambda b, i, j: 4 * b + i % 4),
    (4, 4, 16, False): (lambda b, i, j: 4 * b + j, lambda b, i, j: i),
    (16, 16, 1, True): (lambda b, i, j: 16 * (i % 4) + j, lambda b, i, j: i // 4),
    (4, 4, 4, True): (lambda b, i, j: 16 * (i % 4) + 4 * b + j, lambda b, i, j: 0 * i),
}


@pytest.mark.parametrize(("chip", "form"), FORMS, ids=name)
def test_index_rules_equal_the_closed_forms(chip, form):
    (block, i, k), lane, element = closed_operand(form, "a", form.m)
    assert all(map(np.array_equal, form.a_index(i, k, block), (lane, element)))
    (block, j, k), lane, element = closed_operand(form, "b", form.n)
    assert all(map(np.array_equal, form.b_index(k, j, block), (lane, element)))
    block, i, j = np.meshgrid(np.arange(form.blocks), np.arange(form.m), np.arange(form.n), indexing="ij")
    lane_of, register_of = CLOSED_RESULTS[form.m, form.n, form.blocks, form.acc == "f64"]
    lane, element = form.acc_index(i, j, block)
    assert np.array_equal(lane, lane_of(block, i, j)) and np.array_equal(element, register_of(block, i, j))


@pytest.mark.parametrize(("mnemonic", "per_chunk"), [("16x16x64_f16", 8), ("16x16x128_fp8_fp8", 16)])
def test_sparse_operands_pair_as_measured(mnemonic, per_chunk):
    """As one-hot probes on the chip found: the slot and lane group of b that a slot of a meets (positions 0, 1)."""
    form = load("gfx950").mfma(f"v_smfmac_f32_{mnemonic}")
    for group in range(4):
        for slot in range(per_chunk):
            lane, element = form.a_index(0, group * per_chunk + slot)
            assert (lane // 16, element) == (group, slot)
            k = 4 * ((group * per_chunk + slot) // 2) + slot % 2
            lane, element = form.b_index(k, 0)
            half = per_chunk // 2
            measured = 2 * (group % 2) + slot // half, per_chunk * (group // 2) + 4 * (slot % half // 2) + slot % 2
            assert (lane // 16, element) == measured


@pytest.mark.parametrize(("chip", "form"), FORMS, ids=name)
def test_every_slot_of_the_registers_is_used_once(chip, form):
    for (_, lane, element), dtype, vgprs in (
        (closed_operand(form, "a", form.m), form.a, form.a_vgprs),
        (closed_operand(form, "b", form.n), form.b, form.b_vgprs),
    ):
        per_lane = vgprs * 32 // BITS[dtype]
        assert sorted((lane * per_lane + element).ravel()) == list(range(64 * per_lane))


@pytest.mark.parametrize(("chip", "form"), DENSE, ids=name)
def test_layouts_equal_the_closed_forms(chip, form):
    (_, i, k), lane, element = closed_operand(form, "a", form.m)
    assert np.array_equal(form.a_layout().coordinates((form.m, form.k))[0, element, lane, 0], np.stack([i, k], -1))
    (_, j, k), lane, element = closed_operand(form, "b", form.n)
    assert np.array_equal(form.b_layout().coordinates((form.k, form.n))[0, element, lane, 0], np.stack([k, j], -1))
    i, j = np.meshgrid(np.arange(form.m), np.arange(form.n), indexing="ij")
    lane_of, register_of = CLOSED_RESULTS[form.m, form.n, 1, form.acc == "f64"]
    held = form.acc_layout().coordinates((form.m, form.n))[0, register_of(0, i, j), lane_of(0, i, j), 0]
    assert np.array_equal(held, np.stack([i, j], -1))


def test_layout_text_of_the_best_known_ones():
    form = load("gfx942").mfma("v_mfma_f32_16x16x16_bf16")
    assert form.a_layout().text() == "16x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w()"
    assert form.b_layout() == form.a_layout().transpose((1, 0))
    assert form.acc_layout().text() == "16x16 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w()"
    wide = load("gfx950").mfma("v_mfma_f32_32x32x64_f8f6f4")
    assert wide.a_layout().register == ((0, 1), (0, 2), (0, 4), (0, 8), (0, 32))
    assert wide.acc_layout().register == ((1, 0), (2, 0), (8, 0), (16, 0))


@pytest.mark.parametrize("mnemonic", ["v_mfma_f32_4x4x4_16b_f16", "v_smfmac_f32_16x16x32_f16"])
def test_forms_without_layouts_say_so(mnemonic):
    form = load("gfx942").mfma(mnemonic)
    for layout in (form.a_layout, form.b_layout, form.acc_layout):
        with pytest.raises(HkcError, match=r"HK423.*not a register tile"):
            layout()


def test_costs_and_types():
    form = load("gfx950").mfma("v_mfma_scale_f32_16x16x128_f8f6f4", a_code=2, b_code=4)
    assert (form.a, form.b, form.a_type, form.b_type) == ("f6e2m3", "f4e2m1", "vector<6xi32>", "vector<4xi32>")
    assert (form.a_format, form.b_format, form.scaled, form.cycles) == ("fp6_e2m3", "fp4_e2m1", True, 16)
    assert load("gfx950").mfma("v_mfma_f32_16x16x128_f8f6f4", 0, 4).cycles == 32
    old = load("gfx942").mfma("v_mfma_f32_32x32x8_bf16")
    assert (old.rocdl, old.a_type, old.acc_type) == ("rocdl.mfma.f32.32x32x8bf16.1k", "vector<4xi16>", "vector<16xf32>")
    assert (old.cycles, old.flops, old.rate) == (32, 16384, 512.0)
    assert load("gfx942").mfma("v_mfma_f64_4x4x4_4b_f64").acc_type == "f64"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"a_vgprs": 4}, "don't fill 4 registers"),
        ({"acc_vgprs": 8}, "`acc`"),
        ({"k": 32, "a_vgprs": 4, "b_vgprs": 4}, "shape 16x16x32"),
        ({"rocdl": "rocdl.mfma.f32.32x32x8bf16.1k"}, "shape"),
        ({"b": "f12"}, "f12"),
        ({"result": "columns"}, "result rule"),
        ({"overlap": 16}, "hide"),
    ],
)
def test_contradictory_records_are_refused(change, why):
    good = load("gfx942").mfma("v_mfma_f32_16x16x16_bf16")
    with pytest.raises(HkcError, match=f"HK421.*{why}"):
        dataclasses.replace(good, **change)
