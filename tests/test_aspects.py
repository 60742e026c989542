"""The parts of a difference that have a structure: a factor, a constant, a few elements."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align import metrics
from align.aspects import Structure, structure
from align.pairing import Pair
from align.records import Aspect, Phase, TensorKey
from align.tolerance import BFLOAT16, HF32, LIMIT
from tests.builders import Array, diff_files, record_of
from tests.numpy_run import make, to_bfloat16

KEY = TensorKey(0, Phase.FORWARD, "layer", "output.0")


def _structure(a: Array, b: Array) -> Structure:
    pair = Pair(record_of(KEY, a.astype(np.float32)), record_of(KEY, b.astype(np.float32)))
    size = metrics.relative_l2(pair)
    assert size is not None
    found = structure(pair, size)
    assert found is not None
    return found


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 1000),
    rows=st.integers(2, 300),
    factor=st.floats(-0.02, 0.02),
    constant=st.floats(-0.02, 0.02),
    noise=st.sampled_from([0.0, 1e-4, 1e-3]),
)
def test_factor_and_constant_are_read_from_statistics(
    seed: int, rows: int, factor: float, constant: float, noise: float
) -> None:
    random = np.random.default_rng(seed)
    a = random.standard_normal((rows, 64))
    b = a * (1.0 + factor) + constant + noise * random.standard_normal(a.shape)
    found, difference = _structure(a, b), b - a
    norm, numel = float(np.linalg.norm(a)), a.size
    # The size is read from sketches of 251 buckets; its square is what the factor is uncertain by.
    uncertain = 0.3 * float(np.linalg.norm(difference) / norm) ** 2 + 1e-6
    assert abs(found.scale) == pytest.approx(abs(float((a * difference).sum())) / norm**2, abs=uncertain)
    assert found.shift == pytest.approx(float(difference.sum()) / np.sqrt(numel) / norm, abs=1e-6)


def test_rounding_has_no_structure_and_a_fault_has() -> None:
    random = np.random.default_rng(3)
    a = random.standard_normal((256, 64)).astype(np.float32)
    rounded = to_bfloat16(a)
    wrong = rounded.copy()
    wrong[100, 7] += 1.0
    cases = {
        "rounding": (rounded, None),
        "factor": (rounded * np.float32(1.01), Aspect.SCALE),
        "constant": (rounded + np.float32(0.012), Aspect.SHIFT),
        "element": (wrong, Aspect.PEAK),
    }
    for name, (b, expected) in cases.items():
        found = _structure(a, b)
        times = {
            aspect: found.of(aspect) / found.floor(aspect, BFLOAT16.unit, BFLOAT16)
            for aspect in (Aspect.SCALE, Aspect.SHIFT, Aspect.PEAK)
        }
        largest = max(times, key=lambda aspect: times[aspect])
        assert (largest if times[largest] > LIMIT else None) == expected, name


def test_a_device_that_cuts_operands_off_is_allowed_its_factor() -> None:
    cut_off = Structure(scale=-1.5 * HF32.unit, chance=0.01)
    assert cut_off.of(Aspect.SCALE) < LIMIT * cut_off.floor(Aspect.SCALE, HF32.unit, HF32)
    assert Structure(scale=0.01, chance=0.01).of(Aspect.SCALE) > LIMIT * cut_off.floor(Aspect.SCALE, HF32.unit, HF32)


def test_few_elements_and_what_is_not_finite_have_no_structure() -> None:
    for a in (np.ones(10), np.array([np.inf, *range(20)]), np.zeros(20)):
        record = record_of(KEY, a.astype(np.float32))
        assert structure(Pair(record, record), 0.1) is None


@pytest.mark.parametrize(
    ("point", "fault", "aspect", "told"),
    [
        ("forward blocks.1.mlp.fc", lambda x: x * np.float32(1.01), "scale", "of it a common factor of 1.0"),
        ("backward blocks.1.mlp.proj", lambda x: x * np.float32(1.05), "scale", "of it a common factor of 1.0"),
    ],
)
def test_a_small_factor_in_bfloat16_is_found_where_it_is(
    tmp_path: Path, point: str, fault: object, aspect: str, told: str
) -> None:
    reference = make(tmp_path / "gpu.h5", steps=1, bfloat16=True)
    candidate = make(tmp_path / "npu.h5", steps=1, bfloat16=True, pieces=4, faults={(0, point): fault})
    result = diff_files(reference, candidate)
    first = result.first_divergence
    assert first is not None
    phase, name = point.split()
    assert (str(first.phase), first.name, str(first.aspect)) == (phase, name, aspect)
    assert told in result.summary
