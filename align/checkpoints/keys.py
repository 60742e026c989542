"""Names: renamed, missing, extra."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from align import wording
from align.checkpoint_files import Entry
from align.checkpoints.names import Way
from align.checkpoints.relating import EntryPair
from align.checkpoints.rules import told_rules
from align.checkpoints.telling import Compared, finding, of, some
from align.records import Finding, Severity
from align.sentences import capital, joined, say

DERIVED = re.compile(
    r"(^|\.)(inv_freq|masked_bias|position_ids|token_type_ids|rotary_emb\.(cos|sin)_cached|original_inv_freq|causal_mask"
    r"|attn_mask|relative_position_index)$"
)
"""Buffers that models compute themselves when they are built, by the names that they have in widely used models."""

STATISTICS = re.compile(r"(^|\.)(running_mean|running_var|num_batches_tracked)$")
"""Buffers of normalisation layers, which training has changed."""

ADAPTER = re.compile(r"(^|\.)(lora_[AB]|lora_embedding_[AB]|lora_magnitude_vector|ia3_l)(\.|$)")
"""Entries of adapters, by the names that PEFT gives them."""

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
    shown = joined("; ", (say("{} ({})", rule, wording.plural(count, "name")) for rule, count in rules[:RULES_SHOWN]))
    if len(rules) > RULES_SHOWN:
        shown += say("; and {} more rules", len(rules) - RULES_SHOWN)
    same = sum(pair.same for pair in pairs)
    unsure = sum(pair.names.way is Way.ORDER for pair in pairs)
    kept = say(" With it {} hold the same values in the same order.", of(same, len(pairs))) if same else ""
    doubt = say(" {} of them were paired by shape and order alone, which may be wrong.", unsure) if unsure else ""
    yield finding(
        "AL303",
        compared.permitted(Severity.WARNING),
        say(
            "{} have other names in the {}: {}.{}{}",
            capital(of(len(pairs), len(compared.pairs))),
            compared.candidate_word,
            shown,
            kept,
            doubt,
        ),
        _how_to_rename(pairs, rules),
        [pair.names.reference for pair in pairs],
        rules=dict(rules[:50]),
        same=same,
    )


def _how_to_rename(pairs: Sequence[EntryPair], rules: Sequence[tuple[str, int]]) -> str:
    """The line of Python that takes one prefix away or puts it on; else what to look at."""
    silent = "`load_state_dict(strict=False)` leaves out every name that it does not know, and only returns the list."
    first = pairs[0].names
    if len(rules) == 1 and first.way in (Way.PREFIX, Way.WRAPPER):
        longer, shorter = sorted((first.reference, first.candidate), key=len, reverse=True)
        if longer.endswith(f".{shorter}"):
            prefix = longer[: len(longer) - len(shorter)]
            line = f"{{name.removeprefix('{prefix}'): tensor for name, tensor in state.items()}}"
            return say("{} Take the prefix away before loading: `{}`.", silent, line)
    return say("{} Rename before loading, or load with strict=True, which fails where a name is not known.", silent)


def missing(compared: Compared) -> Iterator[Finding]:
    """Entries that only one side has, buffers apart."""
    for side, names, entries in (
        ("reference", compared.only_reference, compared.reference.entries),
        (compared.candidate_word, compared.only_candidate, compared.candidate.entries),
    ):
        derived = [name for name in names if is_derived(name, entries[name])]
        statistics = [name for name in names if STATISTICS.search(name)]
        adapters = [name for name in names if ADAPTER.search(name)]
        told = {*derived, *statistics, *adapters}
        rest = [name for name in names if name not in told]
        if derived:
            yield _derived(side, derived)
        if adapters:
            yield _adapters(side, adapters, Severity.ERROR)
        if statistics:
            yield _statistics(compared, side, statistics)
        if rest:
            yield _only(compared, side, rest, len(entries))


def unanswered(compared: Compared) -> Iterator[Finding]:
    """What is known of two checkpoints without a common entry: whether one of them holds adapters only."""
    for side, entries in (
        ("reference", compared.reference.entries), (compared.candidate_word, compared.candidate.entries),
    ):  # fmt: skip
        if entries and all(ADAPTER.search(name) for name in entries):
            yield _adapters(side, list(entries), Severity.WARNING)


def _adapters(side: str, names: Sequence[str], severity: Severity) -> Finding:
    return finding(
        "AL303",
        severity,
        say(
            "Only the {} has {} of adapters (LoRA), which change the weights when they are applied: {}.",
            side,
            wording.plural(len(names), "entry", "entries"),
            some(names),
        ),
        "Merge the adapters into the weights first (`merge_and_unload()` of PEFT), or compare two files of adapters.",
        names,
    )


def _derived(side: str, names: Sequence[str]) -> Finding:
    return finding(
        "AL309",
        Severity.NOTE,
        say(
            "Only the {} has {} that models compute themselves: {}.",
            side,
            wording.plural(len(names), "buffer"),
            some(names),
        ),
        "Nothing needs to be done, unless the model was built with another length or base than it was trained with.",
        names,
    )


def _statistics(compared: Compared, side: str, names: Sequence[str]) -> Finding:
    without = compared.candidate_word if side == "reference" else "reference"
    return finding(
        "AL309",
        Severity.ERROR,
        say(
            "The {} has no statistics of normalisation layers, the {} has {}: {}. Without them a model evaluates "
            "with mean 0 and variance 1.",
            without,
            side,
            len(names),
            some(names),
        ),
        "Save `model.state_dict()`, which holds buffers, instead of `dict(model.named_parameters())`.",
        names,
    )


def _only(compared: Compared, side: str, names: Sequence[str], total: int) -> Finding:
    without = compared.candidate_word if side == "reference" else "reference"
    listed = say(
        "{} of the {} {} no answer in the ", capital(of(len(names), total)), side, "has" if len(names) == 1 else "have"
    )
    if compared.candidate.is_capture and side == "reference":
        return finding(
            "AL303",
            Severity.WARNING,
            say(
                "{}run: {}. They are not loaded, or belong to modules that the run does not train.", listed, some(names)
            ),
            "Print the result of `load_state_dict(..., strict=False)`: it lists unexpected keys.",
            names,
        )
    parameters = [name for name in names if name.endswith(("weight", "bias"))]
    if compared.candidate.is_capture and side == "run" and not parameters:
        return finding(
            "AL303",
            Severity.WARNING,
            say(
                "{}reference: {}. Buffers that are never saved (persistent=False) stand here, too.", listed, some(names)
            ),
            "Look whether one of them is a parameter: then it began with values of its own.",
            names,
        )
    loaded = " A model that needs them begins with values of its own there." if without == "candidate" else ""
    return finding(
        "AL303", Severity.ERROR, say("{}{}: {}.{}", listed, without, some(names), loaded),
        "Look how the checkpoint was saved or converted: each of these needs a rule, or is dropped on purpose.", names,
    )  # fmt: skip
