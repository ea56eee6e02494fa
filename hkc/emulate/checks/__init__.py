"""Checkers of machine code, by name. Each is an observer of launches; what is off costs nothing.

Four of them are part of the emulator itself and always on, since it must know anyway what has been written, what is on
its way, and where accesses lead: missing waits, never-written values, accesses beyond LDS, disputed ones to buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from difflib import get_close_matches

from hkc.emulate.checks.barriers import Barriers
from hkc.emulate.checks.bounds import Alignment, Bounds
from hkc.emulate.checks.conflicts import Conflicts
from hkc.emulate.checks.global_races import GlobalRaces
from hkc.emulate.checks.lds_races import LdsRaces
from hkc.emulate.checks.mfma_hazards import MfmaHazards
from hkc.emulate.checks.valu_hazards import ValuHazards
from hkc.emulate.faults import Finding
from hkc.emulate.observe import Observer
from hkc.support.errors import Diagnostic, HkcUsageError

BANKS = "bank-conflicts"
"""The check of LDS accesses that get in each other's way."""

_OBSERVERS: dict[str, Callable[[], Observer]] = {
    "lds-race": LdsRaces,
    "global-race": GlobalRaces,
    "barrier": Barriers,
    "out-of-bounds": Bounds,
    "misaligned": Alignment,
    "unaligned": Alignment,
    BANKS: Conflicts,
    "mfma-hazard": MfmaHazards,
    "valu-hazard": ValuHazards,
}

CHECKS: dict[str, str] = {
    "missing-wait": "HK721",
    "uninitialised": "HK722",
    "lds-race": "HK723",
    "global-race": "HK724",
    "barrier": "HK725",
    "out-of-bounds": "HK726",
    "buffer-range": "HK733",
    "misaligned": "HK727",
    "mfma-hazard": "HK728",
    "valu-hazard": "HK732",
    "endless-loop": "HK709",
    "assertion": "HK720",
    "fault": "HK729",
    "unaligned": "HK730",
    BANKS: "HK731",
}
"""Every kind of finding and its code. An endless loop, a failed assertion or a fault ends the run."""

REMARKS = frozenset({BANKS, "unaligned"})
"""Kinds that cost time but make no results wrong: errors only for who asks for them by name."""


def observers(names: Collection[str]) -> list[Observer]:
    """The checkers of these names, ready for one launch.

    Raises `HkcUsageError` HK305 for an unknown one.
    """
    for name in names:
        if name not in CHECKS:
            near = get_close_matches(name, CHECKS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(CHECKS)}"
            raise HkcUsageError(Diagnostic("HK305", f"there is no check `{name}`", hint=hint))
    kinds = dict.fromkeys(make for name, make in _OBSERVERS.items() if name in names)
    return [make() for make in kinds]


def name_of(finding: Finding) -> str:
    """The check that a finding belongs to."""
    return finding.kind.replace(" ", "-")
