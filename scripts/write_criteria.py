"""Write the table of criteria in docs/accept.md from the default policy: `python scripts/write_criteria.py`."""

from __future__ import annotations

from pathlib import Path

from align.acceptance import Policy, read_policy
from align.acceptance.policy import Need, Setting
from align.acceptance.policy_keys import AT_LEAST, SHARE
from align.wording import share

PAGE = Path(__file__).resolve().parents[1] / "docs" / "accept.md"
OPEN, CLOSE = "<!-- criteria -->", "<!-- /criteria -->"
NEEDS = {Need.ALWAYS: "yes", Need.WHEN_MEASURED: "if measured", Need.NEVER: "no"}


def main() -> None:
    """Replace what stands between the markers."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), read_policy()), encoding="utf-8")


def page(text: str, policy: Policy) -> str:
    """The page with the table of a policy."""
    before, _, rest = text.partition(OPEN)
    _, _, after = rest.partition(CLOSE)
    return f"{before}{OPEN}\n\n{table(policy)}\n\n{CLOSE}{after}"


def table(policy: Policy) -> str:
    """The criteria of a policy with their limits and where these are from."""
    rows = [
        f"| {number} | `{each.code}` | {_limit(each)} | {NEEDS[each.need]} | {each.source or '-'} |"
        for number, each in enumerate(policy.settings, 1)
    ]
    return "\n".join(["| no | criterion | limit | required | source of the limit |", "|---|---|---|---|---|", *rows])


def _limit(setting: Setting) -> str:
    if setting.limit is None:
        return "of the file" if setting.form.limit is None else "none"
    sign = ">=" if setting.form.way == AT_LEAST else "<="
    return f"{sign} {share(setting.limit) if setting.form.limit is SHARE else f'{setting.limit:g}'}"


if __name__ == "__main__":
    main()
