"""A 64-bit hash of an array's logical little-endian bytes, the same on every machine and for every memory layout.

All arithmetic is modulo 2**64. The bytes are read as little-endian words x of 64 bits, 8192 words a block; what
is left behind the last whole word is padded with zeros to a word and is a block of its own. With w the odd weights
of `_weights` and mix the finalizer of splitmix64:

    y = (x ^ x >> 32) * 0xFF51AFD7ED558CCD        z = y ^ y >> 29
    block = sum of w[i] * z[i]                    i = position in the block
    total = sum of mix(block ^ mix(number + 1))   number = 0, 1, ...
    hash = mix(total ^ mix(length in bytes + 0x9E3779B97F4A7C15))

Folding upper bits into lower ones keeps flipped signs from cancelling: a top bit times any odd weight is the
top bit again. The hash finds accidental change; it does not resist attack.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

BLOCK_WORDS = 8192
_WORD = 8
_SPREAD = np.uint64(0xFF51AFD7ED558CCD)
_GOLDEN = 0x9E3779B97F4A7C15


def hash_bytes(array: NDArray[Any]) -> int:
    """The hash of the array's bytes in row-major order; shape and dtype do not enter, only the bytes."""
    return int(_hash_rows(_logical_bytes(array).reshape(1, -1))[0])


class BlockHash:
    """`hash_bytes` of an array that is given part by part, in row-major order; it keeps 64 KB at most."""

    def __init__(self) -> None:
        self._left = np.empty(0, dtype=np.uint8)
        self._blocks = 0
        self._total = np.zeros(1, dtype=np.uint64)
        self._size = 0

    def add(self, array: NDArray[Any]) -> None:
        """The next elements."""
        data = _logical_bytes(array)
        self._size += data.size
        data = np.concatenate([self._left, data]) if self._left.size else data
        whole = data.size - data.size % (BLOCK_WORDS * _WORD)
        self._add_words(data[:whole])
        self._left = data[whole:].copy()

    def finish(self) -> int:
        """The hash of all that was given."""
        whole = self._left.size - self._left.size % _WORD
        self._add_words(self._left[:whole])
        if self._left.size > whole:
            last = np.zeros(_WORD, dtype=np.uint8)
            last[: self._left.size - whole] = self._left[whole:]
            self._add_words(last)
        return int(mix(self._total ^ mix(np.array([self._size + _GOLDEN], dtype=np.uint64)))[0])

    def _add_words(self, data: NDArray[np.uint8]) -> None:
        words = data.view("<u8").reshape(1, -1)
        scratch = np.empty((2, 1, min(words.size, BLOCK_WORDS)), dtype=np.uint64)
        for start in range(0, words.size, BLOCK_WORDS):
            self._blocks += 1
            block = _block(words[:, start : start + BLOCK_WORDS], scratch)
            self._total = self._total + mix(block ^ mix(np.array([self._blocks], dtype=np.uint64)))


def row_hashes(array: NDArray[Any]) -> NDArray[np.uint64]:
    """`hash_bytes` of each `array[i]`, so that shuffled, repeated and missing samples show."""
    count = array.shape[0]
    size = array[:1].nbytes
    rows = _logical_bytes(array).reshape(count, size)
    hashes = np.empty(count, dtype=np.uint64)
    together = max(1, BLOCK_WORDS * _WORD // max(size, 1))
    for start in range(0, count, together):
        hashes[start : start + together] = _hash_rows(rows[start : start + together])
    return hashes


def _logical_bytes(array: NDArray[Any]) -> NDArray[np.uint8]:
    little = np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")
    return little.reshape(-1).view(np.uint8)


def _hash_rows(rows: NDArray[np.uint8]) -> NDArray[np.uint64]:
    """The hash of each row of bytes."""
    count, size = rows.shape
    whole = size // _WORD
    words = rows[:, : whole * _WORD].view("<u8")
    starts = range(0, whole, BLOCK_WORDS)
    scratch = np.empty((2, count, min(whole, BLOCK_WORDS)), dtype=np.uint64)
    blocks = [_block(words[:, start : start + BLOCK_WORDS], scratch) for start in starts]
    if size % _WORD:
        last = np.zeros((count, _WORD), dtype=np.uint8)
        last[:, : size % _WORD] = rows[:, whole * _WORD :]
        blocks.append(_block(last.view("<u8"), np.empty((2, count, 1), dtype=np.uint64)))
    total = np.zeros(count, dtype=np.uint64)
    if blocks:
        numbers = np.arange(1, len(blocks) + 1, dtype=np.uint64)
        total = mix(np.stack(blocks, axis=1) ^ mix(numbers)).sum(axis=1, dtype=np.uint64)
    return mix(total ^ mix(np.array([size + _GOLDEN], dtype=np.uint64)))


def _block(words: NDArray[np.uint64], scratch: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The weighted sum of one block of each row."""
    length = words.shape[1]
    folded, shifted = scratch[0, :, :length], scratch[1, :, :length]
    np.right_shift(words, np.uint64(32), out=shifted)
    np.bitwise_xor(words, shifted, out=folded)
    np.multiply(folded, _SPREAD, out=folded)
    np.right_shift(folded, np.uint64(29), out=shifted)
    np.bitwise_xor(folded, shifted, out=folded)
    sums: NDArray[np.uint64] = np.einsum("ij,j->i", folded, _weights()[:length])
    return sums


@lru_cache(maxsize=1)
def _weights() -> NDArray[np.uint64]:
    """One for each position of a block."""
    return odd_weights(0, BLOCK_WORDS)


def odd_weights(start: int, length: int) -> NDArray[np.uint64]:
    """One odd weight for each of `length` positions from `start` on, from the splitmix64 sequence."""
    mixed = mix(np.arange(start + 1, start + length + 1, dtype=np.uint64) * np.uint64(_GOLDEN))
    odd: NDArray[np.uint64] = mixed | np.uint64(1)
    return odd


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The finalizer of splitmix64: every bit of the input reaches every bit of the output."""
    values = (values ^ values >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ values >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    mixed: NDArray[np.uint64] = values ^ values >> np.uint64(31)
    return mixed
