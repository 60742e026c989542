"""The last line of `align capture`: what was captured, how much, where, and what the user should know."""

from __future__ import annotations

from collections.abc import Iterator

from align.hooks.perturb import sentence as perturbed
from align.hooks.recorder import Recorder
from align.hooks.same_start import sentence
from align.hooks.steps import describe_steps
from align.space_limit import readable_size


def last_line(recorder: Recorder, device: str, children: str) -> str:
    """One line, longer only where there is trouble; `device` is what was asked for, `children` a sentence."""
    return "; ".join(_parts(recorder, device, children))


def _parts(recorder: Recorder, device: str, children: str) -> Iterator[str]:
    yield _captured(recorder)
    beyond = recorder.clock.step - recorder.steps_written[-1] - 1 if recorder.steps_written else 0
    if recorder.gave_up:
        yield "the run went on without it"
    elif beyond > 0:
        yield "1 later step was not captured" if beyond == 1 else f"{beyond:,} later steps were not captured"
    yield from filter(None, (sentence(recorder.run_info.same_start), perturbed(recorder.run_info.perturbed)))
    outcome = recorder.run_info.outcome
    if outcome != "finished" and not recorder.gave_up:
        yield f"the run ended early ({outcome})"
    unmatched = recorder.unmatched_modules()
    if unmatched:
        yield f"no module has a name like {', '.join(unmatched)}"
    where = recorder.run_info.parameters_on
    if where and device not in ("auto", where):
        yield f"--device {device} was asked but the parameters were on {where}: pass the device to your script"
    if recorder.compile_seen:
        yield "torch.compile was switched off so that modules can be seen"
    if children:
        yield children
    if recorder.troubles:
        count = sum(recorder.troubles.values())
        yield f"{count:,} {'trouble' if count == 1 else 'troubles'} while capturing: {recorder.notes()[0]}"


def _captured(recorder: Recorder) -> str:
    steps = recorder.steps_written
    if steps:
        what = f"step {steps[0]}" if len(steps) == 1 else f"{len(steps)} steps ({describe_steps(steps)})"
        size = recorder.path.stat().st_size if recorder.path.exists() else 0
        records = f"{recorder.trace.records_written:,} records"
        return f"align: captured {what}, {records}, {readable_size(size)}: {recorder.path}"
    seen, asked = recorder.clock.step, recorder.run_info.steps_requested
    if recorder.gave_up:
        why = "the file could not be written"
    elif seen:
        why = f"the run had {seen} and --steps {asked} asks for none of them"
    else:
        why = "no module was called in grad mode and followed by backward and an optimizer step"
    return f"align: captured no step: {why}" + ("; no file was kept" if recorder.empty else f": {recorder.path}")
