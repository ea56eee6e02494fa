"""What is made from the op records: `dialects/tile.irdl` and the pages `docs/reference/{tile,wave}.md`.

`python -m hkc.dialects.manual` writes them anew; a test compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import hkc.dialects.tile
import hkc.dialects.wave  # noqa: F401  (importing the packages fills the registries)
from hkc.dialects.builtin import BUILTINS
from hkc.dialects.define import TILE_DIALECT, WAVE_DIALECT, Field, OpRecord, Registry
from hkc.support import worker

ROOT = Path(__file__).resolve().parents[1]

TILE_INTRO = """# The tile dialect

What is computed, with no lanes, no LDS and no waits. A register tile is a builtin `tensor`; once layouts are chosen its
encoding is `#hkc_tile.layout<"…">`. Tensors in global memory are `memref`s with strides, offsets and extents `index`
values, loops `scf.for`. Besides the ops below, tile IR uses the builtin ops listed at the end. All ops are written in
MLIR's generic form. By `dialects/tile.irdl`, a stock `mlir-opt --irdl-file` reads all tile
IR and refuses wrong arity, missing attributes, and types that must be equal but differ. What relates an element type to
a tile, or shapes and layouts to each other, IRDL can't say: a `fill` of another type than the tensor's elements, for
instance. `hkc opt --verify` refuses the rest.
"""

WAVE_INTRO = """# The wave dialect

How it is computed: one vector per lane, LDS buffers whose type says how a tile lies in them, and the waits, barriers
and priorities that order it all. A schedule can be written in it by hand; `tests/golden/wave/` holds examples.
"""

BUILTIN_INTRO = """## Builtin ops

They act element by element on tiles, scalars and indices (`tensor.splat` fills a tile), and mean what MLIR says. The
last column bounds the error of one evaluation in floats, in units in the last place; nothing means exact.

| op | in the language | ulps |
|---|---|---|
"""


def made() -> dict[Path, str]:
    """All generated files and what belongs into them."""
    return {
        ROOT / "docs/reference/tile.md": page(TILE_DIALECT, TILE_INTRO) + "\n" + BUILTIN_INTRO + "".join(_builtins()),
        ROOT / "docs/reference/wave.md": page(WAVE_DIALECT, WAVE_INTRO),
        ROOT / "dialects/tile.irdl": worker.call("hkc.dialects.load:tile_irdl"),
    }


def page(registry: Registry, intro: str) -> str:
    """The page of a dialect: every op with its words, fields and examples."""
    return intro + "".join(_entry(record) for record in registry.ops.values())


def _entry(record: OpRecord) -> str:
    spelling = f"\n\nIn the language: `{record.spelling}`." if record.spelling else ""
    fields = "\n".join(f"| {f.role} | `{f.name}` | {_kind(f)} |" for f in record.fields)
    table = f"\n\n| | | |\n|---|---|---|\n{fields}" if fields else ""
    examples = "\n".join(record.examples[:3])
    return f"\n## `{record.full_name}`\n\n{record.doc}{spelling}{table}\n\n```mlir\n{examples}\n```\n"


def _kind(field: Field) -> str:
    words = {"index": "an index", "any": "any type", "integer": "an integer", "int": "a number", "ints": "numbers"}
    kind = words.get(field.constraint.name, f"a {field.constraint.name}")
    if field.variadic:
        kind = f"any number of: {kind}"
    if field.same:
        kind += f", of the type of `{field.same}`"
    return kind if field.default is None else f"{kind}; {field.default!r} where it is left out"


def _builtins() -> Iterator[str]:
    for builtin in BUILTINS.values():
        spelling = f"`{builtin.spelling}`" if builtin.spelling else ""
        yield f"| `{builtin.name}` | {spelling} | {builtin.ulps or ''} |\n"


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
