"""Run our own tensor code unseen: without grad, without the user's modes, drawing no random number."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from types import TracebackType

import torch
from torch.utils._python_dispatch import _disable_current_modes


def grad_mode() -> bool:
    """Whether gradients are recorded now; a mode of the user does not see the question."""
    with torch._C.DisableTorchFunction():
        return torch.is_grad_enabled()


def transformed() -> bool:
    """Whether code is being traced or transformed (functorch): what runs now are no values of the training."""
    return torch._C._functorch.peek_interpreter_stack() is not None or bool(torch.jit.is_tracing())


class Quiet:
    """A context that may be entered again inside itself.

    Autocast stays on: none of the operators that we use is on its lists, except sums that it would lift to the
    float32 they are in already.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    @property
    def _outer(self) -> list[tuple[bool, ExitStack, ExitStack]]:
        """What was set outside, per thread: the backward of a device runs in a thread of its own."""
        outer: list[tuple[bool, ExitStack, ExitStack]] | None = getattr(self._local, "outer", None)
        if outer is None:
            outer = self._local.outer = []
        return outer

    def __enter__(self) -> None:
        functions, modes = ExitStack(), ExitStack()
        functions.enter_context(torch._C.DisableTorchFunction())
        enabled = torch.is_grad_enabled()
        if torch.is_inference_mode_enabled():
            modes.enter_context(torch.inference_mode(mode=False))
        if torch._C._len_torch_dispatch_stack():
            modes.enter_context(_disable_current_modes())
        self._outer.append((enabled, functions, modes))
        torch._C._set_grad_enabled(False)  # noqa: FBT003  torch's own signature

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        enabled, functions, modes = self._outer.pop()
        modes.close()
        torch._C._set_grad_enabled(enabled)
        functions.close()
