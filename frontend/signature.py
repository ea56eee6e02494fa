"""The first line of a kernel: parameters with their types, symbolic dims, hints."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hkc.dialects.types import GlobalType, IndexType, ScalarType
from hkc.frontend import syntax
from hkc.frontend.builder import Builder
from hkc.frontend.codes import RANK
from hkc.frontend.constants import compile_time, refuse_taken
from hkc.frontend.library import WORDS
from hkc.frontend.program import Value
from hkc.frontend.scope import Bound, Silenced, describe, given_by, one_of, suggestion
from hkc.machine.abi import Aligned, Condition, GlobalParam, Param, ScalarParam, StrideMultiple, UnitStride
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import Diagnostic, HkcError, error

ALIGNMENTS = (2, 4, 8, 16, 32, 64, 128, 256)
HINTS: dict[str, tuple[int | str, ...]] = {
    "waves": (1, 2, 4, 8, 16),
    "schedule": ("pingpong", "interleave", "plain"),
    "stages": (1, 2, 3, 4),
    "unroll": (2, 3, 4, 5, 6, 7, 8),
    "waves_per_eu": (1, 2, 3, 4, 5, 6, 7, 8),
    "mfma": (),
    "swizzle": ("none", "pad", "xor"),
    "align": ALIGNMENTS,
}
"""The hints that have an effect, with their legal values: whole numbers or words."""
TEXTS = {
    "mfma": (r"\d+x\d+x\d+|v_mfma_\w+", '"16x16x32"'),
    "swizzle": (r"\d+\^\d+(,\d+\^\d+)*", '"4^7,5^8"'),
}
"""The hints that may also be a text of a certain form, and an example of it."""
DECLARED = "global[f16, M, N](align=16, contiguous=True)"


@dataclass
class Signature:
    """Collects what the first line of a kernel declares; `names` are those visible in its body."""

    names: dict[str, Bound]
    builder: Builder
    diagnostics: list[Diagnostic]
    params: list[Param] = field(default_factory=list)
    arguments: list[Value] = field(default_factory=list)
    conditions: list[Condition] = field(default_factory=list)

    def declare(self, parameters: tuple[syntax.Parameter, ...]) -> None:
        """Parameters in order, then their dims; a dim that is not a constant becomes an index of that name."""
        shared, own = dict(self.names), {p.name.name for p in parameters}
        for parameter in parameters:
            bound = Bound(None, "parameter", parameter.name.span)
            try:
                refuse_taken(parameter.name, self.names)
                bound = self._parameter(parameter, shared, own)
            except HkcError as problem:
                self.diagnostics += problem.diagnostics
                self._forget(parameter)
            except Silenced:
                self._forget(parameter)
            self.names.setdefault(parameter.name.name, bound)

    def _forget(self, parameter: syntax.Parameter) -> None:
        """After a mistake: names in the type are known, but stand for nothing."""
        for part in syntax.children(parameter.type):
            if isinstance(part, syntax.Name):
                self.names.setdefault(part.name, Bound(None, "dim", part.span))

    def _parameter(self, parameter: syntax.Parameter, shared: Mapping[str, Bound], own: set[str]) -> Bound:
        kind, name = parameter.type, parameter.name.name
        declared = kind if isinstance(kind, syntax.Call) else None
        kind = declared.callee if declared else kind
        if isinstance(kind, syntax.Index) and kind.word == "global":
            bound = self._tensor(parameter, kind, shared, own)
            if declared:
                self._conditions(name, declared, kind)
            return bound
        scalar = not declared and isinstance(kind, syntax.Name) and (kind.name in shared or kind.name not in WORDS)
        if not scalar:
            hint = f"`{name}: global[f32, M, N]` or `{name}: f32`"
            raise error("HK306", "a parameter is a tensor or a number", kind.span, hint=hint)
        dtype = self._dtype(kind, shared)
        self.params.append(ScalarParam(name, dtype.name))
        value = Value(ScalarType(dtype.name), parameter.span, name if dtype.kind in ("int", "uint") else None)
        self.arguments.append(value)
        return Bound(value, "parameter", parameter.name.span)

    def _tensor(
        self, parameter: syntax.Parameter, kind: syntax.Index, shared: Mapping[str, Bound], own: set[str]
    ) -> Bound:
        if not 2 <= len(kind.items) <= RANK + 1:
            raise error("HK306", f"a tensor has a dtype and 1 to {RANK} dims", kind.span, hint="global[f32, M, N]")
        items = [i for i in kind.items if not isinstance(i, syntax.Cut)]
        if len(items) != len(kind.items):
            raise error("HK306", "`:` is no dim", kind.span, hint="global[f32, M, N]")
        dtype = self._dtype(items[0], shared)
        dims = tuple(self._dim(item, shared, own) for item in items[1:])
        value = Value(GlobalType(dims, dtype.name), parameter.span)
        self.params.append(GlobalParam(parameter.name.name, dtype.name, dims))
        self.arguments.append(value)
        for axis, (dim, item) in enumerate(zip(dims, items[1:], strict=True)):
            if isinstance(dim, str) and dim not in self.names:
                position = self.builder.constant(axis, IndexType(), item.span)
                extent = self.builder.op("memref.dim", [value, position], IndexType(), item.span)
                extent.extent = dim
                self.names[dim] = Bound(extent, "dim", item.span)
        return Bound(value, "parameter", parameter.name.span)

    def _conditions(self, name: str, declared: syntax.Call, kind: syntax.Index) -> None:
        """What `global[…](align=16, contiguous=True)` demands of the tensor of a launch."""
        rank = len(kind.items) - 1
        if declared.arguments:
            raise error("HK211", "a declaration names what it demands", declared.span, hint=DECLARED)
        for keyword in declared.keywords:
            value = compile_time(keyword.value, self.names, "what a parameter demands")
            if keyword.name.name == "align":
                if not isinstance(value, int) or value not in ALIGNMENTS:
                    legal = ", ".join(map(str, ALIGNMENTS))
                    where, hint = keyword.value.span, f"one of {legal}, in bytes"
                    raise error("HK307", f"`align` can't be {describe(value)}", where, hint=hint)
                self._aligned(name, rank, value)
            elif keyword.name.name == "contiguous":
                if not isinstance(value, bool):
                    raise error(
                        "HK208",
                        f"True or False is needed here, not {describe(value)}",
                        keyword.value.span,
                        hint=DECLARED,
                    )
                self.conditions += [UnitStride(name, rank - 1)] if value else []
            else:
                word = keyword.name
                hint = suggestion(word.name, ("align", "contiguous")) or DECLARED
                raise error("HK211", f"a tensor has no property `{word.name}`", word.span, hint=hint)

    def _dtype(self, expr: syntax.Expr, shared: Mapping[str, Bound]) -> DType:
        meaning = compile_time(expr, shared, "a dtype")
        if not isinstance(meaning, DType):
            hint = f"one of {', '.join(DTYPES)}"
            raise error("HK306", f"a dtype is needed here, not {describe(meaning)}", expr.span, hint=hint)
        return meaning

    def _dim(self, expr: syntax.Expr, shared: Mapping[str, Bound], own: set[str]) -> str | int:
        if isinstance(expr, syntax.Name) and expr.name not in shared:
            if expr.name in WORDS or expr.name in own:
                raise error("HK306", f"`{expr.name}` can't name a dim", expr.span, hint="choose another name")
            return expr.name
        meaning = compile_time(expr, shared, "a dim that is not a name")
        if not isinstance(meaning, int) or isinstance(meaning, bool) or not 0 <= meaning < 2**63:
            hint = "global[f32, M, 64]"
            raise error("HK306", f"a dim is a name or a whole number, not {describe(meaning)}", expr.span, hint=hint)
        return meaning

    def hints(self, bindings: tuple[syntax.Binding, ...]) -> tuple[tuple[str, int | str], ...]:
        """The hints after `with`; one that has no effect is a mistake."""
        found: dict[str, int | str] = {}
        for binding in bindings:
            try:
                found[binding.name.name] = self._hint(binding, found)
                if binding.name.name == "align":
                    self._align_all(binding)
            except HkcError as problem:
                self.diagnostics += problem.diagnostics
            except Silenced:
                pass
        return tuple(found.items())

    def _hint(self, binding: syntax.Binding, found: Mapping[str, int | str]) -> int | str:
        word = binding.name
        if word.name not in HINTS:
            hint = suggestion(word.name, HINTS) or given_by(HINTS)
            raise error("HK307", f"unknown hint `{word.name}`", word.span, hint=hint)
        if word.name in found:
            raise error("HK304", f"the hint `{word.name}` is given twice", word.span, hint="leave one of them out")
        legal = HINTS[word.name]
        pattern, example = TEXTS.get(word.name, ("", ""))
        chosen = _word(binding.value, legal, pattern)
        if chosen is not None:
            return chosen
        foreign = self._foreign_word(binding.value, legal)
        hint = one_of(legal, foreign or "", example)
        if foreign is not None:
            raise error("HK307", f"`{word.name}` can't be `{foreign}`", binding.value.span, hint=hint)
        value = compile_time(binding.value, self.names, "a hint")
        if not isinstance(value, int) or isinstance(value, bool) or value not in legal:
            near = _nearest(value, legal)
            raise error("HK307", f"`{word.name}` can't be {describe(value)}", binding.value.span, hint=f"{hint}{near}")
        return value

    def _foreign_word(self, expr: syntax.Expr, legal: Sequence[int | str]) -> str | None:
        """A text, or a name that means nothing where words are possible."""
        if isinstance(expr, syntax.Text):
            return expr.text
        if isinstance(expr, syntax.Name) and expr.name not in self.names and not any(isinstance(v, int) for v in legal):
            return expr.name
        return None

    def _align_all(self, binding: syntax.Binding) -> None:
        """The hint `align` demands of every tensor what `global[…](align=…)` demands of one; that one goes first."""
        own = {c.param for c in self.conditions if isinstance(c, Aligned)}
        rest = [p for p in self.params if isinstance(p, GlobalParam) and p.name not in own]
        if not rest:
            why = "no tensor of this kernel is without an `align` of its own"
            raise error("HK308", f"the hint `align` has no effect: {why}", binding.name.span, hint="leave it out")
        value = compile_time(binding.value, self.names, "a hint")
        assert isinstance(value, int)  # _hint saw to it
        for param in rest:
            self._aligned(param.name, len(param.dims), value)

    def _aligned(self, name: str, rank: int, value: int) -> None:
        self.conditions.append(Aligned(name, value))
        self.conditions += [StrideMultiple(name, d, value) for d in range(rank - 1)]


def _word(expr: syntax.Expr, legal: tuple[int | str, ...], pattern: str) -> str | None:
    """The word that a hint's value is, or its text of a certain form; in Python words stand in quotes."""
    word = expr.name if isinstance(expr, syntax.Name) else expr.text if isinstance(expr, syntax.Text) else None
    return word if word is not None and (word in legal or re.fullmatch(pattern, word)) else None


def _nearest(value: object, legal: Sequence[int | str]) -> str:
    """Which of the legal numbers lie next to one that is not, to be added to a list of them."""
    if not isinstance(value, int) or isinstance(value, bool):
        return ""
    numbers = [n for n in legal if isinstance(n, int)]
    around = [*[n for n in numbers if n < value][-1:], *[n for n in numbers if n > value][:1]]
    return f"; the nearest {'are' if len(around) > 1 else 'is'} {' and '.join(map(str, around))}" if around else ""
