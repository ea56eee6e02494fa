"""Functions that a file takes from others in its folder: `from epilogues import activate, saturated`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from hkc.frontend import syntax
from hkc.frontend.scope import suggestion
from hkc.support.errors import error

Parse = Callable[[Path], syntax.File]


def with_imports(file: syntax.File, parse: Parse, chain: tuple[str, ...] = ()) -> syntax.File:
    """A file with the functions that it imports, each with those that it calls, as if they stood in it.

    `chain` are the files that are being imported. Raises `HkcError` HK123 for files that can't be, HK301 for functions
    that they don't have.
    """
    taken: dict[str, syntax.Function] = {}
    for line in file.imports:
        path = _path(file, line)
        if str(path) in (file.source.name, *chain):
            raise error(
                "HK123", f"`{path.name}` would import itself", line.span, hint="move what both need to a third file"
            )
        library = with_imports(parse(path), parse, (*chain, file.source.name))
        known = {f.name.name: f for f in library.functions}
        for name in line.names:
            if name.name not in known:
                hint = suggestion(name.name, known) or (f"it has {', '.join(known)}" if known else None)
                raise error("HK301", f"`{path.name}` has no function `{name.name}`", name.span, hint=hint)
            taken |= _with_callees(name.name, known)
    return replace(file, functions=(*taken.values(), *file.functions))


def _path(file: syntax.File, line: syntax.Import) -> Path:
    path = Path(file.source.name).with_name(f"{line.file.name}.hk")
    if not path.is_file():
        near = [p.stem for p in path.parent.glob("*.hk") if str(p) != file.source.name]
        hint = suggestion(line.file.name, near) or "`from file import f` takes `f` from file.hk beside this one"
        raise error("HK123", f"there is no `{path.name}` in the folder of this file", line.file.span, hint=hint)
    return path


def _with_callees(name: str, known: dict[str, syntax.Function]) -> dict[str, syntax.Function]:
    """A function and all that it calls, by name."""
    found: dict[str, syntax.Function] = {}
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in known and name not in found:
            found[name] = known[name]
            waiting += _names(known[name])
    return found


def _names(node: syntax.Node) -> Iterator[str]:
    """The names that stand in a node."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, syntax.Name):
            yield node.name
        waiting += syntax.children(node)
