"""The bindings behind one module: contexts, diagnostics and locations as plain data. Runs in the worker."""

import inspect
import textwrap

import pytest

from hkc.support import worker
from hkc.support.mlir import Message, Place


@pytest.fixture(autouse=True)
def bug_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HKC_BUG_DIR", str(tmp_path))


def in_worker(function, *args):
    """What `function(*args)` returns in the worker, to which it travels as source text."""
    source = textwrap.dedent(inspect.getsource(function)) + f"\nresult = {function.__name__}(*{args!r})"
    return worker.call("builtins:eval", f"(lambda names: (exec({source!r}, names), names['result'])[1])({{}})")


def test_a_context_refuses_unregistered_operations():
    def refused():
        from hkc.support.mlir import context, ir

        with context(), ir.Location.unknown():
            try:
                return str(ir.Module.parse('"nobody.knows"() : () -> ()'))
            except ir.MLIRError as failure:
                return str(failure)

    assert "unregistered dialect" in in_worker(refused)


def test_diagnostics_become_records():
    def collected():
        from hkc.support.mlir import context, ir, messages

        text = "func.func @f(%a: i32) {\n  %b = arith.addi %a, %a : f32\n  return\n}"
        with context(), ir.Location.unknown():
            try:
                ir.Module.parse(text)
            except ir.MLIRError as failure:
                return messages(failure)

    (message,) = in_worker(collected)
    assert message.severity == "error" and "'f32' vs 'i32'" in message.text
    assert message.places == (Place("-", 2, 19),)
    assert message.notes == (Message("note", "prior use here", (Place("-", 1, 14),), ()),)


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ('"a.hk":3:4', [("a.hk", 3, 4)]),
        ("unknown", []),
        ('fused["a.hk":3:4, "b.hk":1:2, "a.hk":3:4]', [("a.hk", 3, 4), ("b.hk", 1, 2)]),
        ('callsite("callee.hk":1:2 at "caller.hk":5:6)', [("callee.hk", 1, 2), ("caller.hk", 5, 6)]),
        ('"name"(fused["a.hk":3:4])', [("a.hk", 3, 4)]),
    ],
)
def test_locations_become_places(location, expected):
    def found(text):
        from hkc.support.mlir import context, ir, places

        with context():
            return places(ir.Module.parse(f"module {{}} loc({text})").operation.location)

    assert in_worker(found, location) == tuple(Place(*place) for place in expected)


def test_every_exported_name_exists():
    def exported():
        from hkc.support import mlir

        return {name: type(getattr(mlir, name)).__name__ for name in mlir.__all__}

    assert set(in_worker(exported).values()) <= {"module", "function", "type", "str", "_lru_cache_wrapper"}
