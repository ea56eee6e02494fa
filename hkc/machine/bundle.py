"""Code objects out of what surrounds them: clang's offload bundles, and host programs with such bundles inside.

Format from clang's documentation, "Clang Offload Bundler": a magic text, the number of entries, then offset, size and
name of each; names read KIND-TARGET, such as `hipv4-amdgcn-amd-amdhsa--CHIP:xnack-`. HIP puts bundles into the section
`.hip_fatbin` of host programs, one per translation unit.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

from hkc.machine.codeobject import CodeObject, processor
from hkc.machine.elf import Elf, corrupt
from hkc.support.errors import Diagnostic, HkcError, HkcUsageError, error

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
COMPRESSED = b"CCOB"
_SECTION = ".hip_fatbin"
_EM_AMDGPU = 224
_MOST = 4096  # entries of one bundle; a number beyond it is damage
_LONGEST = 4096  # bytes of an entry's name


@dataclass(frozen=True)
class Entry:
    """One code object of a bundle: the target id that its name ends in, and its bytes."""

    target: str
    content: bytes

    @property
    def chip(self) -> str:
        """The processor, without features."""
        return processor(self.target)


def code_object(data: bytes, arch: str | None = None, kernel: str | None = None) -> bytes:
    """The code object in `data`: `data` itself, or the entry of a bundle or a host program with bundles that is for
    `arch` (a chip, or a target's last part such as `CHIP:xnack-`) and, where there are several, holds `kernel`.

    Raises `HkcUsageError` HK608 where nothing is for `arch` or no single entry is meant, `HkcError` HK603 for damage,
    HK601 for a compressed bundle and a host program without any.
    """
    bundles = _bundles(data)
    if bundles is None:
        if arch is not None and (held := CodeObject.parse(data).arch) != arch.partition(":")[0]:
            raise HkcUsageError(
                Diagnostic("HK608", f"no code object for {arch}; this one is for {held}", hint=f"name {held}")
            )
        return data
    entries = [entry for bundle in bundles for entry in _entries(bundle)]
    fitting = [e for e in entries if arch is None or arch in (e.chip, _short(e.target))]
    if len(fitting) > 1 and kernel is not None:
        fitting = [e for e in fitting if _holds(e, kernel)] or fitting
    if len(fitting) == 1:
        return fitting[0].content
    held = ", ".join(sorted({_short(e.target) for e in entries})) or "no AMD GPU"
    hint = None
    if arch is None:
        what = "no chip was named"
    elif not fitting:
        what = f"no code object for {arch}"
    else:
        what = f"{len(fitting)} code objects fit {arch}"
        hint = "name the features too, or the kernel where they come from several translation units"
    raise HkcUsageError(Diagnostic("HK608", f"{what}; the bundle holds code for {held}", hint=hint))


def _bundles(data: bytes) -> list[bytes] | None:
    """The bundles in a file; None for what is none and holds none."""
    if data.startswith(COMPRESSED):
        hint = "clang-offload-bundler --unbundle takes its code objects out"
        raise error("HK601", "a compressed offload bundle, which can't be read", hint=hint)
    if data.startswith(MAGIC):
        return [data]
    if data[:4] != b"\x7fELF" or len(data) < 20 or data[4:6] != b"\x02\x01":
        return None
    if struct.unpack_from("<H", data, 18)[0] == _EM_AMDGPU:
        return None
    section = Elf(data).section(_SECTION)
    if section is None:
        return None
    if COMPRESSED in section[:4]:
        return _bundles(section)
    starts = [found.start() for found in re.finditer(re.escape(MAGIC), section)]
    return [section[start:end] for start, end in zip(starts, [*starts[1:], len(section)], strict=False)]


def _entries(bundle: bytes) -> list[Entry]:
    """Those for AMD GPUs that hold anything."""
    found, at = [], len(MAGIC)
    (count,) = _fields(bundle, "<Q", at)
    if count > _MOST:
        raise corrupt(f"an offload bundle of {count} entries")
    at += 8
    for _ in range(count):
        offset, size, length = _fields(bundle, "<QQQ", at)
        at += 24
        if length > _LONGEST or at + length > len(bundle) or offset + size > len(bundle):
            raise corrupt(f"an entry of an offload bundle of {len(bundle)} bytes goes beyond its end")
        kind, _, target = bundle[at : at + length].decode("utf-8", "replace").partition("-")
        at += length
        if kind != "host" and target.startswith("amdg") and size:
            found.append(Entry(target, bundle[offset : offset + size]))
    return found


def _fields(bundle: bytes, form: str, at: int) -> tuple[int, ...]:
    if at + struct.calcsize(form) > len(bundle):
        raise corrupt(f"an offload bundle that ends after {len(bundle)} bytes")
    return struct.unpack_from(form, bundle, at)


def _short(target: str) -> str:
    """Processor and features."""
    return target.split("-", 4)[-1]


def _holds(entry: Entry, kernel: str) -> bool:
    try:
        return any(k.name == kernel.removesuffix(".kd") for k in CodeObject.parse(entry.content).kernels)
    except HkcError:
        return False
