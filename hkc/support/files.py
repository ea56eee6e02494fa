"""Output files that appear complete or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from hkc.support.errors import error


def write_all(contents: Mapping[Path, bytes]) -> list[Path]:
    """Write files, making their folders; none gets its name before all are on disk. Returns the paths.

    Raises `HkcError` HK517 where one can't be written.
    """
    for path in contents:
        if path.is_dir():  # the one obstacle that would only show when others have their names already
            raise error("HK517", f"can't write `{path}`: is a directory")
    waiting: dict[Path, str] = {}
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor, waiting[path] = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(waiting[path]).chmod(0o666 & ~_umask())  # mkstemp makes private files
        for path, temporary in waiting.items():
            Path(temporary).replace(path)
    except OSError as problem:
        where = problem.filename2 or problem.filename or path
        raise error("HK517", f"can't write `{where}`: {(problem.strerror or str(problem)).lower()}") from None
    finally:
        for temporary in waiting.values():
            Path(temporary).unlink(missing_ok=True)
    return list(contents)


def _umask() -> int:
    """The process's umask, which can only be read by setting it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
