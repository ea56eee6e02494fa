"""The linker: an AMDGPU object in, a loadable code object (hsaco) out.

Any `ld.lld` that knows AMDGPU code objects does. In this order: `HKC_LLD` alone where it is set; ROCm's; Debian's
versions, newest first; the one on PATH; the copy inside the wheel `ziglang`. The first that links wins.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hkc.support.errors import HkcBug, HkcError, error

_OLDEST = 18  # the first LLVM whose lld links code object version 6
_ROCM, _SYSTEM = Path("/opt/rocm"), Path("/usr/lib")
_FLAGS = ("-shared", "--no-undefined", "--build-id=none")


@dataclass(frozen=True)
class Linker:
    """A way to run `ld.lld`, and where it comes from."""

    command: tuple[str, ...]
    origin: str

    @functools.cached_property
    def version(self) -> str:
        """What `--version` prints, "" where it doesn't even do that."""
        try:
            ran = subprocess.run([*self.command, "--version"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return ran.stdout.strip()

    def link(self, content: bytes, debug: bool = False) -> bytes:
        """The linked object; without `debug` its debug sections are left out.

        Raises `OSError` or `subprocess.CalledProcessError` (its words in `stderr`).
        """
        with tempfile.TemporaryDirectory(prefix="hkc-link-") as folder:
            source, target = Path(folder, "kernel.o"), Path(folder, "kernel.hsaco")
            source.write_bytes(content)
            # Run inside the folder under fixed names, so that no path can reach the output.
            flags = _FLAGS if debug else (*_FLAGS, "--strip-debug")
            arguments = [*self.command, *flags, source.name, "-o", target.name]
            subprocess.run(arguments, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
            return target.read_bytes()


def candidates() -> Iterator[Linker]:
    """The linkers of this machine, in the order of preference."""
    if chosen := os.environ.get("HKC_LLD"):
        yield Linker((chosen,), "HKC_LLD")
        return
    for path, origin in _installed():
        if path.is_file():
            yield Linker((str(path),), origin)
    if found := shutil.which("ld.lld"):
        yield Linker((found,), "PATH")
    spec = importlib.util.find_spec("ziglang")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        yield Linker((str(Path(folder, "zig")), "ld.lld"), "the wheel ziglang")


def link(content: bytes, debug: bool = False) -> bytes:
    """Link one relocatable AMDGPU object into a code object, without its debug sections unless `debug`.

    Raises `HkcError` HK653 where no linker runs, `HkcBug` with their words where those that do reject the object.
    """
    rejections: list[str] = []
    for linker in candidates():
        try:
            return linker.link(content, debug)
        except subprocess.CalledProcessError as failure:
            rejections.append(f"{linker.command[0]}: {failure.stderr.strip()}")
        except (OSError, subprocess.TimeoutExpired):
            continue
    if rejections:
        raise HkcBug("no linker accepts the object", details="\n".join(rejections))
    raise none_runs()


def none_runs() -> HkcError:
    """The error for a machine without a linker, or with none that runs."""
    tried = [linker.command[0] for linker in candidates()]
    message = f"no linker runs: {', '.join(tried)}" if tried else "there is no ld.lld"
    return error("HK653", message, hint="install Debian's lld-22, or run `pip install ziglang`")


def _installed() -> Iterator[tuple[Path, str]]:
    for root in (os.environ.get("ROCM_PATH"), os.environ.get("ROCM_HOME"), _ROCM):
        if root:
            yield Path(root, "lib", "llvm", "bin", "ld.lld"), "ROCm"
    versions = {int(p.name[5:]): p for p in _SYSTEM.glob("llvm-*") if p.name[5:].isdigit()}
    for version in sorted(versions, reverse=True):
        if version >= _OLDEST:
            yield versions[version] / "bin" / "ld.lld", "Debian"
