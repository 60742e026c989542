"""Whether a candidate's training may be accepted: policies, criteria, and the judgement of two runs by them."""

from align.acceptance.case import OperatorResult
from align.acceptance.judging import Extras, accept
from align.acceptance.operators import read_operators
from align.acceptance.policy import Policy
from align.acceptance.policy_reading import built_in_policies, policy_text, read_policy

__all__ = [
    "Extras",
    "OperatorResult",
    "Policy",
    "accept",
    "built_in_policies",
    "policy_text",
    "read_operators",
    "read_policy",
]
