"""How fast the emulator is, what memory it takes, and where the time goes.

    python bench/emulator.py [--chip gfx950] [--only gemm|attention] [--json]

Two kernels, checkers off: our bf16 GEMM of 1024x1024x1024 with 256x256 tiles (goal: 30 s and 4 GiB), and attention
forward with 1x8x1024x128 as Triton compiled it (goal: 60 s). Each runs twice in processes of its own: once for time
and peak memory, once with a clock around every instruction.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

GOALS = {"gemm": (30.0, 4.0), "attention": (60.0, 4.0)}
"""Seconds and GiB."""

GEMM = """
tune BM = 256, BN = 256, BK = 64

kernel gemm(A: global[bf16, M, K], B: global[bf16, N, K], C: global[f32, M, N]) with waves=8:
    m, n = tile_ids(cdiv(M, BM), cdiv(N, BN))
    acc = zeros[f32, BM, BN]
    for k in range(0, K, BK):
        acc += dot(load(A, [m*BM, k], [BM, BK]), load(B, [n*BN, k], [BN, BK]).T)
    store(C, [m*BM, n*BN], acc)
"""


def gemm(chip: str) -> dict[str, Any]:
    """Compile (not timed) and run."""
    import numpy as np
    from peers.numerics import draw, product

    import hkc

    bf16 = "bfloat16"
    a, b = (draw(i, 1024, 1024, dtype=bf16) for i in (1, 2))
    c = np.full((1024, 1024), np.nan, np.float32)
    kernel = hkc.compile(GEMM, arch=chip)
    start = time.perf_counter()
    result = kernel.launch(kernel.bind(A=a, B=b, C=c), "emulator")
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "instructions": result.instructions, "ok": product(a, b.T, c).judge()[2]}


def attention(chip: str) -> dict[str, Any]:
    """Run a code object that comes with the tests."""
    import foreign_kernels

    row = foreign_kernels.run(HERE.parent / f"tests/emulate/data/triton-attention_d128.{chip}.json")
    return {"seconds": row.seconds, "instructions": row.instructions, "ok": row.ok}


WORK: dict[str, Callable[[str], dict[str, Any]]] = {"gemm": gemm, "attention": attention}


def timed(pipe: Any, name: str, chip: str) -> None:
    """In a process of its own: time and peak memory."""
    found = WORK[name](chip)
    found["gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    pipe.send(found)


def profiled(pipe: Any, name: str, chip: str) -> None:
    """In a process of its own: seconds and executions per mnemonic, and what no instruction accounts for."""
    from hkc.emulate import scheduler

    seconds: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    bind, clock = scheduler.bind, time.perf_counter

    def bound(instruction: Any, context: Any) -> Any:
        step, mnemonic = bind(instruction, context), instruction.mnemonic

        def measured(group: Any) -> Any:
            start = clock()
            jump = step(group)
            seconds[mnemonic] += clock() - start
            calls[mnemonic] += 1
            return jump

        return measured

    scheduler.bind = bound
    total = WORK[name](chip)["seconds"]
    rows = [{"mnemonic": m, "seconds": s, "steps": calls[m]} for m, s in seconds.most_common()]
    pipe.send([*rows, {"mnemonic": "(scheduling)", "seconds": total - sum(seconds.values()), "steps": 0}])


def apart(target: Callable[..., None], *arguments: str) -> Any:
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


def text(found: dict[str, Any]) -> str:
    """One line, and the instructions that take most of the time."""
    limit, room = GOALS[found["name"]]
    word = "ok" if found["ok"] else "WRONG"
    goal = "met" if found["seconds"] <= limit and found["gib"] <= room else "MISSED"
    lines = [
        f"{found['name']} on {found['chip']}: {word}, {found['seconds']:.1f} s, {found['gib']:.2f} GiB, "
        f"{found['instructions']:,} wave-instructions (goal {limit:g} s, {room:g} GiB: {goal})"
    ]
    total = sum(row["seconds"] for row in found["profile"])
    for row in sorted(found["profile"], key=lambda row: -row["seconds"])[:12]:
        each = f"{row['seconds'] / row['steps'] * 1e6:8.0f} µs x {row['steps']}" if row["steps"] else ""
        lines.append(f"  {row['seconds'] / total:5.1%} {row['mnemonic']:34}{each}")
    return "\n".join(lines)


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
            row = {"name": name, "chip": chip, **apart(timed, name, chip), "profile": apart(profiled, name, chip)}
            found.append(row)
            if not asked.json:
                print(text(row), flush=True)
    if asked.json:
        print(json.dumps(found, indent=1))
    good = all(r["ok"] and r["seconds"] <= GOALS[r["name"]][0] and r["gib"] <= GOALS[r["name"]][1] for r in found)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
