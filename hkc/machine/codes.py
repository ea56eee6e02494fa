"""Every code of code objects, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK601": "A code object is an ELF file.",
    "HK602": "A code object is a linked, 64-bit ELF file for AMD GPUs, of code object version 4, 5 or 6.",
    "HK603": "The parts of a code object lie inside the file and inside each other as its headers say.",
    "HK604": "A code object has a metadata note that says what its kernels need, and for which processor it is.",
    "HK605": "A kernel in the metadata has a descriptor, and code where the descriptor says.",
    "HK606": "A kernel is named as in its code object; the name may be left out where there is only one.",
    "HK607": "A code object's ELF header and its metadata name the same processor, with the same features on.",
    "HK608": "A file that holds code objects for several chips is asked for one that it holds.",
}
