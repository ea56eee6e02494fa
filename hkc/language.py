"""The names of the language, for kernels that are Python functions under `@hkc.kernel`.

A kernel is read, not executed, so the names mean something only inside one. `language.pyi` says to editors and type
checkers what there is.
"""

from __future__ import annotations

from typing import Any

inf = float("inf")
nan = float("nan")


class Word:
    """A name of the language."""

    def __init__(self, word: str) -> None:
        self.word = word

    def __getitem__(self, items: Any) -> Word:
        return self

    def __call__(self, *_: Any, **__: Any) -> Any:
        """Nothing is computed outside a kernel."""
        raise TypeError(f"`{self.word}` means something only inside a kernel, which is compiled, not called")

    def __repr__(self) -> str:
        return f"hkc.language.{self.word}"


class Dim:
    """The extent of a dim of tensors: `M = Dim` in a module, then `global_[f32, M, N]`."""


class tune(int):  # noqa: N801
    """A number that only decides how fast a kernel is, and the values that a search tries: `tune(128, [64, 128])`."""

    candidates: tuple[int, ...]

    def __new__(cls, value: int, candidates: Any = ()) -> tune:
        """A number like any other."""
        made = super().__new__(cls, value)
        made.candidates = tuple(candidates)
        return made


class declare:  # noqa: N801
    """What a parameter demands: `Annotated[global_[f16, M], declare(align=16, contiguous=True)]`."""

    def __init__(self, *, align: int = 1, contiguous: bool = False) -> None:
        self.align, self.contiguous = align, contiguous


def __getattr__(name: str) -> Any:
    from hkc.frontend.library import OPTIONS, STAR, WORDS
    from hkc.support.dtypes import DTYPES

    if name == "__all__":
        return sorted(STAR)
    word = name.removesuffix("_")
    if word not in WORDS and word not in DTYPES and word not in OPTIONS:
        raise AttributeError(f"the language has no `{name}`")
    made = globals()[name] = Word(word)
    return made
