"""Layouts that belong to no matrix instruction can't be lowered: wherever they come from, they'd give wrong sums."""

from __future__ import annotations

import pytest
from pass_examples import ATTRIBUTES

from hkc.support import worker
from hkc.support.errors import HkcBug

HELD = {
    "a": "32x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,0 16,0)",
    "b": "16x32 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,16 0,0)",
    "acc": "32x32 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(0,16 16,0)",
}
"""v_mfma_f32_16x16x16_f16 on four waves, two by two."""

OTHERS = {
    "waves beside one another": {"acc": "64x16 r(0,1 0,2) l(1,0 2,0 4,0 8,0 0,4 0,8) w(16,0 32,0)"},
    "another order along k": {"a": "32x16 r(0,4 0,8) l(1,0 2,0 4,0 8,0 0,1 0,2) w(0,0 16,0)"},
    "sums turned": {"acc": "32x32 r(1,0 2,0) l(0,1 0,2 0,4 0,8 4,0 8,0) w(0,16 16,0)"},
}


def lower(held: dict[str, str]) -> str:
    a, b, acc = (
        f'tensor<64x64x{kind}, #hkc_tile.layout<"{held[name]}">>'
        for name, kind in (("a", "f16"), ("b", "f16"), ("acc", "f32"))
    )
    attributes = ATTRIBUTES.replace("waves = 1", "waves = 4")
    text = f"""
func.func @k(%C: memref<?x?xf32, strided<[?, ?]>>, %i: index) attributes {attributes} {{
  %z = arith.constant dense<0.0> : {acc}
  %l = arith.constant dense<1.0> : {a}
  %r = arith.constant dense<1.0> : {b}
  %d = "hkc_tile.dot"(%l, %r, %z) {{hkc.mfma = "v_mfma_f32_16x16x16_f16"}} : ({a}, {b}, {acc}) -> {acc}
  "hkc_tile.store"(%d, %C, %i, %i) : ({acc}, memref<?x?xf32, strided<[?, ?]>>, index, index) -> ()
  return
}}"""
    step = "hkc.passes.lower_tile_to_wave", "LowerTileToWave"
    return str(worker.call("pass_examples:run_pass", *step, text, "gfx942"))


def test_layouts_of_one_instruction() -> None:
    assert "hkc_wave.mfma" in lower(HELD)


@pytest.mark.parametrize("name", OTHERS)
def test_layouts_of_none(name: str) -> None:
    with pytest.raises(HkcBug, match="can't multiply"):
        lower(HELD | OTHERS[name])
