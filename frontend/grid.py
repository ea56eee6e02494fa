"""`tile_ids`: defines the grid of a kernel and gives the position of the workgroup in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hkc.dialects.tile.create import ORDERS
from hkc.frontend import arithmetic, syntax
from hkc.frontend.scope import Meaning
from hkc.support.errors import Note, Span, error

if TYPE_CHECKING:
    from hkc.frontend.expressions import Expressions

SPELLING = "tile_ids(extent, …, order=rows|chiplet, chunk=32, window=8)"
AXES = 3


@dataclass
class Grid:
    """The grid of the kernel that is being checked: extent texts once `tile_ids` was called, and blocks around."""

    extents: tuple[str, ...] = ("1",)
    place: Span | None = None
    blocks: int = 0

    @contextmanager
    def block(self) -> Iterator[None]:
        """Within it, `tile_ids` is refused."""
        self.blocks += 1
        try:
            yield
        finally:
            self.blocks -= 1

    def tile_ids(self, c: Expressions, call: syntax.Call) -> Meaning:
        """One index per extent. Raises `HkcError`, for a second call or one in a loop too."""
        once(call)
        assert isinstance(call.callee, syntax.Name)  # `tile_ids`, or the `tiles` of a persistent kernel
        if self.blocks:
            message = f"`{call.callee.name}` can't stand in a block"
            raise error("HK309", message, call.span, hint="it defines the grid; call it first")
        if self.place is not None:
            message, note = "the grid of a kernel is defined once", Note("the first time is here", self.place)
            raise error("HK309", message, call.span, notes=(note,), hint=f"for several axes: {SPELLING}")
        self.place, order = call.span, self.order(c, call.keywords)
        if not 1 <= len(call.arguments) <= AXES:
            raise error("HK309", f"a grid has 1 to {AXES} axes, not {len(call.arguments)}", call.span, hint=SPELLING)
        operands = [c.operand(a) for a in call.arguments]
        values = [arithmetic.index(c.b, o) for o in operands]
        for operand, value in zip(operands, values, strict=True):
            if isinstance(operand.meaning, int) and operand.meaning < 1:
                message = f"a grid of {operand.meaning} workgroups computes nothing"
                raise error("HK309", message, operand.span, hint="at least 1")
            if value.extent is None:
                raise error(
                    "HK309",
                    "the grid may depend on dims, scalars and constants only",
                    operand.span,
                    notes=operand.origin("value"),
                    hint="compute it outside the kernel and pass it as a parameter",
                )
        self.extents = tuple(_outermost(v.extent or "") for v in values)
        ids = c.b.tile_op("tile_id", values, call.span, {}, **order)
        return ids[0] if len(ids) == 1 else ids

    def order(self, c: Expressions, keywords: Sequence[syntax.Keyword], spelling: str = SPELLING) -> dict[str, Any]:
        """The attributes `order`, `chunk` and `window` of a grid's ops. Raises `HkcError`."""
        found: dict[str, Any] = {"order": "rows"}
        for keyword in keywords:
            name = keyword.name.name
            if name == "order":
                found[name] = c.word(keyword.value, ORDERS)
            elif name in ("chunk", "window"):
                found[name] = c.whole_number(keyword.value, f"the {name} of a grid")
                if found[name] < 1:
                    message = f"the {name} of a grid can't be {found[name]}"
                    raise error("HK309", message, keyword.value.span, hint="at least 1; left out, it is chosen")
            else:
                raise error("HK211", f"a grid has no argument `{name}`", keyword.name.span, hint=spelling)
        for keyword in keywords:
            if keyword.name.name != "order" and found["order"] != "chiplet":
                message = f"a grid in the order `{found['order']}` has no {keyword.name.name}"
                raise error("HK309", message, keyword.name.span, hint=f"order=chiplet, {keyword.name.name}=…")
        return found


def once(call: syntax.Call) -> None:
    """Raise `HkcError` for an argument that is given twice."""
    places: dict[str, Span] = {}
    for keyword in call.keywords:
        name, span = keyword.name.name, keyword.name.span
        if name in places:
            raise error("HK211", f"a grid gets `{name}` twice", places[name], span, hint="leave one of them out")
        places[name] = span


def _outermost(extent: str) -> str:
    """An extent's text without the brackets that only matter inside a larger one."""
    return extent[1:-1] if extent.startswith("(") else extent
