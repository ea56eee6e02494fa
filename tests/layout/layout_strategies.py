"""Hypothesis strategies for linear maps and distributed layouts."""

from hypothesis import strategies as st

from hkc.layout import DistributedLayout, LinearMap


def linear_maps(in_bits: int | None = None, out_bits: int | None = None) -> st.SearchStrategy[LinearMap]:
    def build(n: int, m: int) -> st.SearchStrategy[LinearMap]:
        columns = st.lists(st.integers(0, (1 << m) - 1), min_size=n, max_size=n)
        return columns.map(lambda c: LinearMap(tuple(c), m))

    widths = st.integers(0, 6)
    return st.tuples(
        widths if in_bits is None else st.just(in_bits), widths if out_bits is None else st.just(out_bits)
    ).flatmap(lambda nm: build(*nm))


def invertible_maps(bits: int) -> st.SearchStrategy[LinearMap]:
    """A triangular map times a permutation times a triangular map."""
    lower = st.lists(st.integers(0, (1 << bits) - 1), min_size=bits, max_size=bits).map(
        lambda rows: LinearMap(tuple((row >> i << i | 1 << i) for i, row in enumerate(rows)), bits)
    )
    permutation = st.permutations(range(bits)).map(lambda p: LinearMap(tuple(1 << i for i in p), bits))
    upper = st.lists(st.integers(0, (1 << bits) - 1), min_size=bits, max_size=bits).map(
        lambda rows: LinearMap(tuple((row & ((1 << i) - 1) | 1 << i) for i, row in enumerate(rows)), bits)
    )
    return st.tuples(lower, permutation, upper).map(lambda f: f[0] @ f[1] @ f[2])


@st.composite
def layouts(
    draw: st.DrawFn, rank: int | None = None, lane_bits: int = 3, wave_bits: int = 1, low: int = 0, high: int = 2
) -> DistributedLayout:
    """Any layout: a random basis of the block, dealt to registers, lanes and waves, filled up with copies."""
    rank = draw(st.integers(1, 3)) if rank is None else rank
    bits = draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))  # log2 of the block's extents
    block = tuple(1 << b for b in bits)
    basis = list(draw(invertible_maps(sum(bits))).columns)
    fixed = lane_bits + wave_bits
    basis += [draw(st.integers(0, (1 << sum(bits)) - 1)) for _ in range(max(0, fixed - len(basis)))]
    order = draw(st.permutations(basis))
    vectors = [_unpack(packed, block) for packed in order]
    extra = len(vectors) - fixed
    return DistributedLayout(
        block, tuple(vectors[:extra]), tuple(vectors[extra : extra + lane_bits]), tuple(vectors[extra + lane_bits :])
    )


def _unpack(packed: int, block: tuple[int, ...]) -> tuple[int, ...]:
    vector = []
    for extent in reversed(block):
        vector.append(packed % extent)
        packed //= extent
    return tuple(reversed(vector))
