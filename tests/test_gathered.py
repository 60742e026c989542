"""Gathered writes leave the same bytes as writes one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from align import gathered
from align.gathered import GatheredWrites

PLACES = st.tuples(st.integers(0, 300), st.integers(1, 60), st.booleans())


def written(image: bytearray, gatherer: GatheredWrites) -> int:
    """Write what waits; in how many writes."""
    count = 0
    for start, data in gatherer.runs():
        image[start : start + len(data)] = data
        count += 1
    gatherer.clear()
    return count


@given(st.lists(PLACES, max_size=60), st.integers(0, 59))
def test_the_last_write_to_each_place_counts(places: list[tuple[int, int, bool]], moment: int) -> None:
    image, expected, gatherer = bytearray(400), bytearray(400), GatheredWrites()
    for number, (start, size, copied) in enumerate(places):
        data = bytes([number + 1]) * size
        expected[start : start + size] = data
        taken = data if copied else memoryview(data)
        if number == moment or not gatherer.add(start, taken):
            written(image, gatherer)
            assert gatherer.add(start, taken)
    written(image, gatherer)
    assert image == expected


def test_neighbours_are_one_write_whatever_their_order() -> None:
    image, gatherer = bytearray(100), GatheredWrites()
    for start in (40, 10, 30, 20, 70):
        assert gatherer.add(start, bytes([start]) * 10)
    assert written(image, gatherer) == 2
    assert image == b"".join(bytes([tens if tens in {10, 20, 30, 40, 70} else 0]) * 10 for tens in range(0, 100, 10))
    assert not gatherer


def test_what_waits_is_bounded_in_number_of_bytes_copied() -> None:
    gatherer = GatheredWrites()
    size = gathered.MOST_GATHERED // 4
    assert all(gatherer.add(number * size, bytes(size)) for number in range(4))
    assert gatherer.add(4 * size, memoryview(bytes(size)))
    assert not gatherer.add(5 * size, bytes(size))
