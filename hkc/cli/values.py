"""Arguments of a code object's kernel as written on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.emulate import Output
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Diagnostic, HkcUsageError, error

Array = NDArray[Any]

_BUFFER = re.compile(r"(\w+)\[(\d+(?:,\d+)*)\](?:=(.+))?")
_FILE = re.compile(r"(\w*)@(.+)")
_NUMBER = re.compile(r"(\w+):(.+)")


@dataclass(frozen=True)
class Given:
    """An argument: what the emulator takes, and the array in it, if any. `kind` names the array's dtype."""

    value: Any
    array: Array | None = None
    kind: str = ""


def parse(text: str, number: int = 0) -> Given:
    """Read one argument; `number` makes the default seed of `rand`, so that no two are equal.

    Raises `HkcUsageError` HK522 for what isn't one, `HkcError` HK520 for an unreadable file.
    """
    if text == "null":
        return Given(None)
    if found := _BUFFER.fullmatch(text):
        return _buffer(found[1], found[2], found[3], number)
    if found := _FILE.fullmatch(text):
        return _file(found[1], found[2])
    if found := _NUMBER.fullmatch(text):
        return Given(_number(found[1], found[2]))
    raise _usage(f"`{text}` is no argument such as f32[1024]=iota, @x.npy, i32:5 or null")


def _usage(message: str) -> HkcUsageError:
    return HkcUsageError(Diagnostic("HK522", message))


def _dtype(name: str) -> DType:
    if name not in DTYPES or (DTYPES[name].bits < 8 and DTYPES[name].kind != "bool"):
        known = ", ".join(d.name for d in DTYPES.values() if d.bits >= 8)
        raise _usage(f"there is no dtype `{name}`, but {known}, bool")
    return DTYPES[name]


def _number(name: str, text: str) -> Any:
    """A NumPy scalar, or bytes."""
    try:
        if name == "hex":
            return bytes.fromhex(text)
        kind = _dtype(name)
        if kind.is_float:
            return np.float64(text).astype(kind.numpy)
        return np.array(int(text, 0), kind.numpy)[()]
    except (ValueError, OverflowError):
        raise _usage(f"`{text}` is no value of {name}") from None


def _buffer(name: str, dims: str, fill: str | None, number: int) -> Given:
    kind, shape = _dtype(name), tuple(map(int, dims.split(",")))
    try:
        if fill is None:
            array = np.zeros(shape, kind.numpy)
            return Given(Output(array), array, name)
        array = _filled(kind, shape, fill, number)
    except (MemoryError, ValueError) as problem:
        raise _usage(f"can't make {name}[{dims}]: {problem}") from None
    return Given(array, array, name)


def _filled(kind: DType, shape: tuple[int, ...], fill: str, number: int) -> Array:
    word, colon, seed = fill.partition(":")
    if word in ("rand", "bits"):
        if colon and not seed.isdecimal():
            raise _usage(f"the seed in `{fill}` is a whole number")
        source = np.random.default_rng([int(seed)] if colon else [0, number])
        return _random(kind, shape, source, word)
    if word == "iota":
        return np.arange(int(np.prod(shape))).reshape(shape).astype(kind.numpy)
    constant = {"zeros": "0", "ones": "1", "nan": "nan"}.get(fill, fill)
    return np.full(shape, _number(kind.name, constant), kind.numpy)


def _random(kind: DType, shape: tuple[int, ...], source: np.random.Generator, word: str) -> Array:
    if word == "bits" and kind.kind != "bool":
        raw = source.integers(0, 256, (*shape, kind.numpy.itemsize), np.uint8)
        return raw.view(kind.numpy)[..., 0]
    if kind.is_float:
        return source.standard_normal(shape).astype(np.float32).astype(kind.numpy)
    low, high = (0, 2) if kind.kind == "bool" else (-8 if kind.kind == "int" else 0, 9)
    return source.integers(low, high, shape).astype(kind.numpy)


def _file(name: str, path: str) -> Given:
    try:
        array = np.ascontiguousarray(np.load(Path(path), allow_pickle=False))
    except OSError as problem:
        raise error("HK520", f"can't read `{path}`: {problem.strerror or problem}") from None
    except (ValueError, EOFError):
        raise error("HK520", f"`{path}` is no .npy file of numbers") from None
    if name:
        kind = _dtype(name)
        if array.dtype.itemsize != kind.numpy.itemsize:
            raise _usage(f"the elements of `{path}` have {array.dtype.itemsize} bytes, not {name}'s")
        array = array.view(kind.numpy)
    return Given(array, array, name or str(array.dtype))
