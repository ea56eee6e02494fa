"""Other compilers in an environment of their own, and what runs their scripts. They are no dependencies of hkc."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEFAULT = HERE.parents[1] / "build" / "peers"
PEERS = {"triton": ("triton==3.9.0",), "iree": ("--no-deps", "iree-base-compiler==3.13.0", "numpy", "sympy", "mpmath")}
"""What pip installs for each; IREE's runtime needs are numpy and sympy alone."""
_PROBES = {"triton": "import triton", "iree": "import iree.compiler"}


def install(folder: Path) -> None:
    """Make a virtual environment that holds the peers, all or nothing."""
    print(f"making an environment with {' and '.join(PEERS)} in {folder}", file=sys.stderr)
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        for words in PEERS.values():
            subprocess.run([folder / "bin" / "pip", "install", "--quiet", *words], check=True)
    except (subprocess.CalledProcessError, KeyboardInterrupt):
        shutil.rmtree(folder, ignore_errors=True)
        raise SystemExit("the peers can't be installed") from None


def compile_all(
    environment: Path | None, target: Path, script: str, peers: Sequence[str], chips: Sequence[str], only: str = ""
) -> list[str]:
    """Compile what `PEER_script.py` of each peer holds into `target`; returns what could not be.

    Without an environment, the one in `build/peers`, which is made where it isn't there (1.5 GB).
    """
    if environment is None and not DEFAULT.exists():
        install(DEFAULT)
    python = (environment or DEFAULT) / "bin" / "python"
    missing = []
    for peer in peers:
        if not python.exists() or subprocess.run([python, "-c", _PROBES[peer]], capture_output=True).returncode:
            missing.append(f"{peer} is not installed in {python.parent.parent}")
            continue
        words = [python, HERE / f"{peer}_{script}.py", target, *chips, f"--only={only}"]
        quiet = {**os.environ, "TRITON_CACHE_DIR": str(target / "cache"), "TRITON_DEFAULT_FP_FUSION": "1"}
        quiet["TRITON_DISABLE_LINE_INFO"] = "1"  # no paths in the files, so that they can be compared
        if subprocess.run(words, env=quiet).returncode:
            missing.append(f"{peer} failed on some kernels")
    return missing
