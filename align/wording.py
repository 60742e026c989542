"""How numbers and names are written wherever align speaks: sentences, tables and pages alike."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise

from align.sentences import joined, say

DTYPE_NAMES = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "tfloat32": "TF32",
    "hfloat32": "HF32",
    "float8_e4m3fn": "fp8 e4m3",
    "float8_e5m2": "fp8 e5m2",
}
LARGEST_TIMES_IN_FULL = 1e7
LARGEST_RELATIVE_IN_FULL = 1000.0
SMALLEST_RELATIVE_IN_FULL = 0.01
SMALLEST_PERCENT_WITH_ONE_DECIMAL = 0.1
SMALLEST_SHARE, LARGEST_SHARE = 0.001, 0.1
"""Between them a share has two decimals as percent; above one is enough, and below it has two digits."""
SMALLEST_LOSS = 5e-4
LARGEST_LOSS = 1e6
"""Between these four decimals show a loss."""


def count(number: int) -> str:
    """`39,812`."""
    return f"{number:,}"


def relative(number: float | None) -> str:
    """A relative difference, floor or unit roundoff with two significant digits: `0.031`, `1.3e-4`."""
    if number is None:
        return "not compared"
    if number == 0 or not math.isfinite(number):
        return _special(number)
    if SMALLEST_RELATIVE_IN_FULL <= abs(number) < LARGEST_RELATIVE_IN_FULL:
        return _plain(number, 2)
    return _scientific(number)


def times(number: float | None) -> str:
    """How many times the floor: `6.4x`, `1,470x`, `3.2e9x`."""
    if number is None:
        return "not compared"
    if not math.isfinite(number):
        return say("{}x", _special(number))
    if abs(number) < 9.95:  # noqa: PLR2004 - from here on one decimal would read 10.0
        return say("{}x", f"{number:.1f}")
    if abs(number) < LARGEST_TIMES_IN_FULL:
        return say("{}x", _plain(number, 3))
    return say("{}x", _scientific(number))


def percent(number: float) -> str:
    """A share of 1 as percent: `2.4 %`, `0.03 %`; never `0.0 %` for what is not zero."""
    value = number * 100
    if value == 0 or abs(value) >= SMALLEST_PERCENT_WITH_ONE_DECIMAL:
        return say("{} %", f"{value:.1f}")
    return say("{} %", _plain(value, 2).rstrip("0")) if abs(value) >= 1e-4 else say("{} %", _scientific(value))  # noqa: PLR2004


def share(number: float) -> str:
    """A share of 1 as percent, with a digit more where it is held against limits: `0.47 %`, `12.4 %`, `0.036 %`."""
    return say("{} %", f"{100 * number:.2f}") if SMALLEST_SHARE <= abs(number) < LARGEST_SHARE else percent(number)


def value(number: float) -> str:
    """A value of a tensor with four significant digits: `3.142`, `-65,504`, `1.500e-7`."""
    if number == 0 or not math.isfinite(number):
        return _special(number)
    if 1e-3 <= abs(number) < 1e6:  # noqa: PLR2004 - what is read at a glance
        return _plain(number, 4) if abs(number) < 1e4 else f"{number:,.0f}"  # noqa: PLR2004 - as above
    return _scientific(number, 3)


def element(number: complex) -> str:
    """A value of a tensor; integers in full, a complex one with both parts: `0.5000 - 1.250i`."""
    if isinstance(number, int):
        return count(int(number))
    if not isinstance(number, complex):
        return value(number)
    sign = "-" if math.copysign(1.0, number.imag) < 0 else "+"
    return say("{} {} {}i", value(number.real), sign, value(abs(number.imag)))


def factor(number: float) -> str:
    """A factor with four digits at most; near 1 with the first two by which it is off: `1.3`, `-1`, `1.0001`.

    How far a factor is from 1 is what the difference was measured by; of no other is more known than a sketch tells.
    """
    away = abs(number - 1.0)
    if not math.isfinite(number) or away == 0.0 or away >= 0.01:  # noqa: PLR2004 - seen with four digits
        return f"{number:.4g}"
    places = 1 - math.floor(math.log10(away))
    return f"{number:.{places}f}".rstrip("0").rstrip(".")


def loss(number: float) -> str:
    """`2.3148`; `5.726e34` and `2.310e-6` where four decimals say too much or too little."""
    if not math.isfinite(number):
        return _special(number)
    fits = number == 0.0 or SMALLEST_LOSS <= abs(number) < LARGEST_LOSS
    return f"{number:.4f}" if fits else value(number)


def loss_scale(number: float) -> str:
    """`65,536 (2^16)`."""
    if not math.isfinite(number) or number <= 0:
        return _special(number) if number else "0"
    mantissa, exponent = math.frexp(number)
    if mantissa != 0.5:  # noqa: PLR2004 - frexp's mantissa of a power of two
        return value(number)
    return say("{} (2^{})", f"{number:,.0f}", exponent - 1) if number >= 1 else f"2^{exponent - 1}"


def seconds(number: float) -> str:
    """`318 ms`, `1.42 s`."""
    if not math.isfinite(number):
        return _special(number)
    if 0 < number < 0.01:  # noqa: PLR2004 - below it whole milliseconds say too little
        return say("{} ms", f"{1000.0 * number:.2g}")
    return say("{} ms", f"{1000.0 * number:.0f}") if number < 1 else say("{} s", f"{number:,.2f}")


def ranges(numbers: Iterable[int]) -> str:
    """Closed ranges with a dash: `0-2, 5`."""
    ordered = sorted(set(numbers))
    if not ordered:
        return say("none")
    breaks = [0, *(place + 1 for place, (low, high) in enumerate(pairwise(ordered)) if high != low + 1), len(ordered)]
    return joined(", ", (_range(ordered[start:end]) for start, end in pairwise(breaks)))


def steps(numbers: Iterable[int]) -> str:
    """`step 0` or `steps 0-2`."""
    ordered = sorted(set(numbers))
    return say("step {}", ordered[0]) if len(ordered) == 1 else say("steps {}", ranges(ordered))


def ranks(numbers: Sequence[int]) -> str:
    """`rank 1` or `ranks 0-2, 5`."""
    return say("rank {}", numbers[0]) if len(numbers) == 1 else say("ranks {}", ranges(numbers))


def step(number: int, micro: int = 0) -> str:
    """`step 412`, `step 412, micro 3`; the number of the group `init` is `before step 0`."""
    if number < 0:
        return "before step 0"
    return say("step {}, micro {}", number, micro) if micro else say("step {}", number)


def dtype(name: str) -> str:
    """Torch's short name: `bf16`; others stay as they are."""
    return DTYPE_NAMES.get(name, name)


def shape(lengths: Sequence[int]) -> str:
    """`[4, 1024, 4096]`."""
    return f"[{', '.join(str(length) for length in lengths)}]"


def short_hash(number: int) -> str:
    """The first 12 hexadecimal digits."""
    return f"{number & (2**64 - 1):016x}"[:12]


def plural(number: int, singular: str, several: str | None = None) -> str:
    """`1 tensor`, `39,812 tensors`."""
    return say(f"{{}} {singular if number == 1 else several or singular + 's'}", count(number))


def listing(names: Sequence[str], total: int | None = None) -> str:
    """`a, b and c`, or `a, b and 7 more` where `total` is more than what is named."""
    more = 0 if total is None else total - len(names)
    if more > 0:
        return say("{} and {} more", joined(", ", names), count(more))
    if len(names) <= 1:
        return names[0] if names else ""
    return say("{} and {}", joined(", ", names[:-1]), names[-1])


def _range(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _special(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Inf" if number > 0 else "-Inf"
    return "0"


def _plain(number: float, digits: int) -> str:
    """So many significant digits without an exponent, thousands with a comma."""
    exponent = int(f"{number:.{digits - 1}e}".split("e")[1])
    places = digits - 1 - exponent
    return f"{round(number, places):,.{max(places, 0)}f}"


def _scientific(number: float, places: int = 1) -> str:
    mantissa, exponent = f"{number:.{places}e}".split("e")
    return f"{mantissa}e{int(exponent)}"
