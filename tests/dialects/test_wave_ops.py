"""What a wave op means is what its machine code does: every op, every example, both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contract import CHIPS
from wave_kernel import DATA, LANES, Example, check

import hkc.dialects.wave  # noqa: F401
from hkc.dialects.define import WAVE_DIALECT, OpRecord
from hkc.dialects.types import VectorType
from hkc.support.dtypes import dtype
from hkc.support.errors import HkcError
from hkc.targets.chip import load

ORDER = {"wait", "barrier", "barrier_if", "priority", "schedule_group", "async_mark", "wait_async", "trap_unless"}
NO_VALUE = {"buffer", "lds_alloc", "argument_again", *ORDER}
"""Ops that give no number: handles, which the ops that use them show, and the order of things, which schedules show."""

ROUNDED = {"mfma_scaled"}
"""Ops whose results are not exact for sample operands; their tile ops show them, with error bounds."""

EXAMPLES = [
    pytest.param(record, example, id=f"{name}-{i}")
    for name, record in WAVE_DIALECT.ops.items()
    if name not in NO_VALUE | ROUNDED
    for i, example in enumerate(record.examples)
]


def offsets(example: Example) -> dict[str, Any]:
    """Offsets of an access within memory, in no order, each its own; every third lane is beyond it, or masked off."""
    vector = example.result if isinstance(example.result, VectorType) else None
    size = vector.size * dtype(vector.dtype).bytes if vector else int(example.attributes.get("bytes", 16))
    places = np.random.default_rng(5).permutation(DATA // size)[: example.waves * LANES] * size
    at = np.resize(places, (example.waves, LANES))
    outside = np.arange(LANES) % 3 == 2
    if "%m" in example.operands:
        return {"%o": at, "%m": np.broadcast_to(~outside, at.shape)}
    beyond = np.where(np.arange(LANES) % 2, -1, DATA + 4 * np.arange(LANES))
    values = {"%o": np.where(outside, beyond, at)} if "%o" in example.operands else {}
    # %z is the same in all lanes of a wave: where its part of an LDS buffer starts
    uniform = {"%z": np.arange(example.waves) * LANES * size, "%u": np.arange(example.waves) * 64}
    return values | {name: value for name, value in uniform.items() if name in example.operands}


@pytest.mark.parametrize("arch", CHIPS)
@pytest.mark.parametrize(("record", "text"), EXAMPLES)
def test_machine_code_does_what_the_op_means(record: OpRecord, text: str, arch: str) -> None:
    feature = getattr(record.cls, "feature", None)
    if feature and not load(arch).has(feature):
        with pytest.raises(HkcError, match=r"HK477.*has no"):
            check(Example.parse(record, text), load(arch), arch, offsets(Example.parse(record, text)))
        return
    example = Example.parse(record, text)
    values = offsets(example)
    if record.name == "copy_to_lds" and example.attributes["bytes"] not in load(arch).direct_to_lds_bytes:
        with pytest.raises(HkcError, match=r"HK477.*bytes per lane"):
            check(example, load(arch), arch, values)
        return
    if record.name.startswith("mfma"):  # small numbers: every sum is exact, in any order
        rng = np.random.default_rng(1)
        for name, kind in zip(example.operands, example.types, strict=True):
            size, element = kind[7:-1].split("x")
            low, high = (0, 8) if element == "i8" else (-8, 9)  # codes below 8 are small in every narrow format
            values[name] = rng.integers(low, high, (2, LANES, int(size))).astype(dtype(element).numpy)
            if int(size) == 1 and element == "i8":
                values[name] = (values[name] // 4 + 126).astype(np.int8)  # scales: a half and one
    found, wanted = check(example, load(arch), arch, values)
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(
            a.view(np.uint8), np.ascontiguousarray(b).view(np.uint8).reshape(a.view(np.uint8).shape)
        )
