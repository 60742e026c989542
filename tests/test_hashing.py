"""The hash: its test vectors, what it must tell apart, and what must not enter."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from align.format_page import HASH_VECTORS
from align.hashing import BLOCK_WORDS, hash_bytes, row_hashes

BLOCK = BLOCK_WORDS * 8
MASK = 0xFFFFFFFFFFFFFFFF

VECTORS = {
    "no bytes": 0x48218226FF3CD4BF,
    "the byte 0": 0x239FC999D6516D5A,
    "eight bytes 0": 0xC67F6EACA8CF0F62,
    "the bytes 0 to 10": 0xDF7634F32549DFBF,
    "float32 1.0": 0x29DC778B1AA1024A,
    "int64 0 to 9": 0x9BF8F67F606B953E,
    "int64 0 to 99,999": 0xD3F04A86D62FE7B3,
}


def mix(value: int) -> int:
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


def by_definition(data: bytes) -> int:
    golden = 0x9E3779B97F4A7C15
    whole = len(data) // 8 * 8
    blocks = [data[start : min(start + BLOCK, whole)] for start in range(0, whole, BLOCK)]
    if whole < len(data):
        blocks.append(data[whole:].ljust(8, b"\0"))
    total = 0
    for number, block in enumerate(blocks):
        summed = 0
        for position in range(len(block) // 8):
            word = int.from_bytes(block[position * 8 : position * 8 + 8], "little")
            spread = (word ^ word >> 32) * 0xFF51AFD7ED558CCD & MASK
            summed += (mix((position + 1) * golden & MASK) | 1) * (spread ^ spread >> 29)
        total += mix(summed & MASK ^ mix(number + 1))
    return mix(total & MASK ^ mix(len(data) + golden & MASK))


@pytest.mark.parametrize(("name", "array"), HASH_VECTORS, ids=[name for name, _ in HASH_VECTORS])
def test_the_test_vectors_hold(name: str, array: NDArray[np.uint8]) -> None:
    assert hash_bytes(array) == VECTORS[name]


@given(st.binary(max_size=300))
def test_the_hash_is_its_definition(data: bytes) -> None:
    assert hash_bytes(np.frombuffer(data, dtype=np.uint8)) == by_definition(data)


def test_the_hash_is_its_definition_over_several_blocks() -> None:
    data = np.random.default_rng(0).bytes(2 * BLOCK + 13)
    assert hash_bytes(np.frombuffer(data, dtype=np.uint8)) == by_definition(data)


def test_neither_dtype_nor_shape_nor_layout_nor_byte_order_enters() -> None:
    array = np.random.default_rng(1).standard_normal((30, 40)).astype("<f4")
    expected = hash_bytes(array)
    assert hash_bytes(array.view("<i4")) == expected
    assert hash_bytes(array.reshape(-1)) == expected
    assert hash_bytes(np.asfortranarray(array)) == expected
    assert hash_bytes(array.astype(">f4")) == expected
    assert hash_bytes(np.repeat(array, 2, axis=1)[:, ::2]) == expected


def test_constants_of_all_lengths_differ() -> None:
    lengths = [*range(70), BLOCK - 8, BLOCK, BLOCK + 8, 2 * BLOCK]
    hashes = [hash_bytes(np.full(length, value, dtype=np.uint8)) for length in lengths for value in (0, 1, 255)]
    assert len(set(hashes)) == len(hashes) - 2


def test_order_enters_within_and_between_blocks() -> None:
    data = np.random.default_rng(2).integers(0, 2**63, 3 * BLOCK_WORDS)
    blocks = data.reshape(3, -1)
    orders = [data, data[::-1], blocks[[1, 0, 2]], blocks[[0, 2, 1]], np.roll(data, 1)]
    swapped = data.copy()
    swapped[[4, 5]] = swapped[[5, 4]]
    assert len({hash_bytes(order) for order in [*orders, swapped]}) == 6


@pytest.mark.parametrize("dtype", ["<f4", "<f8", "<f2"])
def test_any_two_flipped_signs_are_seen(dtype: str) -> None:
    array = np.random.default_rng(3).standard_normal(40).astype(dtype)
    hashes = {hash_bytes(array)}
    pairs = list(combinations(range(40), 2))
    for pair in pairs:
        flipped = array.copy()
        flipped[list(pair)] *= -1
        hashes.add(hash_bytes(flipped))
    assert len(hashes) == len(pairs) + 1


def test_every_single_bit_is_seen() -> None:
    array = np.zeros(300, dtype=np.uint8)
    hashes = {hash_bytes(array)}
    for bit in range(2400):
        flipped = array.copy()
        flipped[bit // 8] = 1 << bit % 8
        hashes.add(hash_bytes(flipped))
    assert len(hashes) == 2401


def test_half_of_the_bits_change_when_one_does() -> None:
    array = np.random.default_rng(4).integers(0, 2**63, 100)
    first = hash_bytes(array)
    changes = []
    for bit in range(64):
        flipped = array.view(np.uint64) ^ np.where(np.arange(100) == bit, np.uint64(1 << bit), np.uint64(0))
        changes.append((first ^ hash_bytes(flipped)).bit_count())
    assert 28 < sum(changes) / len(changes) < 36


@pytest.mark.parametrize("shape", [(5,), (5, 3), (5, 8), (3, 100_001), (0, 4), (4, 0), (600, 16, 2)], ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32"])
def test_row_hashes_are_the_hashes_of_the_rows(shape: tuple[int, ...], dtype: str) -> None:
    array = np.random.default_rng(5).integers(0, 100, shape).astype(dtype)
    assert row_hashes(array).tolist() == [hash_bytes(row) for row in array]


def test_repeated_rows_have_equal_hashes() -> None:
    rows = row_hashes(np.array([[1, 2], [3, 4], [1, 2], [2, 1]]))
    assert rows[0] == rows[2]
    assert len(set(rows.tolist())) == 3
