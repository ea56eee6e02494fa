"""The page `docs/reference/cli.md`, made from the parsers: `python -m hkc.cli.manual > docs/reference/cli.md`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from hkc import cli


def manual() -> str:
    """The whole page."""
    parser = cli.parser()
    commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [_START, *(_command(name, command) for name, command in commands.items())]
    return "\n".join(parts)


_START = """<!-- Made by `python -m hkc.cli.manual`; a test compares. -->
# The command line

`hkc --version` prints the version, `hkc COMMAND --help` what stands here.

Results go to stdout; logs, warnings, progress and errors to stderr. With `--json` or `--report json` stdout is one JSON
document; after an error it is empty, and the error is text on stderr as always.

| exit code | meaning |
|---|---|
| 0 | all is well |
| 1 | an error in the kernel or its data, a wrong result, something missing on this machine |
| 2 | a wrong call: unknown command, option, chip, stage or name |
| 70 | a bug of hkc; a folder `hkc-bug-…` holds what repeats it |
| 130, 141 | interrupted by Ctrl-C; nobody read the output |
"""


def _command(name: str, parser: argparse.ArgumentParser) -> str:
    positional = [a for a in parser._actions if not a.option_strings]
    optional = [a for a in parser._actions if a.option_strings and a.dest != "help"]
    rows = (f"| `{_spelling(a)}` | {_meaning(a)} |" for a in (*positional, *optional))
    call = " ".join(["hkc", name, *_call([*positional, *optional])])
    more = ["```", parser.epilog, "```", ""] if parser.epilog else []
    return "\n".join(
        [f"## {name}", "", "```", call, "```", f"{parser.description}", "", "| | |", "|---|---|", *rows, "", *more]
    )


def _call(actions: list[argparse.Action]) -> Iterator[str]:
    for action in actions:
        word = _spelling(action)
        yield word if action.required else f"[{word}]"
        if action.nargs == "+":
            yield "…"


def _spelling(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar)
    names = ", ".join(action.option_strings)
    if action.nargs == 0:
        return names
    return f"{names} {action.metavar or '{' + ','.join(map(str, action.choices or ())) + '}'}"


def _meaning(action: argparse.Action) -> str:
    return (action.help or "").replace("|", "\\|")


if __name__ == "__main__":
    print(manual(), end="")
