"""The kernel on the language's page is one that runs, and what the page says of fills holds."""

from __future__ import annotations

import numpy as np
import pytest

from hkc import api
from hkc.frontend.check import check
from hkc.frontend.manual import EXAMPLE, page
from hkc.frontend.parse import parse
from hkc.support.errors import Source
from hkc.targets.chip import names


def run(text: str, chip: str, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    compiled = api.build(check(parse(Source("page.hk", text))), chip)
    arguments = compiled.bind(**arrays)
    compiled.launch(arguments, "emulator")
    return dict(zip(compiled.info.outputs, arguments.results(compiled.info), strict=True))


@pytest.mark.parametrize("chip", names())
def test_the_kernel_of_the_page(chip: str) -> None:
    assert EXAMPLE in page()
    x = np.random.default_rng(0).standard_normal((20, 100)).astype(np.float32)
    out = {n: np.zeros(20, k) for n, k in (("HIGH", np.float32), ("PLACE", np.int32), ("ABOVE", np.float32))}
    found = run(EXAMPLE, chip, X=x, **out)
    np.testing.assert_array_equal(found["HIGH"], x.max(1))
    np.testing.assert_array_equal(found["PLACE"], x.argmax(1))
    np.testing.assert_allclose(found["ABOVE"], np.where(x > 0.5, x, 0).sum(1), rtol=1e-5)


@pytest.mark.parametrize("chip", names())
@pytest.mark.parametrize("turned", ["", ".T"])
def test_a_missing_fill_is_zero(turned: str, chip: str) -> None:
    """Directly, and through LDS that held other numbers before."""
    text = f"""kernel k(X: global[f32, M, N], FULL: global[f32, P, P], OUT: global[f32, P, P]):
    before = load(FULL, [0, 0], [32, 32]).T
    store(FULL, [0, 0], before)
    store(OUT, [0, 0], load(X, [-3, 5], [32, 32]){turned})
"""
    x, full = np.ones((20, 20), np.float32), np.full((32, 32), 1234, np.float32)
    wanted = np.zeros((32, 32), np.float32)
    wanted[3:23, :15] = 1
    found = run(text, chip, X=x, FULL=full, OUT=np.full_like(full, 7))
    np.testing.assert_array_equal(found["OUT"], wanted.T if turned else wanted)
