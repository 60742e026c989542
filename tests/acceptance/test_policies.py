"""Policies: what the built-in ones say, and a whole sentence for everything that can be wrong with one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from align.acceptance import built_in_policies, policy_text, read_policy
from align.acceptance.judging import CRITERIA
from align.acceptance.policy import Need
from align.acceptance.policy_keys import FORMS
from align.errors import PolicyError

NAMES = ["default", "mindformers", "modelzoo-2pct", "strict-fp32"]
KNOWN_TOP = "name, title, extends, minimum_steps, minimum_source, loss, floor, criteria"
KNOWN_BIAS = "required, limit, source, use, share, deviations, remark, remark_deviations"
CODES = ", ".join(FORMS)


def written(folder: Path, text: str, name: str = "policy.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_built_in_policies_are_these() -> None:
    assert built_in_policies() == NAMES


def test_every_criterion_of_a_policy_can_be_judged() -> None:
    assert list(CRITERIA) == list(FORMS)


@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_limit_has_a_source(name: str) -> None:
    policy = read_policy(name)
    assert policy.name == name
    assert policy.path == ""
    assert policy.text == policy_text(name)
    assert policy.sha256 == hashlib.sha256(policy.text.encode()).hexdigest()
    assert policy.minimum_source
    assert [each.code for each in policy.settings if each.limit is not None and len(each.source) < 20] == []


def test_default_has_all_criteria_in_the_order_of_causes() -> None:
    assert [each.code for each in read_policy().settings] == list(FORMS)


def test_default_limits_are_the_published_and_measured_ones() -> None:
    limits = {each.code: each.limit for each in read_policy().settings}
    assert limits == {
        "equal-start": 0, "non-finite": 0, "shift": 0, "data-order": 0.3, "first-loss": 0.005, "early-window": 0.01,
        "spikes": 1, "divergence": 0.01, "mean-error": 0.01, "worst-window": 0.02, "bias": 0.005, "gradient-norm": 0.1,
        "tensors": 7, "operators": None, "step-time": None, "tokens-per-second": None,
    }  # fmt: skip
    assert (read_policy().minimum_steps, read_policy().smallest, read_policy().floor_times) == (1000, 0.05, 2.5)


def test_strict_extends_default() -> None:
    strict, default = read_policy("strict-fp32"), read_policy()
    assert [each.code for each in strict.settings] == [each.code for each in default.settings]
    first = strict.setting("first-loss")
    assert first is not None
    assert (first.limit, first.need) == (1e-5, Need.ALWAYS)


def test_a_policy_of_ones_own_changes_one_limit_and_leaves_one_out(tmp_path: Path) -> None:
    text = (
        'extends = "default"\nname = "ours"\n[criteria.mean-error]\nlimit = 0.004\nsource = "project limit"\n'
        "[criteria.spikes]\nuse = false\n[criteria.step-time]\nrequired = true\nlimit = 1.2\nsource = 'contract, 4.2'\n"
    )
    policy = read_policy(written(tmp_path, text))
    assert policy.name == "ours"
    assert policy.path == str(tmp_path / "policy.toml")
    assert [each.code for each in policy.settings] == [code for code in FORMS if code != "spikes"]
    changed, base = policy.setting("mean-error"), read_policy().setting("mean-error")
    assert changed is not None
    assert base is not None
    assert (changed.limit, changed.source, changed.need) == (0.004, "project limit", base.need)
    assert policy.setting("spikes") is None


def test_a_policy_may_extend_one_beside_it(tmp_path: Path) -> None:
    written(tmp_path, 'extends = "default"\n[floor]\ntimes = 3\n', "base.toml")
    policy = read_policy(written(tmp_path, 'extends = "base.toml"\n[criteria.bias]\nremark = 0.001\n'))
    assert policy.floor_times == 3
    bias = policy.setting("bias")
    assert bias is not None
    assert (bias.limit, bias.numbers["remark"]) == (0.005, 0.001)


def test_a_policy_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_bytes(b'\xef\xbb\xbfextends = "default"\n')
    assert read_policy(str(path)).minimum_steps == 1000


WHOLE = "minimum_steps = 100\nminimum_source = 'ours'\n"
EXTENDS = 'extends = "default"\n'
PROBLEMS = {
    "not TOML": (
        "limit = = 1",
        (
            "it is not valid TOML: Invalid value (at line 1, column 9). `align accept --show-policy default` prints "
            "one to start from."
        ),
    ),
    "unknown key": (
        "minimum_step = 100",
        f"'minimum_step' is not known; did you mean 'minimum_steps'? Known are {KNOWN_TOP}.",
    ),
    "unknown key, nothing near": ("xyz = 1", f"'xyz' is not known. Known are {KNOWN_TOP}."),
    "no criteria": (
        WHOLE,
        "it has no criteria. Write 'extends = \"default\"', or tables such as [criteria.bias].",
    ),
    "unknown criterion": (
        f"{WHOLE}[criteria.mean-eror]\nlimit = 1\n",
        f"'criteria.mean-eror' is not a criterion; did you mean 'mean-error'? Known are {CODES}.",
    ),
    "criterion is no table": (
        f"{EXTENDS}criteria.bias = 3\n",
        "'criteria.bias' is the number 3, not a table. Write [criteria.bias] above its keys.",
    ),
    "criteria are no table": (
        f"{EXTENDS}criteria = 'all'\n",
        "'criteria' is the text \"all\", not a table. Write [criteria] above its keys.",
    ),
    "unknown key of a criterion": (
        f"{EXTENDS}[criteria.bias]\ndeviation = 2\n",
        f"in [criteria.bias], 'deviation' is not known; did you mean 'deviations'? Known are {KNOWN_BIAS}.",
    ),
    "missing limit": (
        f"{WHOLE}[criteria.bias]\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is missing. Write a number, allowed: 0 to 100.",
    ),
    "missing source": (
        f"{WHOLE}[criteria.bias]\nlimit = 0.1\n",
        (
            "in [criteria.bias], 'limit' has no 'source'. Say where it is from, such as source = \"project "
            'limit, agreed 2026-01".'
        ),
    ),
    "a limit of another source": (
        f"{EXTENDS}[criteria.bias]\nlimit = 0.1\n",
        (
            "in [criteria.bias], 'limit' has no 'source'. Say where it is from, such as source = \"project "
            'limit, agreed 2026-01".'
        ),
    ),
    "minimum without source": (
        f"{EXTENDS}minimum_steps = 10\n",
        (
            "'minimum_steps' has no 'minimum_source'. Say where it is from, such as minimum_source = \"project "
            'limit, agreed 2026-01".'
        ),
    ),
    "no minimum": (
        "[criteria.operators]\nrequired = true\n",
        "'minimum_steps' is missing. Write how many steps an acceptance needs, such as 1000.",
    ),
    "text for a number": (
        f"{EXTENDS}[criteria.bias]\nlimit = '1 %'\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is the text \"1 %\", not a number. Write it without quotes.",
    ),
    "true for a number": (
        f"{EXTENDS}[criteria.bias]\nlimit = true\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is true, not a number. Write it without quotes.",
    ),
    "list for a number": (
        f"{EXTENDS}[criteria.bias]\nlimit = [1]\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is a list, not a number. Write it without quotes.",
    ),
    "negative": (
        f"{EXTENDS}[criteria.bias]\nlimit = -0.1\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is -0.1, which is outside of what is allowed: 0 to 100.",
    ),
    "nan": (
        f"{EXTENDS}[criteria.bias]\nlimit = nan\nsource = 'ours'\n",
        "in [criteria.bias], 'limit' is nan, which is outside of what is allowed: 0 to 100.",
    ),
    "not whole": (
        f"{EXTENDS}[criteria.spikes]\nlimit = 1.5\nsource = 'ours'\n",
        "in [criteria.spikes], 'limit' is 1.5, not a whole number.",
    ),
    "endless steps": (
        f"{EXTENDS}minimum_steps = inf\nminimum_source = 'ours'\n",
        "'minimum_steps' is inf, not a whole number.",
    ),
    "number for a text": (
        f"{EXTENDS}[criteria.bias]\nlimit = 0.1\nsource = 5\n",
        "in [criteria.bias], 'source' is the number 5, not a text. Write it in quotes.",
    ),
    "required is odd": (
        f"{EXTENDS}[criteria.bias]\nrequired = 'yes'\n",
        'in [criteria.bias], \'required\' is the text "yes". Write true, false or "when measured".',
    ),
    "use is odd": (
        f"{EXTENDS}[criteria.bias]\nuse = 0\n",
        "in [criteria.bias], 'use' is the number 0. Write true or false.",
    ),
    "required without limit": (
        f"{EXTENDS}[criteria.step-time]\nrequired = true\n",
        "in [criteria.step-time], 'required' is true, but there is no 'limit' to be met. Write one, with its source.",
    ),
    "limit of operators": (
        f"{EXTENDS}[criteria.operators]\nlimit = 2\nsource = 'ours'\n",
        "in [criteria.operators], 'limit' is not taken: the limits are those of the file of operators.",
    ),
    "unknown key of the loss": (
        f"{EXTENDS}[loss]\nsmall = 0.1\n",
        "in [loss], 'small' is not known; did you mean 'smallest'? Known are smallest.",
    ),
    "share above one": (
        f"{EXTENDS}[loss]\nsmallest = 5\n",
        "in [loss], 'smallest' is 5, which is outside of what is allowed: 0 to 1.",
    ),
    "floor lowers": (
        f"{EXTENDS}[floor]\ntimes = 0.5\n",
        "in [floor], 'times' is 0.5, which is outside of what is allowed: 1 to 1000000.",
    ),
    "extends itself": (
        'extends = "policy.toml"\n',
        (
            "more than 8 policies extend one another, or one extends itself through 'policy.toml'. Let it extend a "
            "built-in policy."
        ),
    ),
}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_what_is_wrong_with_a_policy_is_said(problem: str, tmp_path: Path) -> None:
    text, sentence = PROBLEMS[problem]
    path = written(tmp_path, text)
    with pytest.raises(PolicyError, match=f"^{re.escape(f'''Cannot read the policy '{path}': {sentence}''')}$"):
        read_policy(path)


def test_a_policy_that_is_not_there(tmp_path: Path) -> None:
    sentence = (
        "Cannot find the policy 'mindformer': there is no such file, and the built-in policies are default, "
        "mindformers, modelzoo-2pct, strict-fp32; did you mean 'mindformers'? `align accept --show-policy "
        "default` prints one to start from."
    )
    with pytest.raises(PolicyError, match=f"^{re.escape(sentence)}$"):
        read_policy("mindformer")
    base = written(tmp_path, 'extends = "none.toml"\n')
    with pytest.raises(PolicyError, match=re.escape(f"Cannot find the policy '{tmp_path / 'none.toml'}'")):
        read_policy(base)


def test_a_policy_that_cannot_be_read(tmp_path: Path) -> None:
    sentence = (
        f"Cannot read the policy '{tmp_path}': Is a directory. Name a TOML file, or one of default, mindformers, "
        "modelzoo-2pct, strict-fp32."
    )
    with pytest.raises(PolicyError, match=f"^{re.escape(sentence)}$"):
        read_policy(str(tmp_path))
    path = tmp_path / "policy.toml"
    path.write_bytes(b"name = '\xff'")
    sentence = f"Cannot read the policy '{path}': byte 8 is not UTF-8. Save the file as UTF-8 text."
    with pytest.raises(PolicyError, match=f"^{re.escape(sentence)}$"):
        read_policy(str(path))
