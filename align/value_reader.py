"""The kept values of two captures, for a comparison that wants more than sketches tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from align.capture_file import Capture
from align.pairing import Pair
from align.pool_windows import pooling_of
from align.records import ModuleInfo, Phase, TensorKey, TensorRecord
from align.value_blocks import BlockReader, KeptPair
from align.value_channels import ChannelSums, channel_sums
from align.value_decisions import NEAR, WithoutFlips, without_flips
from align.value_distance import ValueDistance, measure


class ValueReader:
    """Reads the values of pairs of records where both captures kept them; memory is that of a few blocks.

    Every method raises CaptureFileError where a file cannot be read.
    """

    def __init__(self, reference: Capture, candidate: Capture, modules: Mapping[str, ModuleInfo] | None = None) -> None:
        self._captures = (reference, candidate)
        self._modules = modules or {}
        self._readers = (BlockReader(), BlockReader())
        self._forwards: dict[TensorKey, Pair] = {}

    @property
    def possible(self) -> bool:
        """Whether any values can have been kept on both sides."""
        return all(run.detail == "tensors" or run.kept for run in (capture.run for capture in self._captures))

    def enter_step(self, pairs: Iterable[Pair]) -> None:
        """Learn the forward pairs of a step, whose decisions its backward follows."""
        self._forwards = {pair.key: pair for pair in pairs if pair.key.phase is Phase.FORWARD and kept(pair)}

    def distance(self, pair: Pair, scale: float = 1.0, *, largest: bool = False) -> ValueDistance | None:
        """The distance between the candidate's values times `scale` and the reference's; None where they are not kept.

        With `largest` it tells the largest difference and its place too.
        """
        return measure(self._readers[0], self.opened(pair, scale), largest=largest) if kept(pair) else None

    def channels(self, pair: Pair, scale: float = 1.0) -> ChannelSums | None:
        """What differs by channel; None where the values are not kept."""
        return channel_sums(self._readers[0], self.opened(pair, scale)) if kept(pair) else None

    def arrays(self, pair: Pair, scale: float = 1.0) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
        """All values of a pair, the candidate's times `scale`; None where they are not kept, or complex."""
        if not kept(pair) or self.opened(pair).parts != 1:
            return None
        block = self._readers[0].block(self.opened(pair, scale), 0, pair.reference.numel)
        shape = pair.reference.shape
        return block.reference.reshape(shape).copy(), block.candidate.reshape(shape).copy()

    def without_flips(self, pair: Pair, forward_error: float, scale: float = 1.0) -> WithoutFlips | None:
        """A backward pair without the elements whose decision rounding flipped in the forward.

        `forward_error` is the relative L2 error of the forward tensor. None where its values or those of the gradient
        are not kept, or their shapes differ.
        """
        forward = self._forwards.get(_forward_key(pair.key)) if kept(pair) else None
        if forward is None or forward.reference.stats is None:
            return None
        module = self._modules.get(pair.key.name)
        pooling = pooling_of(module.class_name, module.config) if module is not None else None
        if pooling is not None and not pair.key.slot.startswith("grad_input"):
            pooling = None
        near = NEAR * forward_error * forward.reference.stats.rms
        return without_flips(self._readers, self.opened(forward, 1.0), self.opened(pair, scale), near, pooling)

    def opened(self, pair: Pair, scale: float = 1.0) -> KeptPair:
        """The values of a pair of records that `kept` says are there."""
        reference, candidate = self._captures
        return KeptPair(reference.value_source(pair.reference), candidate.value_source(pair.candidate), scale)


def kept(pair: Pair) -> bool:
    """Whether the values of both tensors were kept and can be subtracted."""
    return pair.reference.has_values and pair.candidate.has_values and pair.same_shape and _subtractable(pair)


def _subtractable(pair: Pair) -> bool:
    def is_complex(record: TensorRecord) -> bool:
        return record.dtype.startswith("complex")

    return is_complex(pair.reference) == is_complex(pair.candidate)


def _forward_key(key: TensorKey) -> TensorKey:
    """The key of the forward tensor that a gradient of the backward is that of."""
    return TensorKey(key.step, Phase.FORWARD, key.name, key.slot.removeprefix("grad_"), key.micro, key.call)
