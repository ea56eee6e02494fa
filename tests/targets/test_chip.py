"""Chips: what they say, that doctored tables are refused, and that a chip nobody knows loads from a folder."""

import re
import shutil
from pathlib import Path

import pytest

import hkc.targets.chip as chips
from hkc.support.errors import HkcError, HkcUsageError
from hkc.targets.chip import FOLDER, load, names


def test_names_and_differences():
    assert names() == ("gfx942", "gfx950")
    old, new = load("gfx942"), load("gfx950")
    assert load("gfx942") is old
    assert (old.fp8, new.fp8) == ("fnuz", "ocp")
    assert (old.direct_to_lds_bytes, new.direct_to_lds_bytes) == ((4,), (4, 12, 16))
    assert new.has("permlane_swap") and not old.has("permlane_swap") and old.has("xf32")
    with pytest.raises(KeyError):
        old.has("permlane_swop")
    assert (old.lds.bytes, new.lds.bytes) == (65536, 163840)


def test_mfma_for_puts_the_fastest_first():
    bf16 = load("gfx950").mfma_for("bf16", "bf16", "f32")
    assert [form.k for form in bf16] == [32, 16, 8, 16] and bf16[0].rate == 2 * bf16[-1].rate
    assert load("gfx942").mfma_for("bf16", "bf16", "f32")[0].rate == 512
    fp8 = load("gfx950").mfma_for("f8e4m3fn", "f8e5m2", "f32")
    assert fp8[0].a_format == "fp8_e4m3" and not fp8[-1].a_format
    assert load("gfx942").mfma_for("f8e4m3fn", "f8e4m3fn", "f32") == ()
    assert load("gfx942").mfma_for("i8", "i8", "i32") and not load("gfx942").mfma_for("i8", "i8", "f32")


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_lds_rows(chip):
    lds = load(chip).lds
    assert lds.access("ds_read_b128").minimum == (8 if chip == "gfx942" else 4)
    assert lds.access("ds_read2_b64").minimum == 2 * lds.access("ds_read_b64").minimum
    assert lds.access("ds_write_b64").banks == 32
    with pytest.raises(HkcError, match=r"HK424.*ds_read_b256"):
        lds.access("ds_read_b256")


def test_every_table_names_its_source():
    import tomllib

    for path in FOLDER.glob("*/*.toml"):
        document = tomllib.loads(path.read_text())
        tables = [t for t in document.values() if isinstance(t, dict)]
        tables += [t for v in document.values() if isinstance(v, list) for t in v if isinstance(t, dict)]
        assert tables and all(t.get("source") for t in tables), path


def test_unknown_chip():
    with pytest.raises(HkcUsageError, match=r"HK422.*unknown chip `gfx951`; known: gfx942, gfx950") as caught:
        load("gfx951")
    assert caught.value.exit_code == 2 and caught.value.diagnostics[0].hint == "did you mean gfx950?"
    with pytest.raises(HkcUsageError, match="HK422"):
        load("gfx950/../gfx942")


@pytest.fixture
def copy(tmp_path):
    """A private copy of a chip's tables, and a way to change one of them by text."""
    shutil.copytree(FOLDER / "gfx942", tmp_path / "gfx100")

    def change(table: str, old: str, new: str) -> Path:
        path = tmp_path / "gfx100" / f"{table}.toml"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return tmp_path

    return change


@pytest.mark.parametrize(
    ("table", "old", "new", "why"),
    [
        ("lds", '"32-63"', '"32-62 5"', "phases of ds_read_b32 don't serve each lane once"),
        ("lds", "banks = 32", "banks = 16", "wants 128 bytes at once"),
        ("lds", "granule = 512", "granule = 500", "multiple of its granule"),
        ("lds", 'status = "measured"', "", "malformed: KeyError: 'status'"),
        ("chip", 'fp8 = "fnuz"', 'fp8 = "ieee"', "ieee"),
        ("chip", '"xf32"', '"xf33"', "xf33"),
        ("chip", "clock_ghz = 2.1", "clock_ghz = 2.2", "fastest instruction gives"),
        ("chip", "chiplets = 8", "chiplets = 7", "chiplets differ"),
        ("chip", "dpp = 4", "dpp = 4\nswap = 4", "clocks of a swap"),
        ("chip", "file = 512", "file = 1024", "register file"),
        ("chip", "granule = 8", "granule = 8\nbanks = 4", "unexpected keyword"),
        ("mfma", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x16_f16", "same name"),
        ("mfma", '"f8e5m2fnuz"', '"f8e9m9"', "f8e9m9"),
        ("mfma", "rows = [", "rows = [[1],", "malformed: ValueError"),
        ("mfma", "columns = [", "columns = [[", "can't read"),
    ],
)
def test_doctored_tables_are_refused(copy, table, old, new, why):
    folder = copy(table, old, new)
    with pytest.raises(HkcError, match=why) as caught:
        load("gfx100", folder)
    assert caught.value.diagnostics[0].code == "HK421"


def test_a_third_chip_loads_from_a_folder(copy):
    folder = copy("chip", 'name = "gfx942"', 'name = "gfx100"')
    copy("lds", "bytes = 65536", "bytes = 131072")
    third = load("gfx100", folder)
    assert (third.name, third.lds.bytes) == ("gfx100", 131072)
    assert names(folder) == ("gfx100", "gfx942", "gfx950")
    assert load("gfx950", folder).name == "gfx950"
    assert "gfx" not in Path(chips.__file__).read_text()


@pytest.mark.parametrize("name", names())
def test_lds_instructions_move_the_bytes_that_they_are_named_for(name: str) -> None:
    for access in load(name).lds.accesses:
        for mnemonic in access.mnemonics:
            bits = re.search(r"_(?:st64_)?[bui](\d+)", mnemonic)
            assert bits and access.bytes == int(bits[1]) // 8, mnemonic
