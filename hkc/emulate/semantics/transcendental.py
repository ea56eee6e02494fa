"""Reciprocal, roots, exponential, logarithm, sine and cosine.

Hardware promises 1 ulp; here results are computed in f64 and rounded, thus correct but for rare double rounding. The
f32 forms flush denormal inputs and results whatever the mode says ("denormals are flushed": Vega ISA guide, at
V_EXP_F32, V_LOG_F32, V_RCP_F32, V_RSQ_F32, V_SQRT_F32), f16 forms keep them. LLVM's lowering of `exp2`, `log2`, `sqrt`
and division scales around exactly that, so compiled functions follow the mode. v_rcp_f64, v_rsq_f64 and v_sqrt_f64 are
approximations that programs refine; correctly rounded values are within their bounds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hkc.emulate.floats import flush
from hkc.emulate.operands import Array
from hkc.emulate.vector import valu


def _turns(a: Array) -> Array:
    """Reduce an angle in turns to [-0.5, 0.5] without error."""
    return a - np.rint(a)


def _sine(a: Array) -> Array:
    return np.where(np.isfinite(a), np.sin(2 * np.pi * _turns(a)), np.nan)


def _cosine(a: Array) -> Array:
    return np.where(np.isfinite(a), np.cos(2 * np.pi * _turns(a)), np.nan)


_FUNCTIONS: dict[str, Callable[[Array], Array]] = {
    "v_rcp": lambda a: 1.0 / a, "v_rsq": lambda a: 1.0 / np.sqrt(a), "v_sqrt": np.sqrt,
    "v_exp": np.exp2, "v_log": np.log2, "v_sin": _sine, "v_cos": _cosine,
}  # fmt: skip


def _single(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    def run(a: Array) -> Array:
        return flush(function(flush(a).astype(np.float64)).astype(np.float32))

    return run


def _half(function: Callable[[Array], Array]) -> Callable[[Array], Array]:
    return lambda a: function(a.astype(np.float64)).astype(np.float16)


for _name, _function in _FUNCTIONS.items():
    valu("f32 = f32", f"{_name}_f32")(_single(_function))
    valu("f16 = f16", f"{_name}_f16")(_half(_function))
for _name in ("v_rcp", "v_rsq", "v_sqrt"):
    valu("f64 = f64", f"{_name}_f64")(_FUNCTIONS[_name])
valu("f32 = f32", "v_rcp_iflag_f32")(_single(_FUNCTIONS["v_rcp"]))
valu("f32 = f32", "v_exp_legacy_f32")(_single(np.exp2))
valu("f32 = f32", "v_log_legacy_f32")(_single(np.log2))
