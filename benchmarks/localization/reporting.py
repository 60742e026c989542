"""The benchmark's tables, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.localization.catalogue import CLASSES, KIND_OF, PARTS, SIZES
from benchmarks.localization.judging import Judgement

TITLES = {"fp32": "fp32", "tf32": "TF32-like", "bf16": "bf16", "fp16": "fp16"}
LEGEND = (
    "In each cell: detected / **exact** / wrong place, in percent of the faults, and in brackets the healthy pairs "
    "that were accused. Rules that need values may be measured on a part of the faults, drawn by lot."
)

Results = Mapping[str, Sequence[Judgement]]
"""The judgements of every rule, by its name as it is printed."""


def percent(part: int, whole: int) -> str:
    """A share in percent, without a digit after the point where there is none to see."""
    return "-" if whole == 0 else f"{100 * part / whole:.0f}" if part in {0, whole} else f"{100 * part / whole:.1f}"


def rates(found: Iterable[Judgement]) -> str:
    """Detected, exact and wrong-place percent, and how many healthy pairs were accused."""
    judged = list(found)
    faulty, benign = [e for e in judged if not e.pair.benign], [e for e in judged if e.pair.benign]
    detected, exact = sum(e.detected for e in faulty), sum(e.exact for e in faulty)
    shares = f"{percent(detected, len(faulty))} / **{percent(exact, len(faulty))}** / "
    shares += percent(detected - exact, len(faulty))
    return f"{shares} ({sum(e.detected for e in benign)}/{len(benign)})"


def _table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def by_class(results: Results) -> str:
    """One row a rule, one column a class of precision: all faults, and the healthy pairs."""
    head = ["rule", "faults", *(TITLES[name] for name in CLASSES), "all"]
    body = []
    for rule, found in results.items():
        faults = sum(not each.pair.benign for each in found)
        cells = [rates(e for e in found if e.pair.precision == name) for name in CLASSES]
        body.append([rule, str(faults), *cells, rates(found)])
    return _table(head, body)


def exact_by(results: Results, column: Callable[[Judgement], str], names: Sequence[str]) -> str:
    """Detected and exact percent of the faults, one column a group."""
    head = ["rule", "class", *names]
    body = []
    for rule, found in results.items():
        for precision in CLASSES:
            row = [rule, TITLES[precision]]
            for name in names:
                some = [e for e in found if not e.pair.benign and (e.pair.precision, column(e)) == (precision, name)]
                n = len(some)
                row.append(f"{percent(sum(e.detected for e in some), n)} / {percent(sum(e.exact for e in some), n)}")
            body.append(row)
    return _table(head, body)


def failures(results: Results) -> list[str]:
    """One sentence for each rule that gave no answer to some pairs; they count as not detected."""
    counts = {rule: sum(not each.compared for each in found) for rule, found in results.items()}
    return [f"{rule}: {count} pairs could not be compared." for rule, count in counts.items() if count]


def nearest(results: Results) -> str:
    """One row a rule: the largest part of its limit that any tensor of a healthy pair reached."""
    head = ["rule", *(TITLES[name] for name in CLASSES)]
    body = []
    for rule, found in results.items():
        shares = [[e.share for e in found if e.pair.benign and e.pair.precision == name] for name in CLASSES]
        if any(share for some in shares for share in some):
            body.append([rule, *(f"{max(some):.2f}" if some else "-" for some in shares)])
    return _table(head, body)


def by_kind(found: Sequence[Judgement]) -> str:
    """One rule, every kind of fault: exact of how many, one column a class."""
    head = ["fault", "part", "size", *(TITLES[name] for name in CLASSES)]
    body = []
    for kind in KIND_OF.values():
        for size in kind.sizes:
            row = [getattr(kind, size), kind.part, size]
            for precision in CLASSES:
                key = (kind.name, size, precision)
                some = [e for e in found if (e.pair.fault, e.pair.size, e.pair.precision) == key]
                row.append(f"{sum(e.exact for e in some)} of {len(some)}" if some else "-")
            body.append(row)
    return _table(head, body)


def report(results: Results, left_out: Results, kinds_of: str = "") -> str:
    """All tables; `kinds_of` is the rule whose kinds of faults are told apart."""
    counted = next(iter(results.values()), ())
    faulty = sum(not e.pair.benign for e in counted)
    parts = [
        f"{faulty} faults and {len(counted) - faulty} healthy pairs. {LEGEND}",
        by_class(results),
        *failures(results),
        *(["With the limit chosen on the healthy pairs of the other models:", by_class(left_out)] if left_out else []),
        "The largest part of its limit that any tensor of a healthy pair reached:",
        nearest(results),
        "Detected / exact percent by size:",
        exact_by(results, lambda e: e.pair.size, SIZES),
        "Detected / exact percent by the part of training that is wrong:",
        exact_by(results, lambda e: e.pair.part, PARTS),
    ]
    if kinds_of in results:
        parts += [f"Exact by kind of fault, {kinds_of}:", by_kind(results[kinds_of])]
    return "\n\n".join(parts) + "\n"


def write_between_markers(path: Path, text: str, name: str = "benchmark") -> None:
    """Replace what stands between the markers of this name in a page; raises ValueError where it has none."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    page = path.read_text(encoding="utf-8")
    before, opened, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not (opened and closed):
        raise ValueError(f"Cannot write the tables into '{path}': it has no lines '{begin}' and '{end}'. Add them.")
    path.write_text(f"{before}{begin}\n\n{text.strip()}\n\n{end}{after}", encoding="utf-8")
