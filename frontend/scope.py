"""What names and expressions stand for while a kernel is checked, and how messages speak of it."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeGuard, Union

from hkc.dialects.types import GlobalType, IndexType, ScalarType, TileType
from hkc.frontend import syntax
from hkc.frontend.foreign import FOREIGN
from hkc.frontend.program import Value
from hkc.support.dtypes import DTYPES, DType
from hkc.support.errors import HkcError, Note, Span, error

VARIABLE = "variable"
"""The kind of the names that statements assign to."""

Number = bool | int | float
"""A compile-time number. It takes its dtype from what it meets."""

Meaning = Union[Number, DType, Value, "tuple[Meaning, ...]"]
"""What an expression stands for; a tuple is several values."""


class Silenced(Exception):
    """An expression uses a name whose definition was already complained about."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An expression and what it stands for."""

    meaning: Meaning
    expr: syntax.Expr

    @property
    def span(self) -> Span:
        """The place of the expression."""
        return self.expr.span

    @property
    def value(self) -> Value:
        """The run-time value, where it is known to be one."""
        assert isinstance(self.meaning, Value)
        return self.meaning

    def origin(self, what: str = "shape") -> tuple[Note, ...]:
        """A note that shows where a named operand got its type, where that is another line."""
        if not isinstance(self.expr, syntax.Name) or not isinstance(self.meaning, Value):
            return ()
        place = self.meaning.span
        return () if place.line == self.span.line else (Note(f"`{self.expr.name}` gets its {what} here", place),)


@dataclass(frozen=True, slots=True)
class Bound:
    """A name in scope: what it stands for (None after a mistake), what it is called in messages, where it was bound."""

    meaning: Meaning | None
    kind: str
    span: Span | None = None


def predefined() -> dict[str, Bound]:
    """The names that every file knows."""
    numbers: dict[str, Number] = {"True": True, "False": False, "inf": float("inf"), "nan": float("nan")}
    names = {name: Bound(value, "predefined value") for name, value in numbers.items()}
    return names | {name: Bound(d, "dtype") for name, d in DTYPES.items()}


@dataclass
class Scope:
    """The names that are visible at one point, those of the innermost block first; `gone` are those that only existed
    within a block."""

    names: ChainMap[str, Bound]
    gone: dict[str, Span] = field(default_factory=dict)

    def look_up(self, name: syntax.Name, functions: Iterable[str] = ()) -> Meaning:
        """What a name stands for. Raises `HkcError` with a suggestion, or `Silenced`."""
        bound = self.names.get(name.name)
        if bound is None:
            problem = self._unknown(name, functions)
            self.names[name.name] = Bound(None, "unknown name")
            raise problem
        if bound.meaning is None:
            raise Silenced
        return bound.meaning

    def _unknown(self, name: syntax.Name, functions: Iterable[str]) -> HkcError:
        if name.name in self.gone:
            note = Note(f"`{name.name}` gets a value here, inside a block that may not run", self.gone[name.name])
            hint = f"give `{name.name}` a value before the block"
            return error("HK302", f"`{name.name}` does not always exist here", name.span, notes=(note,), hint=hint)
        if name.name in functions:
            return error("HK301", f"`{name.name}` is a function, not a value", name.span, hint=f"{name.name}(…)")
        hint = self._near(name.name) or UNKNOWN
        return error("HK301", f"unknown name `{name.name}`", name.span, hint=hint)

    def _near(self, word: str) -> str | None:
        """A suggestion, as long as there are few names: unknown ones are among them, and comparing takes its time."""
        if sum(map(len, self.names.maps)) > COMPARED:
            return None
        return suggestion(word, [n for n, b in self.names.items() if b.meaning is not None])


COMPARED = 500
"""Names in scope up to which an unknown one is compared with all."""
UNKNOWN = "names come from parameters, dims, const, tune, and assignments above"


def suggestion(word: str, known: Iterable[str]) -> str | None:
    """What a foreign word is here, else ``did you mean `x`?`` for the known word that is nearest, if any is near."""
    if word in FOREIGN:
        return FOREIGN[word]
    near = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean `{near[0]}`?" if near else None


def given_by(words: Iterable[str]) -> str:
    """What there is, where nothing is near to an unknown word."""
    known = sorted(words)
    return f"there {'are' if len(known) > 1 else 'is'} {', '.join(known)}" if known else "leave it out; there is none"


def one_of(words: Sequence[int | str], word: str = "", text: str = "") -> str:
    """All that is possible in a place, or a text like that one, and what a foreign `word` there may have meant."""
    spoken = word.lower().replace("_", "").replace("-", "")
    near = get_close_matches(spoken, [str(w) for w in words], n=1, cutoff=0.6)
    known = [f"one of {', '.join(map(str, words))}"] if words else []
    known += [f"a text like {text}"] if text else []
    return ", or ".join(known) + (f"; did you mean `{near[0]}`?" if near else "")


def describe(meaning: Meaning) -> str:
    """How messages speak of a value."""
    match meaning:
        case Value(type=TileType() as t):
            return f"a {t} tile"
        case Value(type=GlobalType()):
            return "a tensor in memory"
        case Value(type=ScalarType(dtype=d)):
            return f"a scalar of {d}"
        case Value(type=IndexType()):
            return "an index"
        case DType(name=name):
            return f"the dtype {name}"
        case tuple():
            return f"{len(meaning)} values"
    return f"the number {meaning}"


def listed(meanings: Sequence[Meaning]) -> str:
    """How messages speak of what a function gives or takes: one value, or how many they are and which."""
    told = ", ".join(map(describe, meanings))
    return f"{len(meanings)} values ({told})" if len(meanings) > 1 else told or "nothing"


def is_number(meaning: Meaning) -> TypeGuard[Number]:
    """Whether it is known at compile time (a dtype doesn't count)."""
    return isinstance(meaning, (bool, int, float))


def tile_type(meaning: Meaning) -> TileType | None:
    """The type of a tile; None for anything else."""
    return meaning.type if isinstance(meaning, Value) and isinstance(meaning.type, TileType) else None


def global_type(meaning: Meaning) -> GlobalType | None:
    """The type of a tensor in memory; None for anything else."""
    return meaning.type if isinstance(meaning, Value) and isinstance(meaning.type, GlobalType) else None


def element_dtype(meaning: Meaning) -> DType | None:
    """The dtype of a tensor, tile or scalar; None for anything else."""
    if isinstance(meaning, Value) and isinstance(meaning.type, (GlobalType, TileType, ScalarType)):
        return DTYPES[meaning.type.dtype]
    return None


def scalar_dtype(meaning: Meaning) -> str | None:
    """The dtype of a scalar; None for anything else."""
    return meaning.type.dtype if isinstance(meaning, Value) and isinstance(meaning.type, ScalarType) else None


def is_whole(meaning: Meaning) -> bool:
    """Whether it can be converted to an index: a whole number, an index, a scalar of an integer dtype."""
    dtype = scalar_dtype(meaning)
    return is_index(meaning) or (dtype is not None and DTYPES[dtype].kind in ("int", "uint"))


def is_index(meaning: Meaning) -> bool:
    """Whether it counts with 64 bits: a whole number, an index, an integer parameter. `cast(x, i32)` stays an i32."""
    if isinstance(meaning, Value):
        is_parameter = isinstance(meaning.type, ScalarType) and meaning.extent is not None
        return is_parameter or isinstance(meaning.type, IndexType)
    return isinstance(meaning, int) and not isinstance(meaning, bool)
