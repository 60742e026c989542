"""The same values in another layout: transposed, in another order, several tensors in one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from align import wording
from align.checkpoints.merging import Merge, PartOrder
from align.checkpoints.relating import EntryPair
from align.checkpoints.rules import template
from align.checkpoints.schemes import Role, role_of
from align.checkpoints.telling import Compared, finding, some
from align.records import Finding, Severity
from align.relations import OrderKind, RelationKind, describe
from align.sentences import capital, joined, say

CONV1D = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
"""Matrices that GPT-2 of Hugging Face keeps as [inputs, outputs] (its class Conv1D), a Linear as [outputs, inputs]."""

BLOCKS_SHOWN = 8

ROTARY_PARTS = ("q", "k")
"""Projections whose rows Meta's Llama interleaves for its rotary embedding, and Hugging Face splits in halves."""


def transposed(compared: Compared) -> Iterator[Finding]:
    """Matrices that are the transposed ones of the other side."""
    pairs = [pair for pair in compared.pairs if pair.relation.kind is RelationKind.TRANSPOSED]
    layout, wrong = _split(compared, pairs, _is_conv1d)
    if layout:
        names = [pair.names.reference for pair in layout]
        yield finding(
            "AL305",
            compared.permitted(Severity.NOTE),
            say(
                "{} of the {} {} transposed, in every layer alike, as Conv1D and Linear keep the same weights: {}.",
                capital(wording.plural(len(layout), "matrix", "matrices")),
                compared.candidate_word,
                "is" if len(layout) == 1 else "are",
                some(names),
            ),
            "Transpose them when converting (`tensor.t().contiguous()`); loaded as they are, they fit only if square, "
            "and are wrong then.",
            names,
        )
    if wrong:
        names = [pair.names.reference for pair in wrong]
        shapes = sorted({wording.shape(pair.reference.shape) for pair in wrong})
        yield finding(
            "AL305",
            Severity.ERROR,
            say(
                "{} of the {} {} of the reference, transposed: {} ({}).",
                capital(wording.plural(len(wrong), "matrix", "matrices")),
                compared.candidate_word,
                "is that" if len(wrong) == 1 else "are those",
                some(names),
                wording.listing(shapes[:3], len(shapes)),
            ),
            "Take the transposition out of the conversion, or put it in for all of them: `tensor.t().contiguous()`.",
            names,
        )


def _split(
    compared: Compared, pairs: Sequence[EntryPair], is_layout: object
) -> tuple[list[EntryPair], list[EntryPair]]:
    """Pairs whose layout is that of another framework, in every layer, and the others."""
    groups: dict[str, list[EntryPair]] = defaultdict(list)
    for pair in compared.pairs:
        groups[template(pair.names.reference)[0]].append(pair)
    layout: list[EntryPair] = []
    wrong: list[EntryPair] = []
    for pair in pairs:
        alike = groups[template(pair.names.reference)[0]]
        whole = all(each.relation.kind is pair.relation.kind for each in alike)
        (layout if whole and callable(is_layout) and is_layout(pair) else wrong).append(pair)
    return layout, wrong


def _is_conv1d(pair: EntryPair) -> bool:
    return pair.names.reference != pair.names.candidate or pair.names.reference.endswith(CONV1D)


def _is_rotary(pair: EntryPair) -> bool:
    """Query or key rows of which the halves of each head are interleaved, under the names of another framework."""
    role, order = role_of(pair.names.reference), pair.relation.order
    return (
        role is not None
        and role.part in ROTARY_PARTS
        and pair.names.reference != pair.names.candidate
        and order is not None
        and order.how is OrderKind.SWAPPED_AXES
        and order.dimension == 0
        and 2 in (order.first, order.second)  # noqa: PLR2004 - two halves
    )


def permuted(compared: Compared) -> Iterator[Finding]:
    """Slices in another order."""
    kinds = (RelationKind.PERMUTED, RelationKind.REORDERED)
    pairs = [pair for pair in compared.pairs if pair.relation.kind in kinds]
    layout, wrong = _split(compared, pairs, _is_rotary)
    if layout:
        names = [pair.names.reference for pair in layout]
        yield finding(
            "AL304",
            compared.permitted(Severity.NOTE),
            say(
                "The rows of {} are interleaved on one side and in halves on the other, head by head and in every "
                "layer: {}. Meta's Llama and Hugging Face keep queries and keys so for their ways of rotating.",
                wording.plural(len(layout), "matrix", "matrices"),
                some(names),
            ),
            "Nothing needs to be done where each file is used by its own code; a conversion has to reorder them.",
            names,
        )
    said: dict[str, list[str]] = defaultdict(list)
    for pair in wrong:
        said[_order_phrase(pair)].append(pair.names.reference)
    for phrase, names in said.items():
        yield finding(
            "AL304", Severity.ERROR,
            say("{}: the {}'s tensor is {}.", some(names), compared.candidate_word, phrase),
            "Look at how the parts were put together (tensor-parallel shards, fused q, k and v, gate and up): split "
            "each shard into its parts first, then join equal parts.", names, how=phrase,
        )  # fmt: skip


def _order_phrase(pair: EntryPair) -> str:
    """The order in words; blocks that changed their turns are listed."""
    order = pair.relation.order
    if order is None or order.how is not OrderKind.SWAPPED_AXES:
        return describe(pair.relation)
    blocks = np.arange(order.outer * order.first * order.second).reshape(order.outer, order.first, order.second)
    turned = blocks.swapaxes(1, 2).reshape(-1).tolist()
    listed = joined(", ", map(str, turned[:BLOCKS_SHOWN])) + (", ..." if len(turned) > BLOCKS_SHOWN else "")
    what = say(("rows", "columns")[order.dimension] if len(pair.reference.shape) == 2 else "slices")  # noqa: PLR2004
    what = say("elements") if len(pair.reference.shape) == 1 else what
    unit = say("blocks of {} {}", wording.count(order.block), what) if order.block > 1 else what
    return say("the reference with its {} in the order {}", unit, listed)


def merged(compared: Compared) -> Iterator[Finding]:
    """Several tensors in one: a layout where the order is a usual one in every layer, else told as what it is."""
    groups: dict[tuple[str, ...], list[Merge]] = defaultdict(list)
    for merge in compared.merges:
        if merge.exact or merge.merged.endswith("weight"):
            groups[(template(merge.merged)[0], order_text(merge))].append(merge)
    by_template: dict[str, list[str]] = defaultdict(list)
    for pattern, order in sorted(groups, key=lambda key: -len(groups[key])):
        by_template[pattern].append(order)
    odd = _biases_unlike_weights(compared.merges)
    for (pattern, order), merges in groups.items():
        names = [merge.merged for merge in merges]
        usual = by_template[pattern][0]
        odd_one = order != usual
        wrong = odd_one or any(merge.order is PartOrder.OTHER for merge in merges)
        side = compared.candidate_word if merges[0].of_candidate else "reference"
        other = "reference" if merges[0].of_candidate else compared.candidate_word
        own = merges[0].parts
        parts = wording.listing([part.rpartition(".")[0] or part for part in own]) if len(own) <= 3 else some(own)  # noqa: PLR2004
        text = say(
            "{} of the {} {} in one tensor what the {} keeps apart ({}), {}{}.",
            some(names),
            side,
            "holds" if len(names) == 1 else "hold",
            other,
            parts,
            order,
            ", transposed" if merges[0].transposed else "",
        )
        weight = next((odd[name] for name in names if name in odd), "")
        if weight:
            text += say(" Its weight {}.", weight)
        severity = Severity.ERROR if wrong or weight else _severity(compared, merges[0])
        if odd_one:
            text += say(" Most layers hold them {}.", usual)
        yield finding(
            "AL304", severity, text,
            "Put weight and bias together in the same order: split each shard into its parts first, then join equal "
            "parts."
            if weight or wrong
            else "Split it in this order where the parts are wanted; the model that reads it must expect the same "
            "order.",
            names, order=order, parts=list(merges[0].parts),
        )  # fmt: skip


def _severity(compared: Compared, merge: Merge) -> Severity:
    """A usual order is a note; another may be what its model expects, which the file does not tell."""
    roles: list[Role | None] = [role_of(part) for part in merge.parts]
    attention = all(role is not None and role.part in ("q", "k", "v") for role in roles)
    usual = [part for part, _ in merge.runs()] == list(range(len(merge.parts)))
    if usual or (attention and merge.order is PartOrder.GROUPED):
        return compared.permitted(Severity.NOTE)
    return compared.permitted(Severity.WARNING)


def order_text(merge: Merge) -> str:
    """How the parts stand in the merged tensor."""
    runs = merge.runs()
    what = say("rows" if merge.dimension == 0 else "columns")
    if merge.order is PartOrder.STACKED:
        order = [_short(merge.parts[part]) for part, _ in runs]
        if len(set(order)) < len(order):
            in_order = [part for part, _ in runs] == list(range(len(runs)))
            if in_order:
                return "one behind the other, in the order of their numbers"
            return "one behind the other, in another order than that of their numbers"
        return say("one behind the other: {}", joined(", ", order))
    if merge.order is PartOrder.GROUPED:
        period = _period([part for part, _ in runs])
        group = joined(
            ", ", (say("{} {} of {}", length, what, _short(merge.parts[part])) for part, length in runs[:period])
        )
        return say("by turns, {} times: {}", len(runs) // period, group)
    return say("with its {} in another order", what)


def _period(owners: Sequence[int]) -> int:
    for period in range(1, len(owners) + 1):
        if len(owners) % period == 0 and list(owners[:period]) * (len(owners) // period) == list(owners):
            return period
    return len(owners)


def _short(name: str) -> str:
    """The last two levels without the slot: `q_proj`."""
    parts = name.split(".")
    return parts[-2] if len(parts) > 1 else name


def _biases_unlike_weights(merges: Sequence[Merge]) -> dict[str, str]:
    """Merged biases whose parts stand in another order than those of their weights, with the weights' order."""
    weights = {merge.merged: merge for merge in merges if merge.merged.endswith("weight")}
    found = {}
    for merge in merges:
        weight = weights.get(f"{merge.merged.removesuffix('bias')}weight")
        if merge.merged.endswith("bias") and weight is not None and merge.exact:
            alike = (merge.owner == weight.owner).all() and (merge.place == weight.place).all()
            if not alike:
                found[merge.merged] = say("has them {}", order_text(weight))
    return found
