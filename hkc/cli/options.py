"""Options that several commands have, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]

_LIMIT = 1 << 24


def command(
    commands: Commands, name: str, run: Callable[[argparse.Namespace], int], text: str
) -> argparse.ArgumentParser:
    """A new command; `text` describes it, its first sentence in the list of commands."""
    made = commands.add_parser(name, help=text.partition(". ")[0].rstrip("."), description=text, allow_abbrev=False)
    made.set_defaults(run=run)
    return made


def add_set(to: argparse.ArgumentParser, what: str) -> None:
    """The option `--set`, whose value is a list of pairs."""
    to.add_argument(
        "--set", metavar="NAME=VALUE,…", type=pairs, action="extend", default=[], help=f"{what}; may be repeated"
    )


def add_kernel(to: argparse.ArgumentParser) -> None:
    """The option `--kernel`."""
    to.add_argument("--kernel", metavar="NAME", help="which kernel is meant, where the file has several")


def add_limit(to: argparse.ArgumentParser) -> None:
    """The option `--limit`: some minutes at most."""
    to.add_argument(
        "--limit", type=positive, default=_LIMIT, metavar="STEPS", help=f"an endless loop after so many ({_LIMIT})"
    )


def pairs(text: str) -> list[tuple[str, str]]:
    """`M=1,N=2` as pairs of texts."""
    return [pair(part) for part in text.split(",")]


def pair(text: str) -> tuple[str, str]:
    """`NAME=VALUE` as a pair of texts."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip().isidentifier() and value.strip()):
        raise argparse.ArgumentTypeError(f"NAME=VALUE is needed, not `{text}`")
    return name.strip(), value.strip()


def count(text: str) -> int:
    """A whole number from 0."""
    if not text.strip().isdecimal():
        raise argparse.ArgumentTypeError(f"a whole number is needed, not `{text}`")
    return int(text)


def positive(text: str) -> int:
    """A whole number from 1."""
    if count(text) == 0:
        raise argparse.ArgumentTypeError("a whole number from 1 is needed, not `0`")
    return int(text)


def words(text: str) -> list[str]:
    """`a,b` as a list without repetitions."""
    return list(dict.fromkeys(word.strip() for word in text.split(",")))
