"""Names: renamed, missing, extra, and values that stand under the name of another entry."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from align import wording
from align.checkpoint_files import Entry
from align.checkpoints.contents import fingerprint
from align.checkpoints.names import Way
from align.checkpoints.relating import EntryPair
from align.checkpoints.rules import told_rules
from align.checkpoints.telling import Compared, capital, finding, of, some
from align.records import Finding, Severity
from align.relations import Contents, RelationKind

DERIVED = re.compile(
    r"(^|\.)(inv_freq|masked_bias|position_ids|token_type_ids|rotary_emb\.(cos|sin)_cached|original_inv_freq|causal_mask"
    r"|attn_mask|relative_position_index)$"
)
"""Buffers that models compute themselves when they are built, by the names that they have in widely used models."""

STATISTICS = re.compile(r"(^|\.)(running_mean|running_var|num_batches_tracked)$")
"""Buffers of normalisation layers, which training has changed."""

MOVED = frozenset({
    RelationKind.UNRELATED, RelationKind.OTHER_SEED, RelationKind.NOT_LOADED, RelationKind.UNKNOWN,
})  # fmt: skip
"""Relations of pairs whose values may stand under another name."""

RULES_SHOWN = 4


def is_derived(name: str, entry: Entry) -> bool:
    """Whether a name is that of a buffer that a model computes itself; GPT-2 calls its causal mask `attn.bias`."""
    mask = name.endswith("attn.bias") and len(entry.shape) == 4  # noqa: PLR2004 - [1, 1, length, length]
    return mask or DERIVED.search(name) is not None


def renamed(compared: Compared) -> Iterator[Finding]:
    """Names differ, and what explains it."""
    pairs = [pair for pair in compared.pairs if pair.names.reference != pair.names.candidate]
    if not pairs:
        return
    rules = told_rules(pair.names for pair in pairs)
    shown = "; ".join(f"{rule} ({wording.plural(count, 'name')})" for rule, count in rules[:RULES_SHOWN])
    if len(rules) > RULES_SHOWN:
        shown += f"; and {len(rules) - RULES_SHOWN} more rules"
    same = sum(pair.same for pair in pairs)
    unsure = sum(pair.names.way is Way.ORDER for pair in pairs)
    kept = f"With it {of(same, len(pairs))} hold the same values in the same order." if same else ""
    doubt = f" {unsure} of them were paired by shape and order alone, which may be wrong." if unsure else ""
    yield finding(
        "AL303", compared.permitted(Severity.WARNING),
        f"{capital(of(len(pairs), len(compared.pairs)))} have other names in the {compared.candidate_word}: {shown}. "
        f"{kept}{doubt}".rstrip(),
        _how_to_rename(pairs, rules), [pair.names.reference for pair in pairs], rules=dict(rules[:50]), same=same,
    )  # fmt: skip


def _how_to_rename(pairs: Sequence[EntryPair], rules: Sequence[tuple[str, int]]) -> str:
    """The line of Python that takes one prefix away or puts it on; else what to look at."""
    silent = "`load_state_dict(strict=False)` leaves out every name that it does not know, and only returns the list."
    first = pairs[0].names
    if len(rules) == 1 and first.way in (Way.PREFIX, Way.WRAPPER):
        longer, shorter = sorted((first.reference, first.candidate), key=len, reverse=True)
        if longer.endswith(f".{shorter}"):
            prefix = longer[: len(longer) - len(shorter)]
            line = f"{{name.removeprefix('{prefix}'): tensor for name, tensor in state.items()}}"
            return f"{silent} Take the prefix away before loading: `{line}`."
    return f"{silent} Rename before loading, or load with strict=True, which fails where a name is not known."


def missing(compared: Compared) -> Iterator[Finding]:
    """Entries that only one side has, buffers apart."""
    for side, names, entries in (
        ("reference", compared.only_reference, compared.reference.entries),
        (compared.candidate_word, compared.only_candidate, compared.candidate.entries),
    ):
        derived = [name for name in names if is_derived(name, entries[name])]
        statistics = [name for name in names if STATISTICS.search(name)]
        rest = [name for name in names if name not in {*derived, *statistics}]
        if derived:
            yield _derived(side, derived)
        if statistics:
            yield _statistics(compared, side, statistics)
        if rest:
            yield _only(compared, side, rest, len(entries))


def _derived(side: str, names: Sequence[str]) -> Finding:
    return finding(
        "AL309", Severity.NOTE,
        f"Only the {side} has {wording.plural(len(names), 'buffer')} that models compute themselves: {some(names)}.",
        "Nothing needs to be done, unless the model was built with another length or base than it was trained with.",
        names,
    )  # fmt: skip


def _statistics(compared: Compared, side: str, names: Sequence[str]) -> Finding:
    without = compared.candidate_word if side == "reference" else "reference"
    return finding(
        "AL309", Severity.ERROR,
        f"The {without} has no statistics of normalisation layers, the {side} has {len(names)}: {some(names)}. Without "
        "them a model evaluates with mean 0 and variance 1.",
        "Save `model.state_dict()`, which holds buffers, instead of `dict(model.named_parameters())`.", names,
    )  # fmt: skip


def _only(compared: Compared, side: str, names: Sequence[str], total: int) -> Finding:
    without = compared.candidate_word if side == "reference" else "reference"
    listed = f"{capital(of(len(names), total))} of the {side} {'has' if len(names) == 1 else 'have'} no answer in the "
    if compared.candidate.is_capture and side == "reference":
        return finding(
            "AL303", Severity.WARNING,
            f"{listed}run: {some(names)}. They are not loaded, or belong to modules that the run does not train.",
            "Print the result of `load_state_dict(..., strict=False)`: it lists unexpected keys.", names,
        )  # fmt: skip
    parameters = [name for name in names if name.endswith(("weight", "bias"))]
    if compared.candidate.is_capture and side == "run" and not parameters:
        return finding(
            "AL303", Severity.WARNING,
            f"{listed}reference: {some(names)}. Buffers that are never saved (persistent=False) stand here, too.",
            "Look whether one of them is a parameter: then it began with values of its own.", names,
        )  # fmt: skip
    loaded = " A model that needs them begins with values of its own there." if without == "candidate" else ""
    return finding(
        "AL303", Severity.ERROR, f"{listed}{without}: {some(names)}.{loaded}",
        "Look how the checkpoint was saved or converted: each of these needs a rule, or is dropped on purpose.", names,
    )  # fmt: skip


def exchanged(compared: Compared) -> Iterator[Finding]:
    """Values that stand under the name of another entry of the same shape."""
    groups: dict[tuple[int, ...], list[EntryPair]] = defaultdict(list)
    for pair in compared.pairs:
        if pair.relation.kind in MOVED and pair.reference.readable and pair.candidate.readable:
            groups[pair.reference.shape].append(pair)
    moved: dict[str, str] = {}
    for pairs in groups.values():
        if len(pairs) < 2:  # noqa: PLR2004 - an exchange needs two
            continue
        known = {_extremes(pair.relation.reference) for pair in pairs}
        likely = [pair for pair in pairs if _extremes(pair.relation.candidate) in known]
        wanted = {_extremes(pair.relation.candidate) for pair in likely}
        homes = {
            fingerprint(pair.reference).multiset: pair.names
            for pair in pairs
            if _extremes(pair.relation.reference) in wanted
        }
        for pair in likely:
            home = homes.get(fingerprint(pair.candidate).multiset)
            if home is not None and home != pair.names:
                moved[pair.names.candidate] = home.reference
    if moved:
        names = list(moved)
        examples = "; ".join(f"{name} holds that of {moved[name]}" for name in names[:3])
        more = f"; and {len(names) - 3} more" if len(names) > 3 else ""  # noqa: PLR2004 - as many as shown
        yield finding(
            "AL303", Severity.ERROR,
            f"{capital(wording.plural(len(names), 'entry', 'entries'))} of the {compared.candidate_word} "
            f"{'holds' if len(names) == 1 else 'hold'} the values of another entry: {examples}{more}.",
            "Look at the table of names of the conversion: it puts these values under wrong names.", names,
            holds=dict(list(moved.items())[:50]),
        )  # fmt: skip


def _extremes(contents: Contents) -> tuple[float, float]:
    """What tensors that hold the same values in any order have in common, and few others."""
    return contents.minimum, contents.maximum


def moved_names(findings: Sequence[Finding]) -> frozenset[str]:
    """The candidate's names whose values are explained by an exchange."""
    return frozenset(name for one in findings for name in one.evidence.get("holds", ()))
