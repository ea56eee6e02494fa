"""Every code of calls and launches, with one sentence for `hkc explain`."""

from __future__ import annotations

CODES: dict[str, str] = {
    "HK501": "A call gives every parameter of the kernel once; tensors that it only writes may be left out.",
    "HK502": "A tensor is a NumPy array, or an object that shares its memory by DLPack; a number is a number.",
    "HK503": "An array has the dtype of its parameter; nothing is converted silently.",
    "HK504": "An array has as many dims as its parameter.",
    "HK505": "A dim of one name has one extent, in all arrays of a call.",
    "HK506": "A number lies within the range of its parameter's dtype.",
    "HK507": "The elements of an array lie whole elements apart, at an address that is a multiple of their size.",
    "HK508": "An array that a kernel writes to is writable, and no two of its elements share memory.",
    "HK509": "A launch has fewer than 2^32 threads and at most 2^31 - 1 workgroups.",
    "HK510": "The device that is asked for can't be used here.",
    "HK511": "The GPU's run-time library reports an error.",
    "HK512": "A kernel runs on the chip it was compiled for.",
    "HK514": "A kernel is compiled for a chip; it is named where there is no GPU to ask.",
    "HK516": "A stage or device is one of those that there are.",
    "HK517": "A result can't be written to its file.",
    "HK518": "A kernel that spills registers is refused on request (--fail-on-spill).",
    "HK519": "A run needs a value for every dim and number: a setting, an input file, or the file's example.",
    "HK520": "An input is a .npy file without Python objects in it.",
    "HK521": "A run compares what a kernel stores, so it must store something.",
    "HK522": "An argument of `hkc emulate` is a buffer, a number, the bytes of a struct, or null, as its help shows.",
    "HK523": "A tensor is aligned and contiguous as the declaration of its parameter demands.",
    "HK524": "A run is compared within error bounds, which there are where rounding decides no index and no condition.",
    "HK527": "PNG pictures are rendered by the package resvg-py, which the extra `figures` brings.",
    "HK528": "A command line is put together as the command's --help shows.",
}
