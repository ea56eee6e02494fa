"""The folder that an internal error leaves behind: the failed call, what it was about, and how to replay it."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hkc.support.errors import HkcUsageError, error

CALL = "call.pickle"


def save(request: bytes, files: Mapping[str, str | bytes], report: str) -> Path | None:
    """Write `hkc-bug-<hash>/` for the pickled call `request` and return its path; None where no folder is writable.

    The same call always gets the same folder. It is made in `HKC_BUG_DIR` or the current folder, else in the one for
    temporary files.
    """
    name = f"hkc-bug-{hashlib.sha256(request).hexdigest()[:12]}"
    for parent in (os.environ.get("HKC_BUG_DIR") or os.curdir, tempfile.gettempdir()):
        folder = Path(parent).absolute() / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / CALL).write_bytes(request)
            (folder / "report.txt").write_text(f"{report}\n\nReplay it: {command(folder)}\n", encoding="utf-8")
            for file, content in files.items():
                (folder / Path(file).name).write_bytes(content.encode() if isinstance(content, str) else content)
        except OSError:
            continue
        return folder
    return None


def command(folder: Path) -> str:
    """The shell command that repeats the call saved in `folder`."""
    return f"python -m hkc.support.worker_main --replay {folder}"


def load(folder: Path) -> tuple[str, tuple[Any, ...]]:
    """Target and arguments of the call saved in `folder`.

    Somebody else may have made the folder, so that only functions and plain data of hkc are accepted; anything else
    raises `HkcUsageError`, a folder without a call `HkcError`.
    """
    try:
        target, args = _Unpickler(io.BytesIO((folder / CALL).read_bytes())).load()
    except OSError as failure:
        raise error("HK661", f"no saved call in {folder}: {failure}") from failure
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError, IndexError) as failure:
        raise error("HK661", f"the saved call in {folder} can't be read: {failure}") from failure
    _own(target.partition(":")[0])
    return target, args


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        _own(module)
        found = super().find_class(module, name)
        if not isinstance(found, type):
            raise pickle.UnpicklingError(f"{module}.{name} is no class")
        return found


def _own(module: str) -> None:
    if module.partition(".")[0] != "hkc":
        raise HkcUsageError(*error("HK662", f"a saved call may only use hkc itself, not `{module}`").diagnostics)
