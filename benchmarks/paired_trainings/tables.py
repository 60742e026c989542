"""Tables of what was said of paired trainings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from align.acceptance_records import Acceptance
from benchmarks.paired_trainings.judging import DEFAULT, WITH_REPEATS, Judged

WHOLE = 10
"""From here on no decimals are written."""


def by_kind(judged: Sequence[Judged]) -> str:
    """A line for each kind of pair: how many fail, are left open, pass with a remark and pass without."""
    published = [name for name in judged[0].verdicts if name not in {DEFAULT, WITH_REPEATS}]
    lines = [
        "| pair | right | default: fail / open / remark / pass | with 2 repeats | fails first | times the repeats | "
        + " | ".join(f"{name}: fail" for name in published)
        + " |",
        "|---|---|" + "---|" * (4 + len(published)),
    ]
    for case in dict.fromkeys(each.case for each in judged):
        kind = [each for each in judged if each.case == case]
        first = Counter(each.failed[WITH_REPEATS][0] for each in kind if each.failed[WITH_REPEATS])
        cells = [
            case.name,
            "fails" if case.fault else "passes",
            _counts(kind, DEFAULT),
            _counts(kind, WITH_REPEATS),
            ", ".join(f"{code} {count}" for code, count in first.most_common(2)) or "-",
            _times(kind),
            *(str(sum(each.verdicts[name] is Acceptance.FAIL for each in kind)) for name in published),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def by_pair(judged: Sequence[Judged]) -> str:
    """A line for each pair: the verdicts, and every criterion that fails."""
    return "\n".join(
        f"{each.case.name}, {each.pair}: {_said(each, DEFAULT)}; with repeats {_said(each, WITH_REPEATS)}; "
        f"{each.times_repeats:.3g} times the repeats"
        for each in judged
    )


def _counts(kind: Sequence[Judged], rule: str) -> str:
    verdicts = Counter(each.verdicts[rule] for each in kind)
    remarked = sum(rule in each.remarked for each in kind)
    counts = (verdicts[Acceptance.FAIL], verdicts[Acceptance.UNKNOWN], remarked, verdicts[Acceptance.PASS] - remarked)
    return " / ".join(map(str, counts))


def _times(kind: Sequence[Judged]) -> str:
    times = sorted(each.times_repeats for each in kind)
    return f"{_written(median(times))} ({_written(times[0])} to {_written(times[-1])})"


def _written(times: float) -> str:
    return f"{times:.0f}" if times >= WHOLE else f"{times:.2g}"


def _said(judged: Judged, rule: str) -> str:
    codes = ", ".join(judged.failed[rule])
    remark = " with a remark" if rule in judged.remarked else ""
    return f"{judged.verdicts[rule].value}{remark}{f' ({codes})' if codes else ''}"
