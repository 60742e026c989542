"""The acceptance document as Markdown, for issue trackers and merge requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from align.reports.accept_phrases import accept_language
from align.reports.accept_view import DECISIONS, SIGNERS, AcceptSheet, ComparedRow, Line, make_sheet
from align.reports.language import ENGLISH, Language
from align.reports.markdown_parts import Columns, command, finished, head, section, titled, values
from align.reports.markdown_text import block, code, escaped, listed, sentence, table

if TYPE_CHECKING:
    from align.acceptance_records import AcceptResult

OF_CRITERIA = Columns(right=frozenset({0, 2, 3}))


def accept_markdown(result: AcceptResult, language: Language = ENGLISH) -> str:
    """An acceptance: the verdict, what was compared, criteria, deviations, and lines to sign on."""
    t = accept_language(language)
    page = make_sheet(result, t)
    lines = [f"## {escaped(t['document_title'])}", "", *_about(page, t)]
    lines += head(page.badge, code(page.document), page.sentence, "", t)
    lines += [escaped(page.counts), "", *listed(escaped(each) for each in page.simulated)]
    lines += [titled(t["accept_not_covered"], sentence(page.uncovered), t), ""]
    lines += section(t["document_compared"], _compared(page, t))
    lines += section(t["document_criteria"], _criteria(page, t))
    deviations = listed(map(sentence, page.deviations)) or [escaped(t["document_no_deviation"]), ""]
    lines += section(t["document_deviations"], deviations)
    lines += section(t["accept_notes"], listed(map(sentence, page.notes)))
    lines += section(t["document_limits"], listed(map(sentence, page.limits)))
    lines += section(t["document_unseen"], listed(map(sentence, page.unseen)))
    lines += section(t["document_signatures"], _signatures(page, t))
    options = ["--policy", result.policy.path or result.policy.name]
    for path in result.floors:
        options += ["--floor", path]
    again = command("align", "accept", result.reference.path, result.candidate.path, *options)
    lines += section(t["markdown_reproduce"], block([again]))
    return finished(lines, t)


def _about(page: AcceptSheet, t: Language) -> list[str]:
    told = [(t["document_model"], page.model), (t["document_project"], page.project), (t["document_made"], page.made)]
    return listed(titled(title, escaped(text), t) for title, text in told if text)


def _compared(page: AcceptSheet, t: Language) -> list[str]:
    rows = [_compared_row(row) for row in page.compared]
    policy = f"{escaped(page.policy)}, sha256 {code(''.join(page.policy_hash), cell=True)}"
    titles = ["", escaped(t["accept_reference"]), escaped(t["accept_candidate"])]
    return table(titles, [*rows, (escaped(t["document_policy"]), policy, "")])


def _compared_row(row: ComparedRow) -> tuple[str, str, str]:
    sides = (row.reference, row.candidate)
    ours, theirs = (code(side, cell=True) if row.hashed else escaped(side) for side in sides)
    return f"{'&ne; ' if row.differs else ''}{escaped(row.title)}", ours, theirs


def _criteria(page: AcceptSheet, t: Language) -> list[str]:
    """The missed ones first, then all in the order of the policy, then what is said of each."""
    cells = [_cells(line) for line in page.lines]
    titles = [t[f"accept_col_{name}"] for name in ("number", "criterion", "measured", "limit")]
    told = listed(titled(_named(line), sentence(line.told), t) for line in page.lines if line.told)
    return [
        *listed(titled(_named(line), sentence(_missed(line, t)), t) for line in page.failing),
        escaped(t["document_criteria_how"]),
        "",
        *values([*titles, t["document_source"], t["accept_col_result"]], cells, t, OF_CRITERIA),
        *told,
    ]


def _cells(line: Line) -> tuple[str, ...]:
    name = f"{line.name} *" if line.required else line.name
    return line.number, name, line.measured, line.limit, line.source, line.result


def _named(line: Line) -> str:
    return f"{line.number}. {line.name}"


def _missed(line: Line, t: Language) -> str:
    return t["document_missed_line"].format(measured=line.measured, limit=line.limit)


def _signatures(page: AcceptSheet, t: Language) -> list[str]:
    titles = ["", *(escaped(t[f"document_{name}"]) for name in ("name", "signature", "date"))]
    rows = [(escaped(t[f"document_{signer}"]), "", "", "") for signer in SIGNERS]
    return [
        escaped(t["document_signed"].format(document=page.document, result=page.badge)),
        "",
        *table(titles, rows),
        *listed(f"[ ] {escaped(t[f'document_{decision}'])}" for decision in DECISIONS),
        escaped(t["markdown_colon"].format(title=t["document_conditions_text"])),
        "",
    ]
