"""How long a user waits: start-up times from a cold process, and the memory that they take.

    python bench/startup.py [RUNS]

Every line is the median of RUNS (default 5) new processes; memory is the peak of the process and its compiler process
together. Only the page cache is warm.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
GEMM = str(ROOT / "examples/gemm.hk")
HKC = ("-m", "hkc")

CASES: dict[str, tuple[tuple[str, ...], float]] = {
    "python -c pass": (("-c", "pass"), 0.0),
    "import hkc": (("-c", "import hkc"), 0.25),
    "hkc --version": ((*HKC, "--version"), 0.15),
    "hkc compile gemm.hk, one chip": ((*HKC, "compile", GEMM, "--arch", "gfx942"), 2.5),
    "hkc compile gemm.hk, two chips": ((*HKC, "compile", GEMM, "--arch", "gfx942,gfx950"), 0.0),
    "hkc run gemm.hk, 256 x 256 x 256 bf16": ((*HKC, "run", GEMM, "--arch", "gfx942", "--device", "emulator"), 10.0),
    "hkc run gemm.hk, 65 x 33 x 100": ((*HKC, "run", GEMM, "--arch", "gfx950", "--set", "M=65,N=33,K=100"), 0.0),
    "hkc run softmax.hk": ((*HKC, "run", str(ROOT / "examples/softmax.hk"), "--arch", "gfx950"), 0.0),
    "hkc doctor": ((*HKC, "doctor"), 0.0),
}
"""What is run, and in how many seconds it should be done (0: no budget)."""


def measure(words: tuple[str, ...]) -> tuple[float, float]:
    """Seconds and MiB of one new process in a folder of its own."""
    peaks: dict[int, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        running = subprocess.Popen([sys.executable, *words], env=_environment(), cwd=folder, stdout=subprocess.DEVNULL)
        while running.poll() is None:
            for pid in _tree(running.pid):
                peaks[pid] = max(peaks.get(pid, 0), _peak(pid))
            time.sleep(0.005)
        seconds = time.perf_counter() - began
    if running.returncode:
        sys.exit(f"{' '.join(words)} left with {running.returncode}")
    return seconds, sum(peaks.values()) / 1024


def _tree(pid: int) -> Iterator[int]:
    """A process and its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in _read(children).split():
            yield from _tree(int(child))


def _peak(pid: int) -> int:
    """The most memory that a process has held, in KiB."""
    lines = _read(Path(f"/proc/{pid}/status")).splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def _read(path: Path) -> str:
    """A file about a process, which may end at any time."""
    try:
        return path.read_text()
    except OSError:
        return ""


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'':40}{'seconds':>9}{'budget':>9}{'MiB':>7}")
    for name, (words, budget) in CASES.items():
        found = [measure(words) for _ in range(runs)]
        seconds, memory = (statistics.median(column) for column in zip(*found, strict=True))
        print(f"{name:40}{seconds:9.2f}{budget or '':>9}{memory:7.0f}")


if __name__ == "__main__":
    main()
