"""Loops, branches, functions and conditions mean what they mean in Python."""

from __future__ import annotations

import numpy as np
import pytest
from interpret import checked, interpret, result


def counted(body: str, **scalars: int) -> int:
    """The index or number that a body leaves in `n`."""
    return int(result(f"{body}\nstore(OUT, [0], full[i64, 1](cast(n, i64)))", "i64", (1,), **scalars)[0])


RANGES = [(0, 10, 3), (0, 0, 1), (5, 2, 1), (-7, 9, 4), (10, 0, -3), (0, 10, -1), (3, 3, -2), (-1, -20, -6)]


@pytest.mark.parametrize(("a", "b", "step"), RANGES)
def test_ranges(a: int, b: int, step: int) -> None:
    wanted = 0
    for i in range(a, b, step):
        wanted = wanted * 31 + i
    loop = "n = 0\nfor i in range({}, {}, {}):\n    n = n * 31 + i"
    assert counted(loop.format("a", "b", step), a=a, b=b) == wanted
    assert counted(loop.format("a", "b", "step"), a=a, b=b, step=step) == wanted
    assert counted(loop.format(a, b, step)) == wanted


def test_a_step_of_zero_known_at_run_time_runs_no_times() -> None:
    assert counted("n = 5\nfor i in range(0, 10, step):\n    n += 1", step=0) == 5


@pytest.mark.parametrize("x", [-3, 0, 1, 2, 7])
def test_branches(x: int) -> None:
    body = """
n = 0
if x < 0:
    n = -x
elif x == 0:
    n = 100
elif x % 2 == 0:
    m = x * 10
    n = m + 1
else:
    n += x
    n *= 2
"""
    wanted = -x if x < 0 else 100 if x == 0 else x * 10 + 1 if x % 2 == 0 else 2 * x
    assert counted(body, x=x) == wanted


@pytest.mark.parametrize("x", [0, 1, 6, 27])
def test_while(x: int) -> None:
    wanted, y = 0, x
    while y > 1 and wanted < 50:
        y = y // 2 if y % 2 == 0 else 3 * y + 1
        wanted += 1
    body = """
n = 0
y = x
while y > 1 and n < 50:
    y = y // 2 if y % 2 == 0 else 3 * y + 1
    n += 1
"""
    assert counted(body, x=x) == wanted


@pytest.mark.parametrize("a", [0, 1, 5])
@pytest.mark.parametrize("b", [0, 1, 5])
def test_conditions(a: int, b: int) -> None:
    for text in ("a and b", "a or b", "not a", "not (a or b) and True", "a and not b or False"):
        code = text.replace("a ", "a > 2 ").replace("b", "b > 2") if " " in text else text
        code = code.replace("not a", "not a > 2") if code == "not a" else code
        wanted = bool(eval(code, {"a": a, "b": b}))
        assert counted(f"n = 1 if {code} else 0", a=a, b=b) == wanted, code


@pytest.mark.parametrize(("a", "b"), [(7, 2), (8, 2), (-7, 2), (0, 3), (7, -2), (-9, -4)])
def test_divisions_of_scalars(a: int, b: int) -> None:
    wanted = (a // b * 100 + a % b) * 100 + -(-a // b)
    assert counted("n = (a // b * 100 + a % b) * 100 + cdiv(a, b)", a=a, b=b) == wanted


def test_branches_on_tiles_load_only_where_they_run() -> None:
    x = np.arange(32, dtype=np.float32)
    body = """
t = zeros[f32, 16]
if n > 0:
    t = load(X, [16], [16])
else:
    store(OUT, [0], t - 1.0)
if n > 0:
    store(OUT, [0], t)
"""
    assert (result(body, X=x, n=1) == x[16:]).all()
    assert (result(body, X=x, n=0) == -1).all()


def test_compile_time_conditions_leave_the_other_branch_alone() -> None:
    body = """
if CAUSAL:
    x = full[f32, 16](1.0)
else:
    x = nonsense(3)
if CAUSAL and not False or nonsense:
    x = x + 1.0
store(OUT, [0], x)
"""
    assert (result(body, head="const CAUSAL = True") == 2).all()


def test_variables_of_both_branches_exist_afterwards() -> None:
    body = """
if n > 3:
    y = full[f32, 16](1.0)
    k = 7
else:
    y = full[f32, 16](2.0)
    k = n
store(OUT, [0], y + cast(k, f32))
"""
    assert (result(body, n=4) == 8).all()
    assert (result(body, n=2) == 4).all()


FUNCTIONS = """
const HALF = 0.5

def moments(x, scale=1.0):
    s = sum(x, axis=0) * scale
    return s, sum(x * x, axis=0) * scale

def half(x):
    return x * HALF

def put(t, at, x):
    '''Stores half of it.'''
    store(t, [at], half(x))
"""


def test_functions() -> None:
    x = np.arange(16, dtype=np.float32)
    body = """
x = load(X, [0], [16])
s, q = moments(x, scale=2.0)
p = moments(x)
put(OUT, 0, x * 0.0 + s + q - p[0] - p[1])
"""
    assert (result(body, head=FUNCTIONS, X=x) == 0.5 * (x.sum() + (x * x).sum())).all()


def test_a_function_sees_its_own_names_only() -> None:
    body = "x = 3.0\ny = load(X, [0], [16])\nz = half(y)\nstore(OUT, [0], z * x)"
    x = np.arange(16, dtype=np.float32)
    assert (result(body, head=FUNCTIONS, X=x) == 1.5 * x).all()


def test_tuples() -> None:
    assert counted("p = (3, (4, 5))\na, b = p\nc, d = b\na, c = c, a\nn = a * 100 + c * 10 + d + p[0]") == 438


@pytest.mark.parametrize("n", [0, 1, 4])
def test_tuples_change_in_loops_and_branches(n: int) -> None:
    """A variable that is several values, nested ones too, is carried as they are."""
    head = """
def turned(pair):
    a, b = pair
    return (b, a + b)

def grown(state):
    pair, count = state
    return (turned(pair), count + 1)
"""
    body = """
x = load(X, [0], [64])
state = ((x, x * 2.0), 0)
for i in range(n):
    state = grown(state)
pair, count = state
if n > 3:
    pair = turned(pair)
else:
    pair = (pair[1], pair[0])
best = pair if n > 0 else (x, x)
while count > 1:
    count -= 2
    best = turned(best)
a, b = best
store(OUT, [0], a + b * 10.0)
"""
    x = np.arange(64, dtype=np.float32)
    a, b, count = x, x * 2, 0
    for _ in range(n):
        a, b, count = b, a + b, count + 1
    a, b = (b, a + b) if n > 3 else (b, a)
    a, b = (a, b) if n > 0 else (x, x)
    while count > 1:
        a, b, count = b, a + b, count - 2
    np.testing.assert_array_equal(result(body, shape=(64,), head=head, X=x, n=n), a + b * 10)


@pytest.mark.parametrize("workgroups", [1, 3, 64])
def test_persistent_loops_visit_every_tile_once(workgroups: int) -> None:
    body = f"""
for i, j in tiles(cdiv(OUT0, 16), cdiv(OUT1, 16), workgroups={workgroups}):
    store(OUT, [i * 16, j * 16], load(OUT, [i * 16, j * 16], [16, 16]) + cast(i * 10 + j + 1, f32))
"""
    found = result(body, shape=(40, 70))
    rows, columns = np.indices((40, 70)) // 16
    assert (found == rows * 10 + columns + 1).all()


def test_a_scalar_of_a_tile_steers_a_loop() -> None:
    lengths = np.array([3, 0, 7], np.int32)
    body = """
i = tile_ids(3)
n = item(load(L, [i], [1]))
t = zeros[f32, 16]
for k in range(n):
    t += 1.0
store(OUT, [i * 16], t)
"""
    found = result(body, shape=(48,), L=lengths)
    assert (found.reshape(3, 16) == lengths[:, None]).all()


def test_a_loop_may_wait_for_memory() -> None:
    """What stands in memory, other workgroups may change: a condition that reads it depends on nothing else."""
    head = "def left(A):\n    return item(fetch_add(A, [0], full[i32, 1](-1)))"
    body = "n = 0\nwhile left(A) > 0:\n    n += 3\nstore(OUT, [0], full[i64, 1](cast(n, i64)))"
    text = f"{head}\nkernel k(A: global[i32, N], OUT: global[i64, M]):\n" + "\n".join(
        f"    {line}" for line in body.split("\n")
    )
    found = interpret(text, {"A": np.array([4], np.int32), "OUT": np.zeros(1, np.int64)})
    assert found["OUT"][0] == 12 and found["A"][0] == -1
    checked("kernel k(A: global[i32, N]):\n    while item(load(A, [0], [1])) == 0:\n        print(1)\n")


def test_a_loop_may_change_what_its_condition_reads_in_a_branch_or_a_loop() -> None:
    inner = "n = x\nwhile n > 0:\n    {}\n        n = n - 1"
    assert counted(inner.format("if n > 2:") + "\n    else:\n        n = n - 2", x=7) == 0
    assert counted(inner.format("for i in range(0, 3, 1):"), x=7) == -2
