"""Swizzle synthesis: the LDS byte map that costs all accesses of a tile together the fewest clocks, with its proof.

Lanes of one phase form a coset of a linear space, and addresses are linear in the lane's bits up to constants, which
only permute banks. So the dwords of a phase form a coset of a space U, and with a linear map onto the bank bits the
busiest bank has exactly 2^(dim U - rank of the bank bits on U) of them. Synthesis is a search for bank bits of high
rank. The winner is then proved on every address of every instruction.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import xor

from hkc.layout.accesses import TRANSPOSED_BYTES, Timing, Timings, Use, inactive, lane_span, moves, run_bits
from hkc.layout.banks import conflicts
from hkc.layout.lds import LdsMap, Vector
from hkc.layout.linear import Echelon, Ints
from hkc.layout.text import by
from hkc.layout.xor_search import Basis, Demand, insert, search
from hkc.support.errors import HkcError, error

GRANULES = (16, 8, 4)
"""Bytes kept together by the maps that are tried: what the widest, the middle and the narrowest access wants."""

PADS = (4, 8, 16, 32, 64)
"""Bytes of padding per row that are tried where no XOR map is free of conflicts."""

WORD = 2
"""log2 of the bytes of a bank."""


@dataclass(frozen=True, eq=False)
class AccessProof:
    """What one use of a tile costs under a map, counted on every address.

    clocks       int64 [instruction, wave, phase]: distinct dwords of the busiest bank
    minimum      clocks of one instruction without conflicts: its phases in which any lane takes part
    lower_bound  clocks of one instruction below which no map with this granule gets
    reason       why it is not free, or that it is
    """

    use: Use
    mnemonic: str
    clocks: Ints
    minimum: int
    lower_bound: int
    reason: str

    @property
    def cycles(self) -> int:
        """Clocks of the costliest instruction."""
        return int(self.clocks.sum(axis=-1).max())

    @property
    def instructions(self) -> int:
        """Instructions per wave."""
        return len(self.clocks)

    @property
    def total(self) -> int:
        """Clocks of all instructions of the busiest wave, weighted."""
        return int(self.clocks.sum(axis=(0, 2)).max()) * self.use.weight


@dataclass(frozen=True, eq=False)
class Candidate:
    """A byte map and the proof of every use under it."""

    map: LdsMap
    accesses: tuple[AccessProof, ...]

    @property
    def clocks(self) -> int:
        """Clocks of all uses by one wave, weighted."""
        return sum(access.total for access in self.accesses)

    @property
    def rank(self) -> tuple[int, ...]:
        """What decides: clocks, weighted instructions, bytes, work for addresses, and last a fixed order."""
        instructions = sum(access.instructions * access.use.weight for access in self.accesses)
        return (
            self.clocks,
            instructions,
            self.map.bytes,
            len(self.map.xor),
            math.prod(self.map.block),
            *self.map.order,
        )


@dataclass(frozen=True, eq=False)
class Synthesis:
    """The chosen map and the next best one (None where there is no other)."""

    chosen: Candidate
    runner_up: Candidate | None


@functools.lru_cache(maxsize=512)
def synthesise(
    shape: Vector, itemsize: int, uses: tuple[Use, ...], timings: Timings, together: int = 0, style: str = ""
) -> Synthesis:
    """The best byte map for an LDS tile of this shape, item size in bytes, and all of its uses; `together` is how many
    bytes it must keep together without any padding (0: as it likes). `style` asks for one kind of maps alone: `none`
    (plain blocks), `pad` (padded rows), `xor`, or these XOR pairs (`4^7,5^8`).

    Searched: every dim innermost, granules of 4 to 16 bytes, blocks as large as what the lanes of an access span or
    whole rows, with XOR maps; padded rows where none of those is free of conflicts. Raises HK414 where no map serves
    a transposed read, or none of that style serves the accesses.
    """
    found: list[Candidate] = []
    if style:
        found = list(_styled(style, shape, itemsize, uses, timings, together))
    families = () if style else _families(shape, itemsize, uses, timings, together)
    for family in sorted(families, key=lambda family: family.bound):
        if not found or family.bound <= min(c.rank[:2] for c in found):
            found.append(Candidate(family.best, prove(family.best, uses, timings)))
    if not found:
        raise error("HK414", f"no byte map of a {by(shape)} tile serves all of its accesses")
    if not together and not style and any(a.cycles > a.minimum for a in min(found, key=lambda c: c.rank).accesses):
        found += [Candidate(lds, prove(lds, uses, timings)) for lds in _padded(shape, itemsize, uses)]
    first, *rest = sorted(found, key=lambda c: c.rank)
    return Synthesis(first, rest[0] if rest else None)


def prove(lds: LdsMap, uses: Sequence[Use], timings: Timings) -> tuple[AccessProof, ...]:
    """Count the clocks of every instruction of every use under a map. Raises HK413 for a use that it tears apart."""
    return tuple(_prove(lds, use, timings) for use in uses)


def _prove(lds: LdsMap, use: Use, timings: Timings) -> AccessProof:
    made = moves(use, lds)
    mnemonic = use.mnemonic(made.width, lds.itemsize)
    timing = timings(mnemonic)
    clocks = conflicts(made.addresses, made.width, timing.phases, timing.banks, made.active)
    cycles, minimum = (int(each.sum(axis=-1).max()) for each in (clocks, clocks > 0))
    demands = _demands(lds, use, lds.granule, timing)
    bound = max(minimum, sum(demand.bound(_rows(lds.granule, timing.banks)) for demand in demands))
    if cycles <= minimum:
        reason = "free of conflicts"
    elif cycles <= bound:
        reason = f"lower bound: keeping {lds.granule} bytes together leaves these lanes too few banks"
    else:
        reason = "no map that was tried serves all accesses of this buffer better"
    return AccessProof(use, mnemonic, clocks, minimum, bound, reason)


# -- from lanes to dwords


def _demands(lds: LdsMap, use: Use, granule: int, timing: Timing, weight: int = 1) -> Iterator[Demand]:
    """What the phases of one instruction of a use want: one demand per space that the lanes of a phase span."""
    layout = use.addressed(lds.order[0], lds.itemsize)
    assert layout is not None  # moves() refused it
    lanes = [_inside(lds, basis) for basis in layout.lane]
    words = [1 << bit for bit in range(WORD, _log2(timing.bytes))]
    for space, phases in _phase_spaces(timing, inactive(use, layout)[0]).items():
        vectors = [functools.reduce(xor, (v for i, v in enumerate(lanes) if lane >> i & 1), 0) for lane in space]
        basis = [row << WORD for _, row, _ in Echelon(v >> WORD for v in vectors + words).rows]
        bits = tuple(sum((v >> j & 1) << k for k, v in enumerate(basis)) for j in range(lds.block_bits))
        fixed: Basis = ()
        for row in range(WORD, min(_log2(granule), lds.block_bits)):
            fixed = insert(fixed, bits[row])
        yield Demand(bits, len(basis), fixed, _log2(timing.banks), weight * phases)


def _inside(lds: LdsMap, vector: Vector) -> int:
    """The byte offset inside a block, before any XOR, that a basis vector contributes."""
    total, unit = 0, lds.itemsize
    for dim in lds.order:
        total += vector[dim] % lds.block[dim] * unit
        unit *= lds.block[dim]
    return total


def _phase_spaces(timing: Timing, inactive: int) -> dict[Basis, int]:
    """Bases of the linear spaces of lanes whose cosets are the phases, and how many phases each has.

    Lanes that form no coset count as the smallest space around them: a safe overestimate. Phases of inactive lanes
    (those with a bit of this mask) alone take no time; in others such lanes repeat what active ones ask for.
    """
    found: dict[Basis, int] = {}
    for phase in timing.phases:
        if all(lane & inactive for lane in phase):
            continue
        space = tuple(row for _, row, _ in Echelon(lane ^ phase[0] for lane in phase).rows)
        found[space] = found.get(space, 0) + 1
    return found


def _rows(granule: int, banks: int, bits: int = 64) -> range:
    """The bits of the byte offset inside a block that choose a bank and that an XOR may change."""
    return range(max(WORD, _log2(granule)), min(WORD + _log2(banks), bits))


def _log2(power: int) -> int:
    return power.bit_length() - 1


# -- the maps that are searched


@dataclass(frozen=True)
class _Family:
    """Maps that differ in their XOR pairs only."""

    plain: LdsMap
    demands: tuple[Demand, ...]
    rows: range
    instructions: int

    @property
    def bound(self) -> tuple[int, int]:
        """The weighted clocks that no XOR map can beat, and the weighted instructions."""
        return sum(demand.bound(self.rows) for demand in self.demands), self.instructions

    @functools.cached_property
    def best(self) -> LdsMap:
        """The best of them."""
        pairs = search(self.demands, self.rows, self.plain.block_bits).pairs
        return LdsMap.swizzled(self.plain.shape, self.plain.itemsize, self.plain.block, pairs, order=self.plain.order)


def _families(shape: Vector, itemsize: int, uses: Sequence[Use], timings: Timings, together: int) -> Iterator[_Family]:
    for order in _orders(len(shape)):
        inner = order[0]
        layouts = [layout for use in uses if (layout := use.addressed(inner, itemsize)) is not None]
        if len(layouts) < len(uses):
            continue
        span = tuple(max(lane_span(layout, dim) for layout in layouts) for dim in range(len(shape)))
        row = tuple(n & -n if dim == inner else s for dim, (n, s) in enumerate(zip(shape, span, strict=True)))
        for block, granule in itertools.product(dict.fromkeys((span, row)), GRANULES):
            plain = LdsMap.swizzled(shape, itemsize, block, order=order)
            fits = max(itemsize, together) <= granule <= block[inner] * itemsize
            if fits and _serves(granule, uses):
                yield _family(plain, granule, uses, timings)


def _styled(
    style: str, shape: Vector, itemsize: int, uses: Sequence[Use], timings: Timings, together: int
) -> Iterator[Candidate]:
    """All maps of a style that serve all uses."""
    if style == "pad":
        made = [] if together else list(_padded(shape, itemsize, uses))
    else:
        families = _families(shape, itemsize, uses, timings, together)
        made = [family.best if style == "xor" else family.plain for family in families]
    for lds in made:
        try:
            if style not in ("none", "pad", "xor"):
                pairs = tuple((int(i), int(j)) for i, j in (pair.split("^") for pair in style.split(",")))
                lds = replace(lds, xor=pairs)
            if lds.granule >= together and _serves(lds.granule, uses):
                yield Candidate(lds, prove(lds, uses, timings))
        except HkcError:
            continue  # the block has no such bits, or the map would tear an access apart


def _family(plain: LdsMap, granule: int, uses: Sequence[Use], timings: Timings) -> _Family:
    demands: list[Demand] = []
    banks, instructions = 1, 0
    for use in uses:
        width, count = _width(plain, use, granule)
        timing = timings(use.mnemonic(width, plain.itemsize))
        banks = max(banks, timing.banks)
        demands += _demands(plain, use, granule, timing, use.weight * count)
        instructions += use.weight * count
    return _Family(plain, tuple(demands), _rows(granule, banks, plain.block_bits), instructions)


def _width(plain: LdsMap, use: Use, granule: int) -> tuple[int, int]:
    """Bytes per lane and number of the instructions of a use."""
    layout = use.addressed(plain.order[0], plain.itemsize)
    assert layout is not None
    bits = run_bits(layout, plain.order[0], max(1, min(use.reach, granule) // plain.itemsize))
    return plain.itemsize << len(bits), layout.fragments(plain.shape) * layout.registers >> len(bits)


def _orders(rank: int) -> Iterator[Vector]:
    """Each dim innermost once, the others as in row-major order; the last dim first."""
    for inner in reversed(range(rank)):
        yield (inner, *(d for d in reversed(range(rank)) if d != inner))


def _serves(granule: int, uses: Sequence[Use]) -> bool:
    return granule >= TRANSPOSED_BYTES or all(use.kind != "read_transposed" for use in uses)


def _padded(shape: Vector, itemsize: int, uses: Sequence[Use]) -> Iterator[LdsMap]:
    for order, pad in itertools.product(_orders(len(shape)), PADS):
        if pad % itemsize == 0 and all(use.addressed(order[0], itemsize) for use in uses):
            padded = LdsMap.row_major(shape, itemsize, order=order, pad=pad)
            if _serves(padded.granule, uses):
                yield padded
