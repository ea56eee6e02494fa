"""The pages `docs/reference/{cli,errors,passes}.md`, made from the parsers, the errors' codes and the passes' docs.

`python -m hkc.cli.manual` writes them anew; a test compares.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from hkc import cli
from hkc.cli.explain import all_codes
from hkc.cli.opt import passes
from hkc.support import worker

ROOT = Path(__file__).resolve().parents[2]


def made() -> dict[Path, str]:
    """The generated pages."""
    folder = ROOT / "docs/reference"
    return {folder / "cli.md": manual(), folder / "errors.md": errors_page(), folder / "passes.md": passes_page()}


def manual() -> str:
    """The page about the command line."""
    parser = cli.parser()
    commands = next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))
    parts = [_START, *(_command(name, command) for name, command in commands.items())]
    return "\n".join(parts)


_START = """<!-- Made by `python -m hkc.cli.manual`; a test compares. -->
# The command line

`hkc --version` prints the version, `hkc COMMAND --help` what stands here.

Results go to stdout; logs, warnings, progress and errors to stderr. With `--json` or `--report json` stdout is one JSON
document. After an error it says `{"ok": false, "exit_code": …, "errors": [{"code": …, "message": …, "file": …}]}`, and
the error is text on stderr as always.

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


def errors_page() -> str:
    """The page about all errors: the rule behind each code, and the shortest mistake of the tests that breaks it."""
    shown: dict[str, str] = {}
    for path in sorted((ROOT / "tests/mistakes").glob("*.txt")):
        text = path.read_text("utf-8").rstrip()
        found = re.findall(r"error\[(HK\d+)\]", text)
        if len(found) == 1 and len(text) < len(shown.get(found[0], text + " ")):
            shown[found[0]] = text
    parts = (f"\n## {code}\n\n{rule}\n{_example(shown.get(code))}" for code, rule in all_codes().items())
    return f"{_ERRORS}{''.join(parts)}"


_ERRORS = """<!-- Made by `python -m hkc.cli.manual`; a test compares. -->
# The errors

The rule behind each code, as `hkc explain CODE` prints it. Below it stands what one mistake of its kind looks like, for
those that a kernel's text alone can show; each has a file in `tests/mistakes/`.
"""


def _example(text: str | None) -> str:
    return f"\n```\n{text}\n```\n" if text else ""


def passes_page() -> str:
    """The page about the passes and forms."""
    forms: Sequence[tuple[str, str]] = worker.call("hkc.pipeline:described_forms")
    rows = "".join(f"| `{name}` | {doc} |\n" for name, doc in forms)
    return f"{_PASSES}{rows}{''.join(_pass(*row) for row in passes())}"


_PASSES = """<!-- Made by `python -m hkc.cli.manual`; a test compares. -->
# The passes

In the order in which the pipeline runs them. `hkc opt FILE.mlir -p PASS,…` runs any of them, and any of MLIR's own, on
the text of a module, such as `hkc compile --emit tile,wave,rocdl` writes it; with `HKC_DUMP=1` every pass leaves a
numbered file in the folder `hkc-dump`. `hkc compile FILE.mlir` goes on from wherever a module is.

A module says what it is by its attributes `hkc.dialect_version`, `hkc.chip` and `hkc.forms`; its kernel has
`hkc.interface`, what a launch needs to know. A form is something that may be relied on. A pass is refused (HK475) where
a form that it needs is not among `hkc.forms`, and so is a module (HK473) of which a form that it claims does not hold.

| form | what holds |
|---|---|
"""


def _pass(stage: str, name: str, doc: str, needs: Sequence[str], gives: Sequence[str], drops: Sequence[str]) -> str:
    groups = (("Needs", needs), ("Gives", gives), ("Drops", drops))
    forms = "; ".join(f"{word} {', '.join(f'`{form}`' for form in group)}" for word, group in groups if group)
    return f"\n## `{name}`\n\nLeads to the stage `{stage}`.{f' {forms}.' if forms else ''}\n\n{_markdown(doc)}\n"


def _markdown(doc: str) -> str:
    """A docstring with its indented blocks fenced."""
    lines: list[str] = []
    inside = False
    for line in doc.splitlines():
        if inside and line and not line.startswith(" "):
            while not lines[-1]:
                lines.pop()
            lines += ["```", ""]
            inside = False
        if line.endswith("::"):
            lines += [line[:-1], "", "```mlir"]
            inside = True
        elif not (inside and not line and lines[-1] == "```mlir"):
            lines.append(line[4:] if inside else line)
    return "\n".join([*lines, "```"] if inside else lines)


if __name__ == "__main__":
    for path, text in made().items():
        path.write_text(text)
