"""The recorder: everything that watches one run, opened and closed as one thing."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from types import TracebackType

import torch
from torch import nn

from align.capture_file import CaptureWriter
from align.capture_request import Requests, drop_request
from align.errors import CaptureError, CaptureFileError
from align.hooks.batches import BatchWatch
from align.hooks.boundary import Boundary, TrainingThread
from align.hooks.calls import CallWatch, failed_module
from align.hooks.checkpoints import CheckpointWatch
from align.hooks.clipping import ClipWatch
from align.hooks.compiling import CompilerSwitch
from align.hooks.facts import FactLog
from align.hooks.fallbacks import FallbackWatch
from align.hooks.generators import see_generators
from align.hooks.gradients import GradientWatch
from align.hooks.initial import InitialState
from align.hooks.loads import LoadWatch
from align.hooks.losses import LossWatch
from align.hooks.optimizers import MAXIMUM_SETTINGS, OptimizerWatch, settings_of
from align.hooks.options import read_options
from align.hooks.overflow import OverflowFlag
from align.hooks.patches import Patches
from align.hooks.perturb import Perturbation
from align.hooks.progress import Progress
from align.hooks.quiet import grad_mode
from align.hooks.replay import Replay
from align.hooks.replay_options import ReplayOptions
from align.hooks.roots import NO_MODULE, Root, Roots, living_optimizers
from align.hooks.run_info import describe_run, ended_run, flags_now
from align.hooks.same_start import SameStart
from align.hooks.scalers import ScalerWatch
from align.hooks.start_control import StartControl
from align.hooks.steps import StepClock
from align.hooks.timeline import Number, Timeline, number_from
from align.hooks.trace import Sighting, Trace
from align.records import Phase, RunInfo
from align.sentences import say

DEEPER = 2
"""By how much a module call is deeper for being watched, at most; the recursion limit is raised by as much."""

_active: list[Recorder] = []


SETTINGS_EVERY = 50
"""How often the settings of optimizers are read outside the captured steps: schedules may change them."""


class StopCapture(SystemExit):
    """Ends the training script after the last captured step; exit code 0."""


class Recorder:
    """Records a training run into a capture file while it is open.

    >>> with align.Recorder("run.h5", steps="0:3"):      # doctest: +SKIP
    ...     train()

    `steps` are the steps to capture (the first three by default), of which `every` takes each n-th; `detail` is
    stats, sketch or tensors; `modules` are globs on module names (all by default), `phases` the phases to keep.
    `keep` are values that are kept whatever the detail: init, batches. `exponents` counts the exponents of all
    floats, not only those of 16-bit gradients. `max_size` (bytes, or a text such as 2GB) is the size of the file
    beyond which no values are kept. Raises CaptureError where the path cannot be written or another recorder is
    open, and UsageError for options it cannot read. `same_start` says what makes the run start as another one;
    StartRefused, a SystemExit, ends it where it would start from other weights. `perturb` is a seed: initial weights
    and float inputs are moved by the rounding of the working precision. All else that goes wrong afterwards never
    stops the training: it is counted, kept in the file and in `troubles`. `say` is given lines of progress.
    """

    def __init__(  # noqa: PLR0913  one keyword for each option of the command
        self,
        path: str | Path,
        *,
        steps: str | None = None,
        every: int = 1,
        detail: str = "sketch",
        modules: Iterable[str] = (),
        phases: Iterable[str] = (),
        keep: Iterable[str] = (),
        exponents: bool = False,
        max_size: int | str | None = None,
        stop: bool = False,
        force: bool = False,
        run: RunInfo | None = None,
        same_start: SameStart | None = None,
        perturb: int | None = None,
        replay: ReplayOptions | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        self.path = Path(path)
        self.options = read_options(
            steps=steps, every=every, detail=detail, modules=modules, phases=phases, keep=keep, exponents=exponents,
            max_size=max_size, perturb=perturb,
        )  # fmt: skip
        self.clock = StepClock(self.options.choice)
        self.stop = stop
        self.closed = True
        self.gave_up = False
        self._boundary = Boundary(self)
        self.guarded = self._boundary.guarded
        self.troubles = self._boundary.troubles
        self.thread = TrainingThread(self)
        self.in_training_thread = self.thread.here
        self.joins_training = self.thread.joins
        self.compile_seen = False
        self._force = force
        self._same_start = same_start or SameStart()
        self._replay_options = replay
        self._progress = Progress(say, self.options.steps) if say is not None else None
        self._wanted: dict[str, bool] = {}
        self._begun = False
        self._attempted: set[int] = set()
        self._steps_written: list[int] = []
        self.run_info = replace(
            run or RunInfo(),
            detail=str(self.options.detail),
            phases=tuple(str(phase) for phase in self.options.phases),
            steps_requested=self.options.steps,
            modules_requested=self.options.modules,
            kept=tuple(sorted(self.options.keep)),
            same_start=self._same_start.facts(),
            perturbed={} if perturb is None else {"seed": perturb},
            process_id=os.getpid(),
            host=socket.gethostname(),
        )

    # ---- opening and closing

    def __enter__(self) -> Recorder:
        if hasattr(self, "writer"):
            raise CaptureError(
                say("Cannot record into '{}' again: this recorder was closed. Make a new one.", self.path)
            )
        if _active:
            raise CaptureError(
                say("Cannot record into '{}': '{}' is being recorded. Close it first.", self.path, _active[0].path)
            )
        self.start = StartControl(self._same_start, self.path, self.note_trouble)
        self.perturbation = Perturbation(self, self.options.perturb)
        self.run_info = describe_run(self.run_info)
        self.writer = CaptureWriter(self.path, self.run_info, force=self._force, max_bytes=self.options.max_size)
        drop_request(self.path)
        self._requests = Requests(self.path)
        self.facts = FactLog()
        self.trace = Trace(self.writer, self.options, self.facts, self.note_trouble)
        self.replay = self.trace.replay = Replay(self, self._replay_options) if self._replay_options else None
        self.initial = InitialState(self)
        self.roots = Roots()
        self.timeline = Timeline(self.writer)
        self._make_watches()
        self.start.begin()
        self.fallbacks = FallbackWatch()
        self.fallbacks.open()
        self.overflow = OverflowFlag()
        self._patches = Patches(self)
        self._patches.install()
        self.perturbation.install()
        if self.replay is not None:
            self.replay.install()
        for optimizer in living_optimizers():
            self.roots.add_optimizer(optimizer)
        self._boundary.process = os.getpid()
        self._compiling = CompilerSwitch()
        self._recursion_limit = sys.getrecursionlimit()
        sys.setrecursionlimit(self._recursion_limit * DEEPER)
        _active.append(self)
        self.closed = False
        return self

    def _make_watches(self) -> None:
        """What looks at one kind of event each."""
        self.calls = CallWatch(self)
        self.batches = BatchWatch(self, self.start.batches)
        self.checkpoints = CheckpointWatch(self)
        self.gradients = GradientWatch(self)
        self.optimizers = OptimizerWatch(self)
        self.scalers = ScalerWatch(self)
        self.clips = ClipWatch(self)
        self.loads = LoadWatch(self)
        self.losses = LossWatch(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(error)

    def close(self, error: BaseException | None = None) -> None:
        """Write what is finished, take all hooks away and say in the file how the run ended."""
        if self.closed and self not in _active:
            return
        if self._boundary.ours:
            self.guarded(self._finish)
            self.guarded(self.start.finish, self._without_module)
        if self.replay is not None:
            self.replay.close()
        self._patches.remove()
        self.perturbation.remove()
        self.start.remove()
        self._compiling.restore()
        sys.setrecursionlimit(self._recursion_limit)
        _active.remove(self)
        was_open, self.closed = not self.closed, True
        if not self._boundary.ours:
            return
        drop_request(self.path)
        replayed = self.replay.facts() if self.replay is not None else {}
        self.run_info = replace(
            self.run_info, same_start={**self.start.facts(), **replayed}, perturbed=self.perturbation.facts()
        )
        if was_open:
            failed_in = self.calls.failed_in or self.roots.name_of(failed_module(error))
            self.run_info = ended_run(
                self.run_info, error, failed_in=failed_in, steps_seen=self.clock.step, notes=self.notes()
            )
            self._write_end()

    def _write_end(self) -> None:
        try:
            self.writer.close(self.run_info)
        except CaptureFileError as error:
            self.troubles[str(error)] += 1

    def _finish(self) -> None:
        self.trace.measurements.fetch()
        if self.clock.attempted:
            self._close_step()
        self.fallbacks.close()
        self.run_info = self._learned(self.run_info)
        self.timeline.write(wait=True)
        self.writer.append_modules(list(self.calls.module_facts.values()))

    def notes(self) -> tuple[str, ...]:
        """The troubles met, each once with how often."""
        return self._boundary.notes()

    def note_trouble(self, text: str) -> None:
        """Keep a trouble for the file and the last line."""
        self.troubles[text] += 1

    def give_up(self, error: CaptureFileError) -> None:
        """The file cannot be written any more: close it with what is finished; training goes on."""
        self.troubles[str(error)] += 1
        self.closed = self.gave_up = True
        self.run_info = replace(
            self.run_info,
            outcome=f"the capture ended in step {self.clock.step}, the run went on",
            notes=self.notes(),
            steps_seen=self.clock.step,
        )
        self._write_end()

    # ---- what the watches ask

    @property
    def recording(self) -> bool:
        """Whether the step of now is captured."""
        return not self.closed and self.clock.wanted

    @property
    def empty(self) -> bool:
        """Whether the run never came to a step, so that the file holds nothing but how it began."""
        return not self._steps_written and not self.clock.step and not self.gave_up

    def unmatched_modules(self) -> list[str]:
        """The globs of `modules` that matched no name, once a step was captured."""
        if not self._steps_written:
            return []
        return self.options.unmatched(self._wanted)

    @property
    def steps_written(self) -> list[int]:
        """The steps that are in the file."""
        return list(self._steps_written)

    def wants(self, name: str) -> bool:
        """Whether records of this module are kept."""
        if not self.options.modules:
            return True
        known = self._wanted.get(name)
        if known is None:
            known = self._wanted[name] = self.options.matches(name)
        return known

    def owner_of(self, parameter: torch.Tensor) -> tuple[str, str]:
        """The owning module and local name of a parameter; `<parameters>` for one of no known module."""
        return self.roots.owner(parameter)

    @property
    def step_before_captured(self) -> bool:
        """Whether the step before this one is in the file."""
        return bool(self._steps_written) and self._steps_written[-1] == self.clock.step - 1

    def load_initial(self, root: Root) -> None:
        """Give a root its initial values from another capture, where that was asked for."""
        self.start.load(root, self.owner_of)
        self.perturbation.move_weights(root)

    def _without_module(self) -> int:
        """How many parameters of optimizers belong to no module that was seen."""
        return sum(self.roots.owner(parameter)[0] == NO_MODULE for parameter in self.roots.optimized())

    def tap(self, name: str, tensor: torch.Tensor) -> None:
        """Record a tensor that no hook can see, as the output of a module of this name."""
        if self.recording and self.in_training_thread():
            self.guarded(self.calls.tap, name, tensor)

    def _note_device(self, parameter: torch.Tensor | None) -> None:
        if parameter is None:
            return
        facts = flags_now(parameter.device.type)
        facts["flags"] |= self.run_info.flags
        self.run_info = replace(self.run_info, parameters_on=parameter.device.type, **facts)
        self.writer.update_run(self.run_info)

    # ---- what happens in the run

    def trains_now(self) -> bool:
        """Whether a forward that runs now is one of training: with gradients, or in a checkpoint that repeats it."""
        return grad_mode() or self.checkpoints.trains

    def outermost_call_begins(self, module: nn.Module) -> None:
        """A training forward closes the step in which an attempt was made and begins the next one."""
        if self.closed or not (self.clock.attempted or not self._begun or self.initial.due):
            return
        if not self.trains_now():
            if self.initial.due:
                self.guarded(self._see_teacher, module)
            return
        root = self.guarded(self.roots.resolve, module)
        if root is not None and not root.trainable and self.initial.due:
            self.guarded(self._see_teacher, module)
        if root is None or not root.trainable or not self.joins_training():
            return
        if self.clock.attempted:
            self._roll_over()
        if self.initial.due:
            self.guarded(self._see_initial, root)
            self.start.check()  # outside the guard: a run that starts from other weights than it should must not go on
        if not self._begun:
            self.guarded(self._step_begins)

    def _see_initial(self, root: Root) -> None:
        if not self.run_info.parameters_on:
            self._note_device(next(iter(_parameters(root)), None))
            for adopted in self.roots.adopt():
                self.initial.see(adopted)
        self.initial.see(root)

    def _see_teacher(self, module: nn.Module) -> None:
        """A module without trained parameters takes part in the first step: what it starts from matters too."""
        root = self.roots.resolve(module)
        if not root.trainable and root.owners:
            self.initial.see(root)

    def _step_begins(self) -> None:
        self._begun = True
        if self.recording and Phase.RNG in self.trace.phases:
            see_generators(self.trace, self.run_info.parameters_on or "cpu")

    def backward_begins(self, tensors: list[torch.Tensor]) -> None:
        """A top-level backward begins; it belongs to a new step if an attempt was made before it."""
        if self.clock.attempted:
            self._roll_over()
        self.thread.in_backward = True
        self.guarded(self._before_backward, tensors)

    def _before_backward(self, tensors: list[torch.Tensor]) -> None:
        self._begin_without_forward()
        self.losses.backward_begins(tensors)
        if self.recording:
            self.optimizers.backward_begins(self._trained_parameters())

    def _begin_without_forward(self) -> None:
        """A step whose forward calls no module that is trained, or which has none at all."""
        if not self._begun:
            if not self.run_info.parameters_on:
                self._note_device(next(iter(self.roots.optimized()), None))
            self._step_begins()

    def _trained_parameters(self) -> list[torch.Tensor]:
        """The parameters of all roots and of the optimizers of this thread, each once."""
        parameters = [parameter for root in self.roots.known for parameter in _parameters(root)]
        return list({id(parameter): parameter for parameter in (*parameters, *self.roots.optimized())}.values())

    def backward_ended(self) -> None:
        """A top-level backward is over."""
        self.overflow.look()  # before the scaler, which clears it
        self.gradients.finish()
        self.timeline.row.micros += 1
        if self.clock.wanted:
            self.optimizers.see_gradients(self._trained_parameters())
        self.trace.end_backward()
        if self.replay is not None:
            self.replay.backward_ended()
        if not self.roots.optimizer_seen:
            self.clock.attempted = True

    def optimizer_seen(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer was made, or one that was made before us steps."""
        self.roots.add_optimizer(optimizer)
        self.start.optimizer_made(self.roots)

    def attempt_begins(self, optimizer: torch.optim.Optimizer) -> None:
        """An optimizer steps that has already done so, with no backward in between: that is the next step."""
        if self.clock.attempted and id(optimizer) in self._attempted and torch._C._current_graph_task_id() == -1:
            self._roll_over()
        self.guarded(self._begin_without_forward)

    def attempt_made(self, optimizer: torch.optim.Optimizer) -> None:
        """An attempt to update is over, whether the update was made or skipped."""
        self.clock.attempted = True
        self._attempted.add(id(optimizer))
        self._read_request(self.clock.step + 1)  # before the batch of the next step is handed out
        if self.recording or self.clock.step % SETTINGS_EVERY == 0:
            settings = settings_of(optimizer)
            if settings not in self.run_info.optimizers and len(self.run_info.optimizers) < MAXIMUM_SETTINGS:
                self.run_info = replace(self.run_info, optimizers=(*self.run_info.optimizers, settings))
        row = self.timeline.row
        row.learning_rate = number_from(optimizer.param_groups[0].get("lr"))
        row.optimizers.append(type(optimizer).__name__)

    def compile_requested(self) -> None:
        """The script asks for torch.compile: run eagerly, so that modules can be seen."""
        if not self.compile_seen:
            self.compile_seen = True
            self._compiling.switch_off()
            self.run_info = replace(self.run_info, flags={**self.run_info.flags, "compile_switched_off": True})

    def _first_captured(self) -> None:
        if len(self._steps_written) == 1:
            self.fallbacks.first_step_over()
            self.run_info = replace(self._learned(self.run_info), perturbed=self.perturbation.facts())
            self.writer.update_run(self.run_info)

    def _learned(self, run: RunInfo) -> RunInfo:
        """The facts of the run with what its calls have told so far."""
        wrappers = {"parallel_wrappers": list(self.calls.wrappers)} if self.calls.wrappers else {}
        return replace(
            run,
            fallbacks=self.fallbacks.found(),
            classes=dict(self.calls.classes),
            flags={**run.flags, **wrappers},
        )

    def _roll_over(self) -> None:
        closed_step = self.clock.step
        self.guarded(self._close_step)
        if self.clock.step == closed_step:
            self.clock.advance()
        if self.stop and self.clock.choice.over_after(closed_step):
            self.stop = False
            raise StopCapture(0)

    def _close_step(self) -> None:
        step = self.clock.step
        updates = list(self.optimizers.updates.values())
        if updates:
            self.timeline.row.gradient_norm = lambda: _joint_norm(updates)
        self.initial.write()
        self.start.first_step_over(self._without_module)
        self.start.see_late(self.roots.known, step)
        self.perturbation.see_late(self.roots.known, step)
        self.perturbation.first_step_over(self._without_module)
        self.timeline.row.overflow = self.overflow.read() or Number()
        if self.clock.wanted:
            self.trace.measurements.fetch()
            self.timeline.close_step()
            self.timeline.append(wait=True)
            self._write_step(step)
        else:
            self.trace.forget()
            self.timeline.close_step()
        self.facts.clear()
        for watch in (self.optimizers, self.scalers, self.clips):
            watch.begin_step()
        if self.replay is not None:
            self.replay.step_ended()
        self._begun = False
        self._attempted.clear()
        self.clock.advance()
        self._read_request(self.clock.step)

    def _write_step(self, step: int) -> None:
        self.writer.append_modules(list(self.calls.module_facts.values()))
        self.trace.commit(step)
        if self.writer.values_stopped:
            self.troubles[self.writer.values_stopped] = 1
        self._steps_written.append(step)
        self._first_captured()
        if self._progress is not None:
            asked, last = step in self.options.choice, self.clock.choice.over_after(step)
            self._progress.captured(step, asked=asked, last=last, stop=self.stop)

    def _read_request(self, first: int) -> None:
        """Capture as many steps from this one on as `align capture-now` asks for."""
        wanted = self._requests.take()
        if wanted:
            self.clock.choice = self.clock.choice.with_range(first, first + wanted)


def _parameters(root: Root) -> list[torch.Tensor]:
    module = root.reference()
    return list(module.parameters()) if module is not None else []


def _joint_norm(updates: list[Sighting]) -> float:
    """The norm of all gradients as they were taken; infinite when any of them holds a NaN or Inf."""
    whole = [one for one in updates if not one.layout.startswith(("sparse", "dtensor"))]
    stats = [one.seen.measured.stats for one in whole if one.seen.measured]
    known = [found for found in stats if found is not None]
    if len(known) < len(updates):
        return math.nan  # a sparse gradient, whose elements are still to be added up, or a shard of one
    if any(found.nonfinite for found in known):
        return math.inf
    return math.sqrt(sum(found.total_squares for found in known))


def tap(name: str, tensor: object) -> None:
    """Hand a tensor to the recorder that is open; see `align.tap`."""
    if _active and isinstance(tensor, torch.Tensor):
        _active[0].tap(name, tensor)


def _forget_in_child() -> None:
    """A forked child has its own copy of the recorder: it must not touch the file."""
    for recorder in _active:
        recorder.closed = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_in_child)
