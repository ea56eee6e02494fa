"""What travels with a module as attributes, so that its text can be entered again: version, chip, forms, interface.

A module has `hkc.dialect_version`, `hkc.chip` and `hkc.forms`; a kernel function has `hkc.interface`, the part of
`KernelInfo` that can't be told from the code. Worker process only.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from hkc.dialects.forms import FORMS, kernels
from hkc.dialects.load import VERSION
from hkc.machine import abi
from hkc.machine.abi import KernelInfo
from hkc.support.errors import Diagnostic, HkcError, Note, Source, Span, error
from hkc.support.mlir import UNNAMED, Message, Place, ir, messages

DIALECT_VERSION, CHIP, HELD = "hkc.dialect_version", "hkc.chip", "hkc.forms"
"""Attributes of a module: the version of our dialects, the chip's name, the names of the forms that hold."""

INTERFACE, GRID = "hkc.interface", "hkc.grid"
"""Attributes of a kernel function: what a launch must know of it, and its grid."""

PRINTS = "hkc.prints"
"""Attribute of a module: the `print` statements of its kernels, by number."""

_PARTS = ("params", "outputs", "inputs", "constants", "requires")


@dataclass(frozen=True)
class Header:
    """What a module says of itself; `chip` is None where nobody has chosen one yet."""

    chip: str | None
    forms: frozenset[str]


def mark(module: Any, chip: str, forms: Iterable[str]) -> None:
    """Write the header into a module."""
    integer = ir.IntegerType.get_signless(64)
    module.operation.attributes[DIALECT_VERSION] = ir.IntegerAttr.get(integer, VERSION)
    module.operation.attributes[CHIP] = ir.StringAttr.get(chip)
    module.operation.attributes[HELD] = _attribute(tuple(sorted(forms)))


def parse(source: Source) -> Any:
    """The module of a text, in the current context, into which the dialects must be loaded.

    Raises `HkcError` HK471, at its place, for a text that MLIR or a verifier of ours refuses.
    """
    try:
        return ir.Module.parse(source.text)
    except ir.MLIRError as failure:
        raise refusal(failure, source) from None


def refusal(failure: Any, source: Source) -> HkcError:
    """What MLIR says against a module that was made from this text, as an error at its places."""
    said = messages(failure) or (Message("error", str(failure), (), ()),)

    def span(places: tuple[Place, ...]) -> Span | None:
        if not places:
            return None
        at = places[0]
        file = source if at.file in (UNNAMED, source.name) else Source(at.file, "")
        return Span(file, at.line, at.column, at.line, at.column + 1)

    def diagnostic(m: Message) -> Diagnostic:
        at = span(m.places)
        return Diagnostic("HK471", m.text, (at,) if at else (), tuple(Note(n.text, span(n.places)) for n in m.notes))

    return HkcError(*map(diagnostic, said))


def read(module: Any) -> Header:
    """The header of a module. Raises `HkcError` HK472 for another dialect version, HK473 for an unknown form."""
    found = module.operation.attributes
    version = int(ir.IntegerAttr(found[DIALECT_VERSION]).value) if DIALECT_VERSION in found else VERSION
    if version != VERSION:
        hint = "write the text anew with this hkc"
        raise error("HK472", f"the module has version {version} of the dialects, this hkc {VERSION}", hint=hint)
    forms = _value(found[HELD]) if HELD in found else ()
    for name in forms:
        if name not in FORMS:
            raise error("HK473", f"there is no form `{name}`", hint=f"there are {', '.join(FORMS)}")
    return Header(_value(found[CHIP]) if CHIP in found else None, frozenset(forms))


def interface(info: KernelInfo) -> dict[str, Any]:
    """The attributes of a kernel function that `info` makes from it again."""
    parts = {name: _attribute(getattr(info, name)) for name in _PARTS}
    return {GRID: _attribute(info.grid), INTERFACE: ir.DictAttr.get(parts)}


def set_prints(module: Any, prints: Sequence[abi.Print]) -> None:
    """Note the `print` statements of a module, if there are any."""
    if prints:
        module.operation.attributes[PRINTS] = _attribute(tuple(prints))


def info(module: Any, chip: str) -> KernelInfo:
    """What is known of the kernel of a module, all but its waves and entries. Raises `HkcError` HK474 where that is
    not said."""
    found = kernels(module)
    if not found or INTERFACE not in found[0].attributes:
        raise error("HK474", f"the module has no kernel function with the attribute `{INTERFACE}`")
    attributes = found[0].attributes
    parts = {name: _value(part) for name, part in _items(attributes[INTERFACE]) if name in _PARTS}
    symbol = ir.StringAttr(attributes["sym_name"]).value
    noted = module.operation.attributes
    parts["prints"] = _value(noted[PRINTS]) if PRINTS in noted else ()
    return KernelInfo(name=symbol, arch=chip, grid=_value(attributes[GRID]), waves=1, entries=(), **parts)


def _attribute(value: Any) -> Any:
    """Texts, whole numbers, tuples and records of the ABI as attributes."""
    if isinstance(value, str):
        return ir.StringAttr.get(value)
    if isinstance(value, int):
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)
    if is_dataclass(value):
        parts = {f.name: _attribute(getattr(value, f.name)) for f in fields(value)}
        return ir.DictAttr.get({"kind": _attribute(type(value).__name__), **parts})
    return ir.ArrayAttr.get([_attribute(v) for v in value])


def _value(attribute: Any) -> Any:
    """The inverse of `_attribute`."""
    if isinstance(attribute, ir.StringAttr):
        return attribute.value
    if isinstance(attribute, ir.IntegerAttr):
        return int(attribute.value)
    if isinstance(attribute, ir.ArrayAttr):
        return tuple(_value(a) for a in attribute)
    parts = {name: _value(a) for name, a in _items(attribute)}
    return getattr(abi, parts.pop("kind"))(**parts)


def _items(attribute: Any) -> Iterable[tuple[str, Any]]:
    return ((a.name, a.attr) for a in ir.DictAttr(attribute))
