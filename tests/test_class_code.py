"""Whose code a module is, as a capture notes it."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from align.hooks.class_code import code_facts, merged


def noised(x: torch.Tensor) -> torch.Tensor:
    return x + torch.randn_like(x)


class Plain(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.twice(x)

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


class ByHelper(Plain):
    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return noised(x)


class ByKeyword(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.scaled_dot_product_attention(x, x, x, dropout_p=0.1)


class Sized(nn.Linear):
    """Draws its parameters at random, and nothing in its forward."""


def test_the_code_of_torch_has_one_name() -> None:
    plain: tuple[type[nn.Module], ...] = (nn.Linear, nn.GELU, nn.LayerNorm, nn.Softmax, nn.Conv2d, nn.Embedding)
    for kind in plain:
        assert code_facts(kind) == {"code": "torch", "random": False}
    random: tuple[type[nn.Module], ...] = (nn.Dropout, nn.RReLU, nn.MultiheadAttention)
    for kind in random:
        assert code_facts(kind) == {"code": "torch", "random": True}


def test_code_of_ones_own_has_the_digest_of_its_file() -> None:
    facts = [code_facts(kind) for kind in (Plain, ByHelper, ByKeyword, Sized)]
    assert len({each["code"] for each in facts}) == 1
    assert facts[0]["code"] not in {"", "torch"}
    assert [each["random"] for each in facts] == [False, True, True, False]


def test_a_forward_that_is_put_in_from_elsewhere_is_other_code() -> None:
    class Patched(nn.GELU):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002 - as torch names it
            return noised(input)

    assert code_facts(Patched)["code"] != "torch"


def test_code_that_cannot_be_read_is_not_known() -> None:
    made = type("Made", (nn.Module,), {"__module__": "no.such.module", "forward": Plain.forward})
    assert code_facts(made)["code"] == ""


def test_classes_of_one_name_are_known_where_they_are_one_code() -> None:
    one, other = {"code": "a", "random": False}, {"code": "b", "random": True}
    assert merged(None, one) == one
    assert merged(one, one) == one
    assert merged(one, other) == {"code": "", "random": True}
