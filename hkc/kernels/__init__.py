"""Ready kernels: matrix products of every kind, compiled when they are first needed.

::

    from hkc.kernels import gemm

    c = gemm(a, b)                                            # a @ b, NumPy arrays or PyTorch tensors of any strides
    c = gemm(a, w.T, bias=bias, activation="gelu", out_dtype="bf16")

The kernels are the `.hk` files of this folder; `path` finds them, for `hkc.compile` and the command line.
"""

from __future__ import annotations

from hkc.kernels.files import path
from hkc.kernels.grouped import gemm_grouped
from hkc.kernels.products import gemm
from hkc.kernels.scaled import gemm_block_scaled, gemm_mx

__all__ = ["gemm", "gemm_block_scaled", "gemm_grouped", "gemm_mx", "path"]
