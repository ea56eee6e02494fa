"""Chips as frozen records, read from a folder of tables (`chip.toml`, `mfma.toml`, `lds.toml`) and checked on loading.

Passes ask the record (`chip.lds.access("ds_read_b128").banks`, `chip.has("permlane_swap")`), never a chip's name. A new
chip is a new folder.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hkc.layout.banks import conflicts
from hkc.layout.conversion import Machine
from hkc.layout.linear import Ints
from hkc.support.errors import Diagnostic, HkcError, HkcUsageError, error
from hkc.targets.mfma import Mfma, records

FOLDER = Path(__file__).parent

FEATURES = {
    "bf16_convert": "v_cvt_pk_bf16_f32: two f32 to packed bf16",
    "bitop3": "v_bitop3_b32: any function of three bits",
    "lds_read_transposed": "ds_read_b64_tr_b16 and its kin: 16 lanes transpose while they read",
    "permlane_swap": "v_permlane16_swap and v_permlane32_swap",
    "scaled_convert": "v_cvt_scalef32_*: conversions to and from 8-, 6- and 4-bit floats with a scale",
    "scaled_mfma": "v_mfma_scale_*: matrix instructions with a scale per 32 elements",
    "xf32": "matrix instructions that round f32 inputs to 10 mantissa bits",
}
"""What `Chip.has` can be asked."""


@dataclass(frozen=True)
class LdsAccess:
    """How the LDS serves an instruction: `bytes` per lane and part, lanes per phase, banks of 4 bytes."""

    mnemonics: tuple[str, ...]
    bytes: int
    parts: int
    banks: int
    phases: tuple[tuple[int, ...], ...]
    source: str
    status: str

    def cycles(self, addresses: Ints, active: NDArray[np.bool_] | None = None) -> int:
        """Clocks that the banks need for one instruction with these byte addresses, [lane] or [part, lane]."""
        return int(conflicts(addresses, self.bytes, self.phases, self.banks, active).sum())

    @property
    def minimum(self) -> int:
        """Clocks without any conflict."""
        return len(self.phases) * self.parts


@dataclass(frozen=True)
class Lds:
    """The LDS of one compute unit: sizes in bytes, rates in bytes per clock, and how it serves each instruction."""

    bytes: int
    granule: int
    bank_bytes: int
    read_bytes_per_clock: int
    write_bytes_per_clock: int
    accesses: tuple[LdsAccess, ...]

    def access(self, mnemonic: str) -> LdsAccess:
        """The row of an instruction (as LLVM prints it). Raises HK424 for one without a row."""
        found = self._by_mnemonic.get(mnemonic)
        if found is None:
            raise error("HK424", f"no LDS timing is known for {mnemonic}")
        return found

    @functools.cached_property
    def _by_mnemonic(self) -> dict[str, LdsAccess]:
        return {mnemonic: access for access in self.accesses for mnemonic in access.mnemonics}


@dataclass(frozen=True)
class Dtypes:
    """What can be done with which element types: elementwise arithmetic; loads, stores, moves and casts alone
    (`storage`); exponentials and their kin; atomic sums, maxima and minima (some of them loops of compare-and-swap)."""

    arithmetic: tuple[str, ...]
    storage: tuple[str, ...]
    transcendental: tuple[str, ...]
    atomic_add: tuple[str, ...]
    atomic_extreme: tuple[str, ...]


@dataclass(frozen=True)
class Compute:
    """Compute units of the whole chip, chiplets, SIMDs per unit, lanes per wave, waves per SIMD, peak clock in GHz."""

    units: int
    chiplets: int
    simds: int
    wave: int
    waves_per_simd: int
    clock_ghz: float


@dataclass(frozen=True)
class Registers:
    """32-bit registers per lane that a wave may have (`vgprs`, `agprs`; scalar: `sgprs` per wave), registers per lane
    that a SIMD has for all of its waves (`file`), and the `granule` of their allocation."""

    vgprs: int
    agprs: int
    file: int
    granule: int
    sgprs: int


@dataclass(frozen=True)
class Lanes:
    """Clocks of a SIMD for one instruction of a wave: within lanes (`valu`), between neighbours (`dpp`), between any
    lanes (`bpermute`), and the exchange of halves of two registers (`swap`, None where the chip has none)."""

    valu: int
    dpp: int
    bpermute: int
    swap: int | None = None


@dataclass(frozen=True)
class MemorySystem:
    """Caches and memory: bytes, bytes per clock (L1 per compute unit, L2 per channel, both per chiplet), TB/s."""

    l1_bytes: int
    l1_line_bytes: int
    l1_bytes_per_clock: int
    l2_bytes: int
    l2_channels: int
    l2_bytes_per_clock: int
    mall_bytes: int
    hbm_bytes: int
    hbm_tbps: float


@dataclass(frozen=True, eq=False)
class Chip:
    """A chip, equal only to itself.

    fp8                  "ocp" or "fnuz"
    direct_to_lds_bytes  the widths per lane that go from memory straight to LDS
    peak                 TFLOP/s per element type of a dense matrix product at the peak clock

    Raises HK421 where its numbers contradict one another.
    """

    name: str
    product: str
    fp8: str
    direct_to_lds_bytes: tuple[int, ...]
    flags: frozenset[str]
    dtypes: Dtypes
    compute: Compute
    registers: Registers
    lanes: Lanes
    memory: MemorySystem
    lds: Lds
    mfmas: tuple[Mfma, ...]
    peak: Mapping[str, float]

    def __post_init__(self) -> None:
        self._check(self.fp8 in ("ocp", "fnuz"), f"fp8 is `{self.fp8}`, not ocp or fnuz")
        self._check(self.flags <= FEATURES.keys(), f"unknown features {sorted(self.flags - FEATURES.keys())}")
        self._check(self.compute.units % self.compute.chiplets == 0, "chiplets differ in their compute units")
        registers = self.registers
        self._check(registers.file <= registers.vgprs + registers.agprs, "no wave can use the whole register file")
        self._check(registers.file % registers.granule == 0, "the register file is no multiple of its granule")
        swaps = self.lanes.swap is not None
        self._check(swaps == self.has("permlane_swap"), "permlane_swap and the clocks of a swap go together")
        self._check_lds()
        self._check_peaks()
        self._check_mfma_names()

    @property
    def eight_bits(self) -> Mapping[str, str]:
        """The element types that its conversions of 8-bit floats know, by the names that its instructions have for
        them."""
        kind = {"ocp": ("f8e4m3fn", "f8e5m2"), "fnuz": ("f8e4m3fnuz", "f8e5m2fnuz")}[self.fp8]
        return dict(zip(("fp8", "bf8"), kind, strict=True))

    @functools.cached_property
    def machine(self) -> Machine:
        """What conversions between layouts cost."""
        return Machine(self.lds.access, self.has("lds_read_transposed"), self.lanes, self.compute.simds)

    def has(self, feature: str) -> bool:
        """Does the chip have one of `FEATURES`? Raises `KeyError` for any other name."""
        if feature not in FEATURES:
            raise KeyError(feature)
        return feature in self.flags

    def mfma(self, mnemonic: str, a_code: int = 0, b_code: int = 0) -> Mfma:
        """The matrix instruction of that name (and operand format codes in f8f6f4 forms). Raises HK424 without one."""
        found = self._mfma_by_name.get((mnemonic, a_code, b_code))
        if found is None:
            raise error("HK424", f"{self.name} has no {mnemonic} with operand formats {a_code} and {b_code}")
        return found

    def mfma_for(self, a: str, b: str, acc: str, scaled: bool = False) -> tuple[Mfma, ...]:
        """The dense one-block matrix instructions for these element types, scaled or not, the fastest first."""
        fitting = [f for f in self.mfmas if (f.a, f.b, f.acc, f.scaled) == (a, b, acc, scaled) and f.has_layouts]
        return tuple(sorted(fitting, key=lambda form: -form.rate))

    @functools.cached_property
    def _mfma_by_name(self) -> dict[tuple[str, int, int], Mfma]:
        return {(form.mnemonic, form.a_code, form.b_code): form for form in self.mfmas}

    def _check(self, holds: bool, otherwise: str) -> None:
        if not holds:
            raise error("HK421", f"chip {self.name}: {otherwise}")

    def _check_lds(self) -> None:
        for access in self.lds.accesses:
            name, lanes = access.mnemonics[0], sorted(lane for phase in access.phases for lane in phase)
            self._check(lanes == list(range(self.compute.wave)), f"the phases of {name} don't serve each lane once")
            self._check(len({len(phase) for phase in access.phases}) == 1, f"the phases of {name} differ in size")
            wanted = len(access.phases[0]) * access.bytes
            self._check(wanted <= access.banks * self.lds.bank_bytes, f"a phase of {name} wants {wanted} bytes at once")
        self._check(self.lds.bytes % self.lds.granule == 0, "the LDS is no multiple of its granule")

    def _check_peaks(self) -> None:
        """The best rate x SIMDs x units x clock must be the data sheet's peak."""
        for dtype, peak in self.peak.items():
            rates = [f.rate for f in self.mfmas if f.a == f.b == dtype and not f.sparse]
            computed = max(rates, default=0) * self.compute.simds * self.compute.units * self.compute.clock_ghz / 1000
            close = abs(computed - peak) <= 1e-3 * peak
            self._check(close, f"the peak of {dtype} is {peak}, but its fastest instruction gives {computed:.1f}")

    def _check_mfma_names(self) -> None:
        self._check(len(self._mfma_by_name) == len(self.mfmas), "two matrix instructions have the same name")


def names(folder: Path | None = None) -> tuple[str, ...]:
    """The known chips, those of an extra folder included."""
    return tuple(sorted(path.parent.name for root in _roots(folder) for path in root.glob("*/chip.toml")))


@functools.cache
def load(name: str, folder: Path | None = None) -> Chip:
    """The chip of that name, from the extra `folder` (one sub-folder per chip) or hkc's own.

    Raises HK422 (usage) for an unknown name, HK421 for a table that is malformed or contradicts itself.
    """
    known = names(folder)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else None
        raise HkcUsageError(Diagnostic("HK422", f"unknown chip `{name}`; known: {', '.join(known)}", hint=hint))
    return _chip(next(root / name for root in _roots(folder) if (root / name / "chip.toml").is_file()))


def _roots(folder: Path | None) -> tuple[Path, ...]:
    return (FOLDER,) if folder is None else (folder, FOLDER)


def _chip(folder: Path) -> Chip:
    chip, mfma, lds = (_read(folder / f"{table}.toml") for table in ("chip", "mfma", "lds"))
    try:
        return _record(chip, mfma, lds)
    except HkcError:
        raise
    except (KeyError, TypeError, ValueError) as problem:
        raise error("HK421", f"the tables in {folder} are malformed: {type(problem).__name__}: {problem}") from problem


def _record(chip: dict[str, Any], mfma: dict[str, Any], lds: dict[str, Any]) -> Chip:
    features = chip["features"]
    return Chip(
        name=chip["name"],
        product=chip["product"],
        fp8=features["fp8"],
        direct_to_lds_bytes=tuple(features["direct_to_lds_bytes"]),
        flags=frozenset(features["flags"]),
        dtypes=Dtypes(**{name: tuple(names) for name, names in _facts(chip["dtypes"]).items()}),
        compute=Compute(**_facts(chip["compute"])),
        registers=Registers(**_facts(chip["registers"])),
        lanes=Lanes(**_facts(chip["lanes"])),
        memory=MemorySystem(**_facts(chip["memory"])),
        lds=Lds(accesses=tuple(map(_access, lds.pop("access"))), **_facts(lds)),
        mfmas=tuple(records(mfma)),
        peak=_facts(chip["peak"]),
    )


def _facts(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if key not in ("source", "status")}


def _access(row: Mapping[str, Any]) -> LdsAccess:
    phases = tuple(_lanes(phase) for phase in row["phases"])
    return LdsAccess(
        tuple(row["mnemonics"]), row["bytes"], row.get("parts", 1), row["banks"], phases, row["source"], row["status"]
    )


def _lanes(text: str) -> tuple[int, ...]:
    """`0-3 20-23` as lane numbers."""
    runs = ([int(end) for end in run.split("-")] for run in text.split())
    return tuple(lane for run in runs for lane in range(run[0], run[-1] + 1))


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text())
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise error("HK421", f"can't read {path}: {problem}") from problem
