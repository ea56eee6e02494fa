"""The search behind swizzle synthesis: XOR pairs that give the bank bits full rank on the dwords of every phase."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from hkc.layout.lds import Exchanges

BUDGET = 20_000
"""Nodes after which a search settles for the best map so far."""

SOURCES = 2
"""Most higher bits that one bit is XORed with."""

Basis = tuple[int, ...]


@dataclass(frozen=True)
class Demand:
    """The dwords that one kind of phase wants: a space with `size` basis vectors.

    bits     per bit of the byte offset inside a block, the mask of the basis vectors that have it set
    fixed    bank bits that no XOR changes: those below the granule
    banks    log2 of the number of banks; bank bit 0 is bit 2 of the byte offset
    weight   how many such phases there are
    """

    bits: tuple[int, ...]
    size: int
    fixed: Basis
    banks: int
    weight: int

    def cost(self, rank: int) -> int:
        """Clocks of all of these phases where the bank bits have this rank."""
        return self.weight << (self.size - min(rank, self.size))

    def counts(self, row: int) -> bool:
        """Is this bit of the byte offset a bank bit?"""
        return row < 2 + self.banks

    def bound(self, rows: Sequence[int]) -> int:
        """Clocks that no choice of these rows can beat."""
        return self.cost(len(self.fixed) + sum(map(self.counts, rows)))


@dataclass(frozen=True)
class Found:
    """XOR pairs and the clocks they leave."""

    pairs: Exchanges
    cost: int


def search(demands: Sequence[Demand], rows: Sequence[int], bits: int) -> Found:
    """The best XOR pairs (row, higher bit below `bits`) for all demands together; of equals the fewest pairs."""
    return _Search(demands, rows, bits).run()


class _Search:
    """Row after row, with one more pair in total at each round, cut off by what the rows to come can gain at most."""

    def __init__(self, demands: Sequence[Demand], rows: Sequence[int], bits: int) -> None:
        self.demands = demands
        self.rows = rows
        self.choices = [self._choices(row, bits) for row in rows]
        self.bound = sum(demand.bound(rows) for demand in demands)
        self.left = [[sum(map(d.counts, rows[i:])) for d in demands] for i in range(len(rows) + 1)]
        self.nodes = 0
        self.seen: set[tuple[int, int, tuple[Basis, ...]]] = set()
        self.best: Found | None = None

    def run(self) -> Found:
        start = tuple(demand.fixed for demand in self.demands)
        for pairs in range(SOURCES * len(self.rows) + 1):
            self._extend(0, pairs, start, ())
            if self.best is not None and (self.best.cost == self.bound or self.nodes > BUDGET):
                break
        assert self.best is not None  # the first round has no pairs and always ends at a leaf
        return self.best

    def _choices(self, row: int, bits: int) -> list[tuple[Exchanges, Basis]]:
        """Ways to fill a row: pairs and the row's mask for each demand; of those with the same effect the first."""
        seen: dict[Basis, Exchanges] = {}
        for count in range(SOURCES + 1):
            for sources in itertools.combinations(range(row + 1, bits), count):
                effect = []
                for demand in self.demands:
                    mask = demand.bits[row]
                    for j in sources:
                        mask ^= demand.bits[j]
                    effect.append(mask)
                seen.setdefault(tuple(effect), tuple((row, j) for j in sources))
        return [(pairs, effect) for effect, pairs in seen.items()]

    def _extend(self, index: int, pairs: int, spans: tuple[Basis, ...], chosen: Exchanges) -> None:
        if (index, pairs, spans) in self.seen:
            return
        self.seen.add((index, pairs, spans))
        self.nodes += 1
        cost = sum(d.cost(len(s) + n) for d, s, n in zip(self.demands, spans, self.left[index], strict=True))
        if self.nodes > BUDGET or (self.best is not None and cost >= self.best.cost):
            return
        if index == len(self.rows):
            self.best = Found(chosen, cost)
            return
        row = self.rows[index]
        for added, effect in self.choices[index]:
            if len(added) <= pairs:
                grown = tuple(
                    insert(s, mask) if d.counts(row) else s
                    for d, s, mask in zip(self.demands, spans, effect, strict=True)
                )
                self._extend(index + 1, pairs - len(added), grown, chosen + added)


def insert(basis: Basis, vector: int) -> Basis:
    """The reduced echelon basis of the span of such a `basis` and one more vector: equal spans have equal bases."""
    for row in basis:
        vector = min(vector, vector ^ row)
    if vector == 0:
        return basis
    return tuple(sorted((vector, *(min(row, row ^ vector) for row in basis)), reverse=True))
