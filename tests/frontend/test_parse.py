from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hkc.frontend import syntax
from hkc.frontend.codes import FILE_BYTES
from hkc.frontend.parse import parse, read
from hkc.support.errors import HkcError, Source

EXAMPLES = Path(__file__).parents[2] / "examples"
KERNEL = "kernel k(A: global[f32, M]):\n"


def text_at(span: object) -> str:
    """The source text of a span that lies on one line."""
    assert hasattr(span, "source")
    row = span.source.text.split("\n")[span.line - 1]
    return str(row[span.column - 1 : span.end_column - 1])


def test_every_expression_knows_its_text() -> None:
    file = parse(Source("x", KERNEL + "    y = dot(load(A, [m*BM, k], [BM, 4]), B.T) + -x\n"))
    (statement,) = file.kernels[0].body
    assert isinstance(statement, syntax.Assign)
    seen: list[str] = []
    waiting: list[syntax.Node] = [statement.values[0]]
    while waiting:
        node = waiting.pop()
        seen.append(text_at(node.span))
        waiting += syntax.children(node)
    assert {
        "dot(load(A, [m*BM, k], [BM, 4]), B.T) + -x",
        "load(A, [m*BM, k], [BM, 4])",
        "[m*BM, k]",
        "m*BM",
        "B.T",
        "-x",
    } <= set(seen)


def test_operators_bind_as_in_python() -> None:
    file = parse(Source("x", KERNEL + "    y = -a * b + c // d ** e ** f < g - h - i\n"))
    (statement,) = file.kernels[0].body
    assert isinstance(statement, syntax.Assign)

    def show(e: syntax.Expr) -> str:
        match e:
            case syntax.Binary(op=op, left=left, right=right):
                return f"({show(left)}{op}{show(right)})"
            case syntax.Unary(op=op, operand=operand):
                return f"({op}{show(operand)})"
            case syntax.Name(name=name):
                return name
        raise AssertionError(e)

    assert show(statement.values[0]) == "((((-a)*b)+(c//(d**(e**f))))<((g-h)-i))"


def test_layout_of_the_text_does_not_matter() -> None:
    plain = KERNEL + "    x = f(a, b)\n    for i in range(4):\n        y = x\n    z = 1\n"
    airy = (
        "# head\n\n\n" + KERNEL + "\n   # a comment that is indented oddly\n  x = f(  # why\n a,\nb,\n)\n\n"
        "  for i in range(4):\n\n     y = x   # end\n# margin\n  z = 1"
    )
    assert parse(Source("a", plain)) == parse(Source("b", airy)) == parse(Source("c", plain.replace("\n", "\r\n")))


def test_a_docstring_is_only_a_comment() -> None:
    assert parse(Source("a", KERNEL + '    """One.\n  Two."""\n    x = 1\n')) == parse(
        Source("b", KERNEL + "    x = 1\n")
    )


def test_items_keep_their_order() -> None:
    file = parse(read(EXAMPLES / "gemm.hk"))
    assert [c.binding.name.name for c in file.constants] == ["T", "OUT", "BM", "BN", "BK"]
    assert [c.tunable for c in file.constants] == [False, False, True, True, True]
    assert [b.name.name for b in file.examples] == ["M", "N", "K"]
    assert [b.name.name for b in file.references] == ["C"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x7fELF\x00\x00\x00", "binary file"),
        (b"kernel \xff", "not UTF-8 text (byte 7, line 1)"),
        (b"#" * (FILE_BYTES + 1), "a kernel file may have"),
    ],
)
def test_what_is_not_a_kernel_file(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "x.hk"
    path.write_bytes(data)
    with pytest.raises(HkcError, match=r"error\[HK(121|433)\]") as caught:
        read(path)
    assert words in str(caught.value) and str(path) in str(caught.value)


def test_unreadable_paths(tmp_path: Path) -> None:
    with pytest.raises(HkcError, match=r"can't read `.*missing.hk`: no such file or directory"):
        read(tmp_path / "missing.hk")
    with pytest.raises(HkcError, match="is a directory"):
        read(tmp_path)
    with pytest.raises(HkcError, match="not a path"):
        read("a\0b")


def test_a_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "x.hk"
    path.write_bytes(b"\xef\xbb\xbf" + (KERNEL + "    x = 1\n").encode())
    assert parse(read(path)).kernels[0].name.name == "k"


def test_threads_parse_at_the_same_time() -> None:
    sources = [Source(f"{i}", f"kernel k{i}(A: global[f32, M]):\n" + f"    x{i} = 1\n" * 40) for i in range(40)]
    with ThreadPoolExecutor(8) as pool:
        files = list(pool.map(parse, sources))
    assert [f.kernels[0].span.source.name for f in files] == [s.name for s in sources]
    assert all(f == parse(s) for f, s in zip(files, sources, strict=True))
