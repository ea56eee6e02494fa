"""Every code of the tools below hkc and of saved calls, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK651": "An LLVM with the AMDGPU target is installed; `hkc doctor` says what was found.",
    "HK652": "The LLVM that was found generates code for the chip.",
    "HK653": "A linker for code objects is installed; `hkc doctor` says what was found.",
    "HK654": "MLIR's Python bindings are installed, in a version that hkc knows.",
    "HK661": "The folder that a bug of hkc leaves holds the call that shows it again.",
    "HK662": "A saved call names functions of hkc only, since repeating it runs them.",
}
