"""Linear maps over GF(2): the algebra under every layout. A bit string is an int, addition is XOR.

Each operation states its law; `f`, `g`, `h` are maps, `x`, `y` inputs, `n` the input bits of `f`, `m` its output bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from hkc.support.errors import error

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class LinearMap:
    """A linear map: `columns[i]` is the image of input bit i, `out_bits` the width of the output.

    Law: f(x ^ y) == f(x) ^ f(y). Raises HK401 for a column that does not fit the output.
    """

    columns: tuple[int, ...]
    out_bits: int

    def __post_init__(self) -> None:
        if any(not 0 <= column < 1 << self.out_bits for column in self.columns):
            raise error("HK401", f"a column of {self.columns} does not fit {self.out_bits} output bits")

    @classmethod
    def identity(cls, bits: int) -> LinearMap:
        """Law: identity(n)(x) == x."""
        return cls(tuple(1 << i for i in range(bits)), bits)

    @classmethod
    def zero(cls, in_bits: int, out_bits: int) -> LinearMap:
        """Law: zero(n, m)(x) == 0."""
        return cls((0,) * in_bits, out_bits)

    @property
    def in_bits(self) -> int:
        """Number of input bits."""
        return len(self.columns)

    @overload
    def __call__(self, x: int) -> int: ...
    @overload
    def __call__(self, x: NDArray[Any]) -> Ints: ...
    def __call__(self, x: int | NDArray[Any]) -> int | Ints:
        """The image of an int, or of every element of an integer array. Input bits beyond `in_bits` are ignored."""
        if isinstance(x, np.ndarray):
            image = np.zeros(x.shape, np.int64)
            for i, column in enumerate(self.columns):
                image ^= -((x >> i) & 1) & column
            return image
        return _combine(self.columns, x)

    def __matmul__(self, other: LinearMap) -> LinearMap:
        """Law: (f @ g)(x) == f(g(x)). Raises HK401 where the widths differ."""
        if other.out_bits != self.in_bits:
            raise error("HK401", f"can't compose: {other.out_bits} output bits into {self.in_bits} input bits")
        return LinearMap(tuple(self(column) for column in other.columns), self.out_bits)

    def __xor__(self, other: LinearMap) -> LinearMap:
        """The sum. Law: (f ^ g)(x) == f(x) ^ g(x)."""
        if (other.in_bits, other.out_bits) != (self.in_bits, self.out_bits):
            raise error("HK401", "can't add maps of different widths")
        return LinearMap(tuple(a ^ b for a, b in zip(self.columns, other.columns, strict=True)), self.out_bits)

    def beside(self, other: LinearMap) -> LinearMap:
        """Inputs concatenated, `self` taking the low bits. Law: f.beside(g)(x | y << n) == f(x) ^ g(y)."""
        if other.out_bits != self.out_bits:
            raise error("HK401", "maps beside each other need the same output bits")
        return LinearMap(self.columns + other.columns, self.out_bits)

    def stack(self, other: LinearMap) -> LinearMap:
        """Outputs concatenated, `self` giving the low bits. Law: f.stack(g)(x) == f(x) | g(x) << m."""
        if other.in_bits != self.in_bits:
            raise error("HK401", "stacked maps need the same input bits")
        columns = (a | b << self.out_bits for a, b in zip(self.columns, other.columns, strict=True))
        return LinearMap(tuple(columns), self.out_bits + other.out_bits)

    def inputs(self, start: int, stop: int) -> LinearMap:
        """The map on input bits start..stop-1 alone. Law: f.inputs(a, b)(x) == f(x << a) for x < 2**(b-a)."""
        return LinearMap(self.columns[start:stop], self.out_bits)

    def outputs(self, start: int, stop: int) -> LinearMap:
        """Output bits start..stop-1 alone. Law: f.outputs(a, b)(x) == (f(x) >> a) % 2**(b-a)."""
        mask = (1 << (stop - start)) - 1
        return LinearMap(tuple((column >> start) & mask for column in self.columns), stop - start)

    @property
    def rank(self) -> int:
        """Dimension of the image. Law: f.rank + f.kernel().in_bits == n."""
        return len(Echelon(self.columns).rows)

    @property
    def is_injective(self) -> bool:
        """No two inputs share an image."""
        return self.rank == self.in_bits

    @property
    def is_surjective(self) -> bool:
        """Every output is the image of some input."""
        return self.rank == self.out_bits

    def image(self) -> LinearMap:
        """An injective map onto the image. Law: y is in the image of f iff it is in that of f.image()."""
        return LinearMap(tuple(vector for _, vector, _ in Echelon(self.columns).rows), self.out_bits)

    def kernel(self) -> LinearMap:
        """An injective map onto the inputs that f sends to 0. Law: f @ f.kernel() == zero."""
        return LinearMap(Echelon(self.columns).relations, self.in_bits)

    def divide(self, divisor: LinearMap) -> LinearMap:
        """The quotient q with divisor @ q == self; zero in the input bits of the divisor that it does not need.

        Raises HK402 where the image of `self` is not inside the image of the divisor.
        """
        solver = Echelon(divisor.columns)
        solutions = [solver.solve(column) for column in self.columns]
        if divisor.out_bits != self.out_bits or None in solutions:
            raise error("HK402", "no quotient: the divisor does not reach every image of the dividend")
        return LinearMap(tuple(s for s in solutions if s is not None), divisor.in_bits)

    def right_inverse(self) -> LinearMap:
        """A map r with f @ r == identity(m). Raises HK402 unless f is onto."""
        return LinearMap.identity(self.out_bits).divide(self)

    def inverse(self) -> LinearMap:
        """The map with f.inverse() @ f == identity == f @ f.inverse(). Raises HK402 unless f is a bijection."""
        if not self.is_injective:
            raise error("HK402", "no inverse: two inputs share an image")
        return self.right_inverse()


class Echelon:
    """The span of some vectors in echelon form, with how each row combines the vectors (a bit per vector)."""

    def __init__(self, vectors: Iterable[int]) -> None:
        self.rows: list[tuple[int, int, int]] = []  # leading bit, vector, combination
        relations = []
        for i, vector in enumerate(vectors):
            rest, combination = self._reduce(vector, 1 << i)
            if rest:
                self.rows.append((rest.bit_length() - 1, rest, combination))
            else:
                relations.append(combination)
        self.relations = tuple(relations)

    def solve(self, target: int) -> int | None:
        """Which of the vectors XOR to `target` (a bit per vector), or None where it is outside the span."""
        rest, combination = self._reduce(target, 0)
        return None if rest else combination

    def __contains__(self, target: int) -> bool:
        return self.solve(target) is not None

    def _reduce(self, vector: int, combination: int) -> tuple[int, int]:
        for lead, row, how in self.rows:
            if vector >> lead & 1:
                vector, combination = vector ^ row, combination ^ how
        return vector, combination


def _combine(columns: Sequence[int], x: int) -> int:
    image = 0
    for i, column in enumerate(columns):
        if x >> i & 1:
            image ^= column
    return image
