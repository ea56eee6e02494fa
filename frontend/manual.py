"""What is made from the grammar and the functions: `docs/language.md`, and `hkc/language.pyi` with the names
that Python kernels import. `python -m hkc.frontend.manual` writes both; a test compares.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

from hkc.frontend.codes import CODES
from hkc.frontend.functions import FUNCTIONS, Function
from hkc.frontend.library import MODULES, OPTIONS, SPECIAL
from hkc.frontend.making import SHAPED, SHAPED_DOCS
from hkc.frontend.signature import HINTS, TEXTS
from hkc.support.dtypes import DTYPES, DType
from hkc.targets.chip import Chip, load, names

ROOT = Path(__file__).resolve().parents[1]
MADE = "Made by `python -m hkc.frontend.manual`; a test compares."


def made() -> dict[Path, str]:
    """The files and what belongs into them."""
    return {ROOT / "docs" / "language.md": page(), ROOT / "hkc" / "language.pyi": stubs()}


def page() -> str:
    """The reference of the language."""
    parts = [_START.format(made=MADE, example=EXAMPLE), _grammar(), _dtypes(), _hints(), _functions(), _codes()]
    return "\n".join(parts).rstrip() + "\n"


_START = """<!-- {made} -->
# The language

A kernel says what one workgroup does with tiles, small arrays that live in registers. It is written in a `.hk` file, or
as a Python function under `@hkc.kernel` with the names of `hkc.language`; both give the same machine code. The tutorial
is in [tutorial.md](tutorial.md).

Rules that hold everywhere:

* A number without a dtype (`1`, `0.5`, a constant) adopts the dtype of what it meets. Nothing else is converted
  silently: `cast(x, dtype)` does it.
* Tiles broadcast as in NumPy: from the right, extents are equal or one of them is 1. An extent is a power of two or a
  multiple of 16.
* `//` and `%` round down, as in Python; `/` divides floats only. A division by zero is not defined.
* Elements outside a tensor are never touched: loads give their `fill`, stores drop them. Offsets may be negative. A
  `fill` that is left out is 0 (`False` for bools), in registers as on the way through LDS.
* Conditions of `if`, `while` and `… if … else …` are single bools, the same for the whole workgroup. What is known at
  compile time is decided there. `and` and `or` compute both sides unless the first is known at compile time;
  `& | ^ ~` work on bools and integers element by element.
* A variable keeps its shape and dtype through a loop and across branches. A name that only some branch or a loop
  defines does not exist afterwards.
* `for k in range(start, stop, step)` takes bounds and steps known at run time; a run-time step of 0 runs no times.
* Functions (`def`) are inlined. They see the constants of the file and their own arguments, return in their last line,
  and can't call themselves.
* There is no `break`, `continue` or early `return`: a `while` says in its condition when to stop, and an `if` holds
  what is to be skipped.
* Several values can have one name: `pair = (a, b)`, `pair[0]`, `a, b = pair`. Functions take and return them, and they
  change in loops and branches as single values do.
* Shifts by the width of the dtype or more, or by negative numbers, are not defined; amounts known at compile time are
  refused.
* Subnormal numbers are kept by everything except matrix products, which may take them for 0.

A kernel with most of this, which a test checks and runs:

```hk
{example}```
"""

EXAMPLE = """# For each row: its largest element, the first place of that, and the sum of all elements above LEAST.
const LEAST = 0.5
tune ROWS = 16 in [16, 32], COLUMNS = 64 in [64, 128] where ROWS * COLUMNS <= 4096

def better(a, i, b, j):
    return where(b > a, b, a), where(b > a, j, i)

kernel peaks(X: global[f32, M, N], HIGH: global[f32, M], PLACE: global[i32, M], ABOVE: global[f32, M]) with waves=4:
    row = tile_ids(cdiv(M, ROWS)) * ROWS
    best = (full[f32, ROWS](-inf), zeros[i32, ROWS])
    total = zeros[f32, ROWS]
    for start in range(0, N, COLUMNS):
        x = load(X, [row, start], [ROWS, COLUMNS], fill=-inf)
        columns = iota[ROWS, COLUMNS](axis=1) + cast(start, i32)
        best = better(best[0], best[1], max(x, axis=1), argmax(x, axis=1) + cast(start, i32))
        total += sum(where(x > LEAST, x, 0.0), axis=1)
        assert columns >= 0, "no column lies before the first"
    high, place = best
    store(HIGH, [row], high)
    store(PLACE, [row], place)
    store(ABOVE, [row], total)

example M = 20, N = 100
reference HIGH = max(X, axis=1)
"""
"""The kernel of the page."""


def _grammar() -> str:
    """The rules with their comments, as they stand in the grammar."""
    text = Path(__file__).with_name("hk.lark").read_text("utf-8")
    return "\n".join(["## Grammar", "", "```lark", text.rstrip(), "```", ""])


SMALL = tuple(d.name for d in DTYPES.values() if d.is_narrow and d.bits < 8)
"""Floats that only products with scales take."""


def _dtypes() -> str:
    chips = [load(name) for name in names()]
    rows = [
        f"| `{d.name}` | {d.bits} | {_kind(d)} | {' | '.join(_abilities(c, d) for c in chips)} |"
        for d in DTYPES.values()
    ]
    head = f"| name | bits | what it is | {' | '.join(c.name for c in chips)} |"
    return "\n".join(["## Dtypes", "", head, "|---|---|---|" + "---|" * len(chips), *rows, ""])


def _abilities(chip: Chip, d: DType) -> str:
    """What a chip does with a dtype besides moving and converting it."""
    able = {
        "arithmetic": chip.dtypes.arithmetic,
        "exponentials": chip.dtypes.transcendental,
        "atomics": chip.dtypes.atomic_add,
        "`dot`": {x for row in chip.mfmas if not row.scaled for x in (row.a, row.b) if x not in SMALL},
        "`dot_scaled`": {x for row in chip.mfmas if row.scaled for x in (row.a, row.b)},
        "its own conversions": chip.eight_bits.values(),
    }
    return ", ".join(what for what, dtypes in able.items() if d.name in dtypes) or "moves and casts"


def _hints() -> str:
    """What may stand after `with` on a kernel's first line."""
    rows = []
    for name, legal in HINTS.items():
        texts = [f"or a text such as `{TEXTS[name][1]}`"] if name in TEXTS else []
        rows.append(f"* `{name}`: {', '.join([*map(str, legal), *texts]).removeprefix('or ')}")
    start = "`kernel name(…) with waves=4, stages=2:` asks for what hkc else chooses; what can't be had is an error."
    return "\n".join(["## Hints", "", start, "", *rows, ""])


def _kind(d: DType) -> str:
    if not d.is_float:
        return {"int": "signed integer", "uint": "unsigned integer", "bool": "truth value, a byte in memory"}[d.kind]
    narrow = "; `cast` and products only" if d.is_narrow else ""
    return f"float of {d.digits} significant bits{narrow}"


def _functions() -> str:
    parts = ["## Functions", "", "Parameters with `=` may be left out.", ""]
    special = [f"* `{spelling}`" for spelling in SPECIAL.values()]
    shaped = [f"* `{SHAPED[name]}`: {SHAPED_DOCS[name]}" for name in SHAPED]
    parts += ["### The grid, loops, tiles from nothing", "", *special, *shaped]
    grouped = {module.__name__.rpartition(".")[2]: module for module in MODULES}
    parts += [f"* `{f.spelling}`: {f.doc}" for f in FUNCTIONS.values() if f.group not in grouped] + [""]
    for group, module in grouped.items():
        title = (inspect.getdoc(module) or "").split("\n")[0].rstrip(".")
        rows = [f"* `{f.spelling}`: {f.doc}" for f in FUNCTIONS.values() if f.group == group]
        parts += [f"### {title}", "", *rows, ""]
    return "\n".join(parts)


def _codes() -> str:
    rows = [f"* **{code}** {rule}" for code, rule in CODES.items()]
    said = "`hkc explain CODE` prints these, too; [reference/errors.md](reference/errors.md) has examples."
    return "\n".join(["## Errors", "", said, "", *rows])


# The names for Python.


def stubs() -> str:
    """The types of all names of the language, for editors and type checkers."""
    dtypes = [_dtype(d) for d in DTYPES.values()]
    shaped = [f'{name}: Shaped\n"""{doc} `{SHAPED[name]}`"""' for name, doc in SHAPED_DOCS.items()]
    options = [f"{name}: Any" for name in OPTIONS]
    functions = [_function(f) for f in sorted(FUNCTIONS.values(), key=lambda f: f.group)]
    text = "\n\n".join([_HEAD.format(made=MADE), *dtypes, *shaped, *options, *functions, _TAIL]).rstrip() + "\n"
    names = sorted({"global_", *re.findall(r"^(?:class |def |(?=\w+: ))(\w+)", text, re.MULTILINE)})
    listed = "\n    ".join(textwrap.wrap(", ".join(f'"{name}"' for name in names), 112))
    return f"{text}\n__all__ = [  # noqa: RUF022\n    {listed},\n]  # fmt: skip\n"


_BUILTINS = ("abs", "all", "any", "max", "min", "print", "sum")
_OPERATORS = (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod and rand or ror xor rxor lshift rlshift "
    "rshift rrshift lt le gt ge"
).split()

_HEAD = (
    '''"""The names of the language, with types. {made}"""

from typing import Annotated as global_  # noqa: N813  a tensor's dtype and dims, numbers too: `A: global_[f32, M, 64]`
from typing import Any

inf: float
nan: float

class Arithmetic:
    """What can be computed with in a kernel."""

'''
    + "\n".join(f"    def __{name}__(self, other: Any) -> Value: ..." for name in _OPERATORS)
    + '''
    def __neg__(self) -> Value: ...
    def __invert__(self) -> Value: ...

class Value(Arithmetic):
    """A tile, a scalar, an index, or a tensor in memory."""

    T: Value
    dtype: type[Value]
    shape: tuple[Any, ...]
    def __getitem__(self, items: Any) -> Value: ...
    def __iter__(self) -> Any: ...

class DimType(type, Arithmetic):  # type: ignore[misc]
    """Lets the name of a dim be computed with."""

class Dim(metaclass=DimType):
    """The extent of a dim of tensors: `M = Dim` in a module, then `global_[f32, M, N]`."""

class declare:  # noqa: N801
    """What a parameter demands: `Annotated[global_[f16, M], declare(align=16, contiguous=True)]`."""

    def __init__(self, *, align: int = 1, contiguous: bool = False) -> None: ...

class tune(int):  # noqa: N801
    """A number that only decides how fast a kernel is, and the values that a search tries: `tune(128, [64, 128])`."""

    def __new__(cls, value: int, candidates: Any = ()) -> tune: ...

class Shaped:
    """What takes a dtype or extents in square brackets."""

    def __getitem__(self, items: Any) -> Any: ...'''
)

_TAIL = '''def tile_ids(*extents: Any, order: Any = ..., chunk: Any = ..., window: Any = ...) -> Any:
    """The position of this workgroup in the grid of these extents."""

def tiles(*extents: Any, workgroups: Any, order: Any = ..., chunk: Any = ..., window: Any = ...) -> Any:
    """All tiles of a grid, shared by a fixed number of workgroups."""

def range(start: Any, stop: Any = ..., step: Any = ...) -> Any:  # noqa: A001
    """What a loop runs over."""'''


def _dtype(d: DType) -> str:
    name = "bool_" if d.name == "bool" else d.name
    return f'class {name}(Value):  # noqa: N801\n    """The dtype {d.name}: {_kind(d)}."""'


def _function(f: Function) -> str:
    parameters = []
    for i, name in enumerate(f.parameters):
        default = "" if i < f.required or name == f.variadic else " = ..."
        parameters.append(f"    {'*' if name == f.variadic else ''}{name}: Any{default},")
    nothing = inspect.signature(f.handler).return_annotation == "None"
    gives = "None" if nothing else "Any" if f.name in ("scan", "reduce") else "Value"
    builtin = "  # noqa: A001" if f.name in _BUILTINS else ""
    doc = "\n    ".join(textwrap.wrap(f.doc, 108))
    return "\n".join([f"def {f.name}({builtin}", *parameters, f") -> {gives}:", f'    """{doc}"""'])


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text, "utf-8")
