"""How large the page of a large comparison is, and how fast it opens, sorts and filters in a real browser.

The comparison is made here: MODULES modules, STEPS steps, five tensors of each module. Needs Chromium and playwright::

    python benchmarks/page.py [--modules 2000] [--steps 20] [--keep FILE]
"""

from __future__ import annotations

import argparse
import math
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from align.records import (
    Comparison,
    DiffResult,
    Divergence,
    Finding,
    Kind,
    ModuleInfo,
    Origin,
    Phase,
    Place,
    Resolution,
    RunInfo,
    Severity,
    Status,
    TensorKey,
    TensorRecord,
    TensorStats,
    TimelineRow,
    Verdict,
)
from align.reports.html import diff_page

UNIT = 2.0**-24
LIMIT = 7.0
PARTS = {
    "ln_1": "LayerNorm",
    "attn.qkv": "Linear",
    "attn.proj": "Linear",
    "attn": "Attention",
    "ln_2": "LayerNorm",
    "mlp.fc1": "Linear",
    "mlp.act": "GELU",
    "mlp.fc2": "Linear",
    "mlp": "MLP",
    "drop": "Dropout",
}
SLOTS = (
    (Phase.FORWARD, "input.0"),
    (Phase.FORWARD, "output.0"),
    (Phase.BACKWARD, "grad_output.0"),
    (Phase.BACKWARD, "grad_input.0"),
    (Phase.GRADIENT, "weight"),
)
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMED = """({selector, event, value}) => new Promise((done) => {
  const node = document.querySelector(selector), begin = performance.now();
  if (value !== null) { node.value = value; }
  node.dispatchEvent(new Event(event, {bubbles: true}));
  requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
})"""


def module_names(count: int) -> list[str]:
    """The names of a deep model's modules."""
    names = (f"model.layers.{layer}.{part}" for layer in range(count) for part in PARTS)
    return [name for name, _ in zip(names, range(count), strict=False)]


def pairs(modules: int, steps: int) -> Iterator[Comparison]:
    """Noise, and at step 1 a module in the middle that differs; all after it inherits that."""
    draw = random.Random(1)  # noqa: S311 - numbers to draw, no secret
    names = module_names(modules)
    faulty, broken = names[modules // 2], False
    for step in range(steps):
        order = 0
        for phase in (Phase.FORWARD, Phase.BACKWARD, Phase.GRADIENT):
            for name in names if phase is Phase.FORWARD else reversed(names):
                for slot in (slot for its, slot in SLOTS if its is phase):
                    starts = (step, phase, name, slot) == (1, Phase.FORWARD, faulty, "output.0")
                    broken = broken or starts
                    floor = UNIT * draw.uniform(1.0, 40.0) if not broken or starts else draw.uniform(0.01, 0.1)
                    relative = 0.03 if starts else floor * draw.lognormvariate(0.0, 0.4)
                    status = Status.ORIGIN if starts else Status.PROPAGATED if broken else Status.WITHIN
                    yield pair(TensorKey(step, phase, name, slot), order, draw, (relative, floor, status))
                    order += 1


def pair(key: TensorKey, order: int, draw: random.Random, judged: tuple[float, float, Status]) -> Comparison:
    """One pair with statistics of its own."""
    relative, floor, status = judged
    sides = [record(key, order, draw) for _ in range(2)]
    times = relative / floor
    return Comparison(sides[0], sides[1], status, relative, UNIT, floor, times, LIMIT)


def record(key: TensorKey, order: int, draw: random.Random) -> TensorRecord:
    """One side."""
    count, rms = 4 * 128 * 1024, draw.lognormvariate(0.0, 1.0)
    stats = TensorStats(count, -4.0 * rms, 4.2 * rms, 0.01 * rms * count, rms * rms * count, zeros=draw.randrange(99))
    return TensorRecord(key, order, "bfloat16", (4, 128, 1024), stats)


def timeline(steps: int) -> tuple[TimelineRow, ...]:
    """A loss that falls."""
    nan = math.nan
    losses = (2.0 + math.exp(-0.1 * step) for step in range(steps))
    return tuple(
        TimelineRow(step, loss, 1e-3, nan, 1.0, 0.3, skipped=False, nonfinite=False, micros=1, optimizer="AdamW")
        for step, loss in enumerate(losses)
    )


def made(modules: int, steps: int) -> DiffResult:
    """The whole comparison."""
    names = module_names(modules)
    name = names[modules // 2]
    summary = f"Step 1, forward: {name} output.0 is the first tensor that differs."
    where = Place(1, "forward", name, "output.0")
    return DiffResult(
        reference_path="gpu.h5",
        candidate_path="npu.h5",
        reference=RunInfo(device_type="cuda", command=("train.py",), outcome="finished"),
        candidate=RunInfo(device_type="npu", command=("train.py",), outcome="finished"),
        verdict=Verdict.DIVERGED,
        summary=summary,
        first_divergence=Divergence(
            1, 0, Phase.FORWARD, name, "output.0", 0, Kind.VALUE, Origin.MODULE, 0.03, UNIT, 0.03 / UNIT
        ),
        findings=(Finding("AL401", "origin-module", Severity.ERROR, summary, "Replay this module.", where),),
        resolution=Resolution(1e-3, "bf16"),
        comparisons=tuple(pairs(modules, steps)),
        reference_timeline=timeline(steps),
        candidate_timeline=timeline(steps),
        modules=tuple(ModuleInfo(each, PARTS[each.split(".", 3)[3]]) for each in names),
    )


def measured(path: Path) -> dict[str, Any]:
    """Milliseconds in the browser: to the first row, to sort twice, to filter by name and by status."""
    program = next(found for name in BROWSERS if (found := shutil.which(name)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True).new_page()
        # Thread ticks are processor time: what the page needs, however busy the machine is.
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def processor() -> float:
            metrics = session.send("Performance.getMetrics")["metrics"]
            return 1000 * float(next(each["value"] for each in metrics if each["name"] == "TaskDuration"))

        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        begin = time.perf_counter()
        page.goto(path.as_uri(), wait_until="commit")
        page.wait_for_selector("#table tbody tr[data-row]")
        took: dict[str, Any] = {"first row": 1000 * (time.perf_counter() - begin)}
        page.wait_for_load_state("load")

        def timed(selector: str, event: str, value: str | None = None) -> str:
            before = processor()
            waited = page.evaluate(TIMED, {"selector": selector, "event": event, "value": value})
            return f"{waited:.0f} ms, of which processor time {processor() - before:.0f} ms"

        ready = "() => performance.getEntriesByName('align-ready')[0].startTime"
        took["ready, by the page's clock"] = float(page.evaluate(ready))
        took["processor time until then"] = processor()
        took["sort by times the floor"] = timed("[data-column=times] button", "click")
        took["sort by module"] = timed("[data-column=module] button", "click")
        took["filter by phase"] = timed("#filter-phase", "change", "backward")
        took["filter by status"] = timed("[data-status=propagated]", "click")
        took["tree: open the worst"] = timed("#tree-worst", "click")
        took["other language"] = timed("#language", "click")
        took["rows after it"] = page.locator("#table tbody tr[data-row]").count()
        took["console"] = said
        browser.close()
    return took


def main() -> None:
    """Make the page, open it, print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--keep", type=Path, help="write the page there")
    asked = parser.parse_args()
    result = made(asked.modules, asked.steps)
    begin = time.process_time()
    text = diff_page(result)
    seconds = time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = asked.keep or Path(folder) / "report.html"
        path.write_text(text, encoding="utf-8")
        size = path.stat().st_size / 1e6
        print(f"{len(result.comparisons):,} tensors: {size:.2f} MB, made in {seconds:.1f} s of processor time")
        for what, took in measured(path.resolve()).items():
            print(f"{what:>28}  {took:.0f} ms" if isinstance(took, float) else f"{what:>28}  {took}")


if __name__ == "__main__":
    main()
