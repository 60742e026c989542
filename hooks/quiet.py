"""Run our own tensor code unseen: without grad, without the user's modes, drawing no random number."""

from __future__ import annotations

from contextlib import ExitStack
from types import TracebackType

import torch
from torch.utils._python_dispatch import _disable_current_modes


class Quiet:
    """A context that may be entered again inside itself.

    Autocast stays on: none of the operators that we use is on its lists, except sums that it would lift to the
    float32 they are in already.
    """

    def __init__(self) -> None:
        self._outer: list[tuple[bool, ExitStack]] = []

    def __enter__(self) -> None:
        enabled = torch.is_grad_enabled()
        stack = ExitStack()
        stack.enter_context(torch._C.DisableTorchFunction())
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(mode=False))
        if torch._C._len_torch_dispatch_stack():
            stack.enter_context(_disable_current_modes())
        self._outer.append((enabled, stack))
        torch._C._set_grad_enabled(False)  # noqa: FBT003  torch's own signature

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enabled, stack = self._outer.pop()
        stack.close()
        torch._C._set_grad_enabled(enabled)
