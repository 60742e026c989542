"""Saved results: what a document holds is enough for every report, and nothing broken is taken for a result."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from align.errors import ReportError
from align.records import (
    Aspect,
    Comparison,
    DiffResult,
    Exponents,
    Finding,
    InspectResult,
    Magnitudes,
    PairedCalls,
    PairedNames,
    Pairing,
    Phase,
    Place,
    Severity,
    Status,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
)
from align.reports.accept_html import accept_page
from align.reports.accept_json import accept_document, accept_json
from align.reports.accept_markdown import accept_markdown
from align.reports.accept_text import accept_text
from align.reports.checkpoint_json import checkpoint_json
from align.reports.checkpoint_text import checkpoint_text
from align.reports.html import diff_page
from align.reports.inspect_html import inspect_page
from align.reports.inspect_json import inspect_document, inspect_json
from align.reports.inspect_text import inspect_text
from align.reports.json_report import diff_json, document
from align.reports.language import LANGUAGES
from align.reports.markdown import checkpoint_markdown, diff_markdown, inspect_markdown
from align.reports.reading import Result, as_saved, read_file, read_result
from align.reports.text import diff_text
from align.sentences import Sentence, say
from tests import document_samples, inspect_samples, report_samples
from tests.test_reports_text import SAMPLES

INSPECTIONS = {**inspect_samples.SAMPLES, "hostile": inspect_samples.hostile}
ACCEPTANCES = document_samples.ACCEPTANCES
AGAIN = "It was changed by hand or by another program: write it again with --json."


def saved(text: str) -> Any:
    return read_result(text.encode(), "saved.json")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_saved_comparison_gives_the_same_reports(name: str) -> None:
    result = SAMPLES[name]()
    again = saved(diff_json(result))

    assert diff_json(again) == diff_json(result)
    for whole in (False, True):
        assert diff_text(again, whole=whole) == diff_text(result, whole=whole)
    assert diff_markdown(again) == diff_markdown(result)


@pytest.mark.parametrize("name", INSPECTIONS)
def test_a_saved_inspection_gives_the_same_reports(name: str) -> None:
    result = INSPECTIONS[name]()
    again = saved(inspect_json(result))

    assert inspect_json(again) == inspect_json(result)
    for whole in (False, True):
        assert inspect_text(again, whole=whole) == inspect_text(result, whole=whole)
    assert inspect_markdown(again) == inspect_markdown(result)


@pytest.mark.parametrize("name", ACCEPTANCES)
def test_a_saved_acceptance_gives_the_same_reports(name: str) -> None:
    result = ACCEPTANCES[name]()
    again = saved(accept_json(result))

    assert accept_json(again) == accept_json(result)
    for language in LANGUAGES.values():
        assert accept_text(again, language, whole=True) == accept_text(result, language, whole=True)
        assert accept_markdown(again, language) == accept_markdown(result, language)


def test_a_saved_comparison_of_checkpoints_gives_the_same_reports() -> None:
    result = document_samples.checkpoint()
    again = saved(checkpoint_json(result))

    assert checkpoint_json(again) == checkpoint_json(result)
    for language in LANGUAGES.values():
        assert checkpoint_text(again, language, whole=True) == checkpoint_text(result, language, whole=True)
        assert checkpoint_markdown(again, language) == checkpoint_markdown(result, language)


def test_the_page_of_a_saved_result_is_the_same_to_the_byte() -> None:
    compared = SAMPLES["equality"]()
    inspected = inspect_samples.unknown()
    judged = document_samples.captured()

    page = diff_page(as_saved(compared, document(compared)), LANGUAGES["zh"])
    assert diff_page(saved(diff_json(compared)), LANGUAGES["zh"]) == page
    page = inspect_page(as_saved(inspected, inspect_document(inspected)))
    assert inspect_page(saved(inspect_json(inspected))) == page
    page = accept_page(as_saved(judged, accept_document(judged)))
    assert accept_page(saved(accept_json(judged))) == page


def test_sentences_can_be_said_in_another_language_again() -> None:
    whole = report_samples.diverged()
    told = say("{} of {} tensors differ.", 3, say("{} kept", 7))
    finding = dataclasses.replace(whole.findings[0], summary=told, advice=told)
    result = dataclasses.replace(
        whole, summary=told, findings=(finding,), pairing=Pairing(notes=(told,)),
        resolution=dataclasses.replace(whole.resolution, floor_method=told),
    )  # fmt: skip

    again = saved(diff_json(result))

    texts = (again.summary, again.findings[0].advice, again.pairing.notes[0], again.resolution.floor_method)
    for text in texts:
        assert isinstance(text, Sentence)
        assert (text.template, text.arguments[0]) == ("{} of {} tensors differ.", "3")
        assert text.arguments[1].template == "{} kept"


def test_sentences_in_the_cells_of_a_table_are_kept() -> None:
    whole = inspect_samples.healthy()
    cell = say("from step {} on", 3)
    table = dataclasses.replace(whole.tables[0], rows=((*whole.tables[0].rows[0][:1], cell, math.nan, 1.5, None),))

    again = saved(inspect_json(dataclasses.replace(whole, tables=(table,))))

    name, text, number, times, unknown = again.tables[0].rows[0]
    assert (name, text.template, times, unknown) == ("layers.3.mlp.fc1", "from step {} on", 1.5, None)
    assert math.isnan(number)


def test_a_sentence_that_was_changed_by_hand_stays_as_it_was_written() -> None:
    text = diff_json(dataclasses.replace(report_samples.aligned(), summary=say("{} tensors", 3)))

    again = saved(text.replace('"summary": "3 tensors"', '"summary": "4 tensors"'))

    assert again.summary == "4 tensors"
    assert not isinstance(again.summary, Sentence)


def test_a_document_of_an_earlier_version_is_read() -> None:
    found = json.loads(diff_json(report_samples.diverged()))
    for key in ("command", "sentences", "exponents"):
        del found[key]
    for finding in found["findings"]:
        del finding["sentences"]
    for name in ("resolution", "reference_hash", "candidate_hash", "reference_mean", "candidate_mean"):
        found["records"]["columns"].pop(name)
    del found["runs"]["reference"]["loads"]

    again = saved(json.dumps(found))

    assert diff_text(again, whole=True) == diff_text(report_samples.diverged(), whole=True)
    assert [type(saved(_without_command(make()))) for make in (inspect_samples.nan,)] == [InspectResult]


def _without_command(result: InspectResult) -> str:
    return inspect_json(result).replace('  "command": "inspect",\n', "")


QUICK = (hypothesis.Phase.explicit, hypothesis.Phase.reuse, hypothesis.Phase.generate)
"""Without looking for smaller examples, which takes minutes here."""

names = st.text(min_size=1, max_size=12)
floats = st.floats(allow_nan=True, allow_infinity=True)
positive = st.floats(min_value=0.0, max_value=1e30)
free = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | floats | names,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
sentences = names | st.builds(lambda words: say("{} of {}", *words), st.tuples(names, names))
places = st.builds(
    Place, step=st.none() | st.integers(-1, 9), phase=st.none() | st.sampled_from([str(each) for each in Phase]),
    name=names, slot=st.none() | names, micro=st.integers(0, 2), call=st.integers(0, 2),
    rank=st.none() | st.integers(0, 3),
)  # fmt: skip
findings = st.builds(
    Finding, code=names, label=names, severity=st.sampled_from(Severity), summary=sentences, advice=sentences,
    where=places, evidence=st.dictionaries(names, free, max_size=3), arguments=st.dictionaries(names, free, max_size=3),
    explained_by=names,
)  # fmt: skip
keys = st.builds(
    TensorKey, step=st.integers(-1, 5), phase=st.sampled_from(Phase), name=names, slot=names, micro=st.integers(0, 2),
    call=st.integers(0, 2),
)  # fmt: skip


@st.composite
def records(draw: st.DrawFn, key: TensorKey) -> TensorRecord:
    shape = tuple(draw(st.lists(st.integers(1, 9), max_size=3)))
    count = math.prod(shape)
    nans = draw(st.integers(0, count))
    stats = TensorStats(
        count=count,
        minimum=-draw(positive),
        maximum=draw(positive),
        total=draw(st.floats(-1e20, 1e20)),
        total_squares=draw(positive),
        zeros=draw(st.integers(0, count)),
        nans=nans,
        positive_infs=draw(st.integers(0, count - nans)),
        subnormals=draw(st.integers(0, count)),
    )
    return TensorRecord(
        key=key,
        order=0,
        dtype=draw(st.sampled_from(["float32", "bfloat16", "int64", "bool"])),
        shape=shape,
        stats=draw(st.none() | st.just(stats)),
        hash=draw(st.none() | st.integers(0, 2**64 - 1)),
        resolution=draw(st.floats(0, 1e-3)),
    )


@st.composite
def pairs(draw: st.DrawFn) -> Comparison:
    key = draw(keys)
    other = draw(st.just(key) | keys.map(lambda each: dataclasses.replace(each, step=key.step, phase=key.phase)))
    return Comparison(
        reference=draw(records(key)),
        candidate=draw(records(other)),
        status=draw(st.sampled_from(Status)),
        relative_l2=draw(st.none() | floats),
        unit=draw(positive),
        floor=draw(positive),
        times_floor=draw(st.none() | floats),
        limit=draw(positive),
        aspect=draw(st.sampled_from(Aspect)),
        part=draw(st.none() | floats),
    )


timelines = st.builds(
    TimelineRow, step=st.integers(0, 99), loss=floats, learning_rate=floats, loss_scale=floats, gradient_norm=floats,
    seconds=floats, skipped=st.booleans(), nonfinite=st.booleans(), micros=st.integers(1, 4), optimizer=names,
    overflow=st.booleans(),
)  # fmt: skip
magnitudes = st.builds(
    Magnitudes, dtype=names, count=st.integers(0, 99), zeros=st.integers(0, 9), subnormals=st.integers(0, 9),
    nonfinite=st.integers(0, 9), largest=floats, codes=st.lists(st.integers(0, 9), max_size=4).map(tuple),
)  # fmt: skip
pairings = st.builds(
    Pairing,
    names=st.lists(
        st.builds(
            PairedNames, names, names, st.integers(1, 9), names, st.floats(0, 1),
            by=st.lists(names, max_size=2).map(tuple),
        ),
        max_size=2,
    ).map(tuple),
    calls=st.lists(
        st.builds(
            PairedCalls, st.integers(0, 9), st.integers(0, 2), names,
            st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2).map(tuple),
            st.tuples(st.integers(0, 9), st.integers(0, 9)), st.floats(0, 1),
        ),
        max_size=2,
    ).map(tuple),
    tensors=st.lists(st.tuples(names, names), max_size=2).map(tuple),
    reference_steps=st.lists(st.integers(0, 9), max_size=2).map(tuple),
    notes=st.lists(sentences, max_size=2).map(tuple),
    shards=st.integers(0, 3),
)  # fmt: skip


@settings(max_examples=20, deadline=None, phases=QUICK)
@given(
    compared=st.lists(pairs(), max_size=5), found=st.lists(findings, max_size=3), rows=st.lists(timelines, max_size=3),
    alone=st.lists(keys, max_size=3), pairing=pairings,
    exponents=st.lists(st.builds(Exponents, keys, magnitudes, st.none() | magnitudes), max_size=2),
    flags=st.dictionaries(names, free, max_size=3), summary=sentences,
)  # fmt: skip
def test_any_comparison_comes_back_as_it_was_written(
    compared: list[Comparison], found: list[Finding], rows: list[TimelineRow], alone: list[TensorKey],
    pairing: Pairing, exponents: list[Exponents], flags: dict[str, Any], summary: str,
) -> None:  # fmt: skip
    whole = report_samples.aligned()
    result = dataclasses.replace(
        whole,
        reference=dataclasses.replace(whole.reference, flags=flags, seeds=flags),
        summary=summary,
        findings=tuple(found),
        comparisons=tuple(compared),
        only_candidate=tuple(alone),
        candidate_timeline=tuple(rows),
        pairing=pairing,
        exponents=tuple(exponents),
    )
    text = diff_json(result)

    again = saved(text)

    assert diff_json(again) == text
    assert again.comparisons == tuple(again.comparisons)
    assert [pair.candidate.key for pair in again.comparisons] == [pair.candidate.key for pair in compared]
    assert [(each.label, each.where) for each in again.findings] == [(each.label, each.where) for each in found]
    assert again.only_candidate == tuple(alone)
    assert again.pairing == pairing


@settings(max_examples=30, deadline=None, phases=QUICK)
@given(data=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_no_bytes_are_taken_for_a_result(data: bytes) -> None:
    with pytest.raises(ReportError, match=r"^Cannot read 'some\.json': .*\.$"):
        read_result(data, "some.json")


@settings(max_examples=100, deadline=None, phases=QUICK)
@given(data=st.data())
def test_a_document_with_one_value_changed_is_read_or_refused_in_words(data: st.DataObject) -> None:
    """Whatever stands in a place, the answer is a result that can be shown, or a sentence."""
    found = json.loads(diff_json(SMALL))
    place: Any = found
    while isinstance(place, (dict, list)) and place:
        step = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[step], (dict, list)) or not place[step] or data.draw(st.integers(0, 3)) == 0:
            place[step] = data.draw(free)
            break
        place = place[step]
    try:
        again = saved(json.dumps(found))
    except ReportError as error:
        assert str(error).startswith("Cannot read 'saved.json': ")  # noqa: PT017 - either is right
        return
    diff_json(again)


SMALL = dataclasses.replace(
    report_samples.equality(),
    comparisons=report_samples.equality().comparisons[:2],
    modules=(),
    reference_timeline=report_samples.timeline(2),
    candidate_timeline=(),
)


def _changed(result: DiffResult | InspectResult, *change: Any) -> str:
    """The document with the value at a path of keys changed to the last word, or left out for `...`."""
    found = json.loads(diff_json(result) if isinstance(result, DiffResult) else inspect_json(result))
    *path, last, value = change
    place = found
    for step in path:
        place = place[step]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(found)


WRONG: dict[str, tuple[tuple[Any, ...], str]] = {
    "word": (("verdict", "fine"), "'verdict' is 'fine', not one of aligned, diverged, incomparable."),
    "missing": (("summary", ...), "'summary' is missing."),
    "list": (("findings", {}), "'findings' is an object, not a list."),
    "inner": (
        ("findings", 0, "severity", "fatal"),
        "'findings[0].severity' is 'fatal', not one of error, warning, note.",
    ),
    "inner missing": (("findings", 0, "label", ...), "'findings[0].label' is missing."),
    "number": (("findings", 0, "where", "step", "3"), "'findings[0].where.step' is '3', not a whole number."),
    "true": (("counts", "paired", True), "'counts.paired' is true, not a whole number."),
    "text": (("runs", "reference", "device_name", 3), "'runs.reference.device_name' is 3, not a text."),
    "no path": (("runs", "candidate", "path", None), "'runs.candidate.path' is null, not a text."),
    "rows": (("records", "columns", "floor", [1.0]), "'records.columns.floor' has 1 rows, not 9."),
    "code": (
        ("records", "columns", "status", 0, 99),
        "'records.columns.status[0]' is 99, not the place of one of 3 words.",
    ),
    "words": (
        ("records", "dictionaries", "phase", 0, "sideways"),
        (
            "'records.dictionaries.phase[0]' is 'sideways', not one of init, input, forward, loss, backward, gradient, "
            "update, param, optimizer, scaler, rng."
        ),
    ),
    "shape": (
        ("records", "dictionaries", "reference_shape", 0, "4xx"),
        "'records.dictionaries.reference_shape[0]' is '4xx', not a shape such as '4x64x96'.",
    ),
    "hash": (
        ("records", "dictionaries", "candidate_hash", 0, "xyz"),
        "'records.dictionaries.candidate_hash[0]' is 'xyz', not a hash of 16 hexadecimal digits.",
    ),
    "length": (("records", "length", -1), "'records.length' is -1, not a number of rows."),
    "count": (
        ("records", "columns", "reference_nans", 0, 1.5),
        "'records.columns.reference_nans[0]' is 1.5, not a number of elements.",
    ),
    "sentence": (
        ("sentences", "summary", ["{", []]),
        "'sentences.summary' is no template: {.",
    ),
    "command": (("command", "guess"), "'command' is 'guess', not one of diff, inspect, checkpoint, accept."),
}
"""A change, and what is said of it."""


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_with_its_place(name: str) -> None:
    change, sentence = WRONG[name]

    with pytest.raises(ReportError) as caught:
        saved(_changed(report_samples.equality(), *change))

    assert str(caught.value) == f"Cannot read 'saved.json': {sentence} {AGAIN}"


def test_a_table_with_too_few_cells_is_refused() -> None:
    with pytest.raises(ReportError) as caught:
        saved(_changed(inspect_samples.healthy(), "tables", 0, "rows", 0, ["one"]))

    assert str(caught.value) == f"Cannot read 'saved.json': 'tables[0].rows[0]' has 1 cells, not 5. {AGAIN}"


def test_a_template_that_would_fill_the_memory_is_refused() -> None:
    tree = ["{:>9999999999}", ["x"]]

    with pytest.raises(ReportError, match=r"'sentences\.summary' is no template"):
        saved(_changed(report_samples.equality(), "sentences", "summary", tree))


def test_lists_in_lists_without_end_are_refused() -> None:
    for text in ("[" * 100_000, '{"format": "align/1", "summary": ' + "[" * 100_000 + "]" * 100_000 + "}"):
        with pytest.raises(ReportError) as caught:
            saved(text)
        assert str(caught.value) == (
            "Cannot read 'saved.json': its lists are nested too deeply. Write it again with --json."
        )


BROKEN: dict[str, tuple[bytes, str]] = {
    "empty": (b" \n", "it is empty. Write it again with --json."),
    "cut": (b'{"format": "align/1",\n "verdict": ', "it is cut off in line 2. Write it again with --json."),
    "cut in a word": (b'{"format": "ali', "it is cut off in line 1. Write it again with --json."),
    "page": (
        b"<!DOCTYPE html>",
        "it is not JSON (expecting value in line 1, column 1). Write it again with --json.",
    ),
    "bytes": (b'{"a": "\xff"}', "byte 7 is not UTF-8, as JSON is. Write it again with --json."),
    "other": (
        b'{"format": "coverage"}',
        'it is JSON, but no result of align (its "format" is not "align/1"). Name the file that --json wrote.',
    ),
    "list": (
        b"[1]",
        'it is JSON, but no result of align (its "format" is not "align/1"). Name the file that --json wrote.',
    ),
    "nan": (b'{"a": NaN}', "it holds a number that cannot be read (NaN). Write it again with --json."),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_is_no_result_is_refused_in_words(name: str) -> None:
    data, sentence = BROKEN[name]

    with pytest.raises(ReportError) as caught:
        read_result(data, "saved.json")

    assert str(caught.value) == f"Cannot read 'saved.json': {sentence}"


def test_another_version_of_the_format_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("align.reports.reading.source.__version__", "0.3.0")

    with pytest.raises(ReportError) as caught:
        saved('{"format": "align/2"}')

    assert str(caught.value) == (
        "Cannot read 'saved.json': its format is 'align/2', and align 0.3.0 reads 'align/1'. Use the align that wrote "
        "it."
    )


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(ReportError, match=r"^Cannot read 'saved\.json': it holds a number that cannot be read"):
        saved('{"format": "align/1", "counts": ' + "9" * 5000 + "}")


def test_a_byte_order_mark_before_the_document_is_no_fault() -> None:
    text = diff_json(report_samples.aligned())

    assert diff_json(read_result(b"\xef\xbb\xbf" + text.encode(), "saved.json")) == text  # type: ignore[arg-type]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    capture = tmp_path / "run.h5"
    capture.write_bytes(b"\x89HDF\r\n\x1a\n and more")
    wanted: dict[Path, Callable[[str], str]] = {
        tmp_path / "none.json": lambda path: (
            f"Cannot read '{path}': there is no such file. Name the file that --json wrote, or - for standard input."
        ),
        tmp_path: lambda path: (
            f"Cannot read '{path}': it is a folder. Name the file that --json wrote, or - for standard input."
        ),
        capture: lambda path: (
            f"Cannot read '{path}': it is an HDF5 file, such as a capture, and no saved result. `align inspect {path}` "
            "looks at a capture; `align report` reads what --json wrote."
        ),
    }
    for path, sentence in wanted.items():
        with pytest.raises(ReportError) as caught:
            read_file(str(path))
        assert str(caught.value) == sentence(str(path))


def test_reading_changes_nothing_in_the_document() -> None:
    result = inspect_samples.nan()
    found = inspect_document(result)
    before = copy.deepcopy(found)

    again: Result = as_saved(result, found)

    assert found == before
    assert again is not result


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("verdict", "pass", "'verdict' is 'pass', but the criteria come to 'fail'"),
        ("steps", 7, "'curves' are not of 7 rising steps"),
    ],
    ids=["verdict", "steps"],
)
def test_a_verdict_that_its_criteria_do_not_come_to_is_refused(
    tmp_path: Path, key: str, value: object, sentence: str
) -> None:
    saved = accept_document(ACCEPTANCES["failing"]())
    path = tmp_path / "saved.json"
    path.write_text(json.dumps({**saved, key: value}), encoding="utf-8")
    with pytest.raises(ReportError) as found:
        read_file(str(path))
    assert str(found.value).startswith(f"Cannot read '{path}': {sentence}. It was changed by hand")
