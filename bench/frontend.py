"""How long it takes to parse and check long files and hostile ones: `python bench/frontend.py`.

Times are processor seconds of this process, once its parser's tables are made. The limits that they stand beside are
the project's own: 0.2 s for 300 lines, 10 s for 20,000 lines or whatever nests without end.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from hkc.frontend.check import check
from hkc.frontend.parse import parse
from hkc.support.errors import HkcError, Source

HEAD = """kernel k(A: global[f32, M, N], B: global[f32, M, N], n: i32):
    p, q = tile_ids(cdiv(M, 16), cdiv(N, 16))
    x = load(A, [p*16, q*16], [16, 16])
"""
LINES = """    y{0} = x * 2.0 + load(B, [p*16 + {0}, q*16], [16, 16])
    z{0} = max(exp(y{0}), x) - sum(y{0}, axis=1, keepdims=True)
    if n > {0}:
        x = where(z{0} > 0.0, z{0}, x)
    for k{0} in range(n):
        x += y{0}
"""


def long(lines: int) -> str:
    """A kernel of about so many lines: products, reductions, branches, loops."""
    count = lines // LINES.count("\n")
    return HEAD + "".join(LINES.format(i) for i in range(count)) + "    store(B, [p*16, q*16], x)\n"


def cases() -> Iterator[tuple[str, str, float]]:
    """(name, text, limit in seconds)."""
    yield "300 lines", long(300), 0.2
    yield "3,000 lines", long(3000), 10.0
    yield "20,000 lines", long(20000), 10.0
    yield "20,000 brackets", HEAD + "    y = " + "(" * 20000 + "1" + ")" * 20000 + "\n", 10.0
    yield "20,000 terms", HEAD + "    y = " + " + ".join("1" * 20000) + "\n", 10.0
    yield "20,000 nested ifs", HEAD + "".join("    " * min(i + 1, 2000) + "if n > 0:\n" for i in range(20000)), 10.0
    yield "20,000 mistakes", HEAD + "    y = unknown + 1\n" * 20000, 10.0
    calls = "".join(f"def f{i}(x):\n    return f{i + 1}(x) + f{i + 1}(x)\n" for i in range(3000))
    yield "calls that double", f"{calls}def f3000(x):\n    return x\n{HEAD}    y = f0(M)\n", 10.0


def main() -> None:
    """Prints one line per case."""
    parse(Source("warm.hk", long(12)))
    print(f"{'case':20} {'parse':>8} {'check':>8} {'limit':>7}  ends in")
    for name, text, limit in cases():
        began = time.process_time()
        parsed = began
        try:
            file = parse(Source("case.hk", text))
            parsed = time.process_time()
            check(file)
            result = "a program"
        except HkcError as problem:
            result = f"{len(problem.diagnostics)} x {problem.diagnostics[0].code}"
        ended = time.process_time()
        parsed = ended if parsed == began else parsed
        print(f"{name:20} {parsed - began:7.3f}s {ended - parsed:7.3f}s {limit:6.1f}s  {result}")


if __name__ == "__main__":
    main()
