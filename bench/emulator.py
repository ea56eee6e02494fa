"""How fast the emulator is with and without checkers, what memory it takes, and where the time goes.

    python bench/emulator.py [--chip gfx950] [--only gemm|attention|foreign] [--json]

Three kernels: our bf16 GEMM of 1024x1024x1024 with 256x256 tiles (goal: 30 s and 4 GiB), our attention forward
(`examples/attention.hk`) and the one that Triton compiled, both with 1x8x1024x128 (goal: 60 s). All checkers together
may make them 4 times slower. Each runs in processes of its own: for time and peak memory without and with checkers, and
with a clock around every instruction. Beside the seconds on the clock stand those of the processor. The
fewer of both count: the clock also measures other work on the machine, the processor adds up what threads do at once.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from hkc.cli.progress import Progress  # noqa: E402
from hkc.emulate import Observer  # noqa: E402
from hkc.emulate.checks import CHECKS, REMARKS, name_of, observers  # noqa: E402
from hkc.emulate.decode import Decoded  # noqa: E402
from hkc.emulate.registry import Context, Step  # noqa: E402
from hkc.emulate.waves import Waves  # noqa: E402
from hkc.runtime.emulator import Emulator  # noqa: E402

Watching = Sequence[Observer]

GOALS = {"gemm": 30.0, "attention": 60.0, "foreign": 60.0}
"""Seconds without checkers."""
GIB, SLOWER = 4.0, 4.0
"""Peak memory, and how much slower checkers may be."""
HEADS, LENGTH, WIDTH = 8, 1024, 128

CLASSES = {
    "matrix instructions": r"v_mfma|v_smfmac",
    "LDS": r"ds_",
    "memory": r"global_|buffer_|flat_|scratch_|s_load|s_buffer",
    "waits (what was loaded arrives) and barriers": r"s_waitcnt|s_barrier",
    "vector ALU": r"v_",
    "scalar ALU and control": r"s_",
    "scheduling": r"\(",
}
"""Classes of instructions by how their mnemonics start; the first that fits counts."""

GEMM = """
tune BM = 256, BN = 256, BK = 64

kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]) with waves=8:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)
"""


class Profile(Observer):
    """A clock around every instruction: seconds and groups of waves per mnemonic."""

    def __init__(self) -> None:
        self.seconds: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def step(self, instruction: Decoded, step: Step, context: Context) -> Step:
        """See `Observer`."""
        clock, mnemonic = time.perf_counter, instruction.mnemonic

        def run(w: Waves) -> Any:
            start = clock()
            jump = step(w)
            self.seconds[mnemonic] += clock() - start
            self.calls[mnemonic] += 1
            return jump

        return run


def _timed(launch: Callable[[], Any]) -> dict[str, Any]:
    """Seconds, processor seconds and wave-instructions of a launch; `ok` where checkers find no errors."""
    start, busy = time.perf_counter(), time.process_time()
    result = launch()
    return {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - busy,
        "instructions": result.instructions,
        "ok": all(name_of(f) in REMARKS for f in result.findings),
    }


def _ours(kernel: Any, arguments: Any, watching: Watching) -> dict[str, Any]:
    with Progress(f"{kernel.symbol} on {kernel.arch}") as progress:
        return _timed(lambda: kernel.launch(arguments, Emulator(observers=watching), progress))


def gemm(chip: str, watching: Watching) -> dict[str, Any]:
    """Compile (not timed) and run."""
    import numpy as np
    from peers.numerics import draw, product

    import hkc

    a, b = (draw(i, 1024, 1024, dtype="bfloat16") for i in (1, 2))
    c = np.full((1024, 1024), np.nan, np.float32)
    kernel = hkc.compile(GEMM, arch=chip)
    found = _ours(kernel, kernel.bind(A=a, B=b, C=c), watching)
    found["ok"] &= product(a, b.T, c).judge()[2]
    return found


def attention(chip: str, watching: Watching) -> dict[str, Any]:
    """Our kernel, once per head, the last of them compared with float64."""
    import numpy as np
    from peers.numerics import draw

    import hkc

    kernel = hkc.compile(HERE.parent / "examples/attention.hk", arch=chip, D=WIDTH, SCALE=WIDTH**-0.5)
    heads = []
    for head in range(HEADS):
        q, k, v = (draw(3 * head + i, LENGTH, WIDTH, dtype="bfloat16") for i in range(3))
        o = np.full_like(q, np.nan)
        heads.append(_ours(kernel, kernel.bind(Q=q, K=k, V=v, O=o), watching))
    wide = [x.astype(np.float64) for x in (q, k, v)]
    weights = np.exp((s := wide[0] @ wide[1].T * WIDTH**-0.5) - s.max(axis=1, keepdims=True))
    exact = weights @ wide[2] / weights.sum(axis=1, keepdims=True)
    # bf16 rounds P, V's products and O: 2^-8 each of the largest that a row of weights can make of |V|
    bound = 3 * 2.0**-8 * (weights @ np.abs(wide[2])) / weights.sum(axis=1, keepdims=True)
    right = bool((np.abs(o.astype(np.float64) - exact) <= bound).all())
    total = {key: sum(head[key] for head in heads) for key in ("seconds", "cpu", "instructions")}
    return {**total, "ok": right and all(head["ok"] for head in heads)}


def foreign(chip: str, watching: Watching) -> dict[str, Any]:
    """Triton's attention: a code object that comes with the tests."""
    import foreign_kernels

    path = HERE.parent / f"tests/emulate/data/triton-attention_d128.{chip}.json"
    it = foreign_kernels.case(json.loads(path.read_text()))
    found = _timed(lambda: foreign_kernels.launch(path, it, watching))
    found["ok"] &= all(check.judge()[2] for check in it.checks)
    return found


WORK: dict[str, Callable[[str, Watching], dict[str, Any]]] = {"gemm": gemm, "attention": attention, "foreign": foreign}


def timed(pipe: Any, name: str, chip: str, checked: bool) -> None:
    """In a process of its own: time and peak memory."""
    found = WORK[name](chip, observers(CHECKS) if checked else [])
    found["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pipe.send(found)


def profiled(pipe: Any, name: str, chip: str) -> None:
    """In a process of its own: seconds and executions per mnemonic, and what no instruction accounts for."""
    profile = Profile()
    total = WORK[name](chip, [profile])["seconds"]
    rows = [{"mnemonic": m, "seconds": s, "steps": profile.calls[m]} for m, s in profile.seconds.most_common()]
    pipe.send([*rows, {"mnemonic": "(scheduling)", "seconds": total - profile.seconds.total(), "steps": 0}])


def apart(target: Callable[..., None], *arguments: Any) -> Any:
    """What `target` sends from a fresh process."""
    here, there = (context := multiprocessing.get_context("spawn")).Pipe()
    process = context.Process(target=target, args=(there, *arguments))
    process.start()
    there.close()
    try:
        return here.recv()
    except EOFError:
        raise SystemExit(f"{arguments} failed") from None
    finally:
        process.join()


def classes(profile: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds per class of instructions, the longest first."""
    seconds: Counter[str] = Counter()
    for row in profile:
        seconds[next(name for name, start in CLASSES.items() if re.match(start, row["mnemonic"]))] += row["seconds"]
    return dict(seconds.most_common())


def met(row: dict[str, Any]) -> bool:
    """Whether all goals are."""
    off = row["off"]
    quick = min(off["seconds"], off["cpu"]) <= GOALS[row["name"]] and off["gib"] <= GIB
    return bool(quick and row["slower"] <= SLOWER)


def text(row: dict[str, Any]) -> str:
    """Time and memory, and the instructions that take most of the time."""
    word = "ok" if row["off"]["ok"] and row["on"]["ok"] else "WRONG"
    goals = f"goals ({GOALS[row['name']]:g} s, {GIB:g} GiB, {SLOWER:g} times slower with checkers)"
    count = f"{row['off']['instructions']:,} wave-instructions"
    lines = [f"{row['name']} on {row['chip']}: {word}, {count}, {goals} {'met' if met(row) else 'MISSED'}"]
    for name, label in (("off", "checkers off"), ("on", "all checkers")):
        cost = row[name]
        lines.append(f"  {label}: {cost['seconds']:6.1f} s ({cost['cpu']:.1f} s of processor), {cost['gib']:.2f} GiB")
    lines.append(f"  {row['slower']:.2f} times slower with checkers (processor time)")
    total = sum(row["classes"].values())
    lines += [f"  {seconds / total:6.1%} {name}" for name, seconds in row["classes"].items()]
    for each in sorted(row["profile"], key=lambda each: -each["seconds"])[:8]:
        steps = f"{each['seconds'] / each['steps'] * 1e6:8.0f} µs x {each['steps']}" if each["steps"] else ""
        lines.append(f"    {each['seconds'] / total:6.1%} {each['mnemonic']:34}{steps}")
    return "\n".join(lines)


def measure(name: str, chip: str) -> dict[str, Any]:
    """One kernel on one chip."""
    off, on = (apart(timed, name, chip, checked) for checked in (False, True))
    profile = apart(profiled, name, chip)
    slower = on["cpu"] / off["cpu"]
    return {
        "name": name, "chip": chip, "off": off, "on": on, "slower": slower, "classes": classes(profile),
        "profile": profile,
    }  # fmt: skip


def main() -> int:
    """Measure and print; 1 where a result is wrong or a goal is missed."""
    it = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    it.add_argument("--chip", choices=("gfx942", "gfx950"), action="append")
    it.add_argument("--only", choices=tuple(WORK), action="append")
    it.add_argument("--json", action="store_true", help="print one JSON document")
    asked = it.parse_args()
    found = []
    for name in asked.only or list(WORK):
        for chip in asked.chip or ["gfx942", "gfx950"]:
            found.append(measure(name, chip))
            if not asked.json:
                print(text(found[-1]), flush=True)
    if asked.json:
        print(json.dumps(found, indent=1))
    return 0 if all(row["off"]["ok"] and row["on"]["ok"] and met(row) for row in found) else 1


if __name__ == "__main__":
    sys.exit(main())
