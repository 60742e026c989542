"""The values of tensors come back as they were at the hook, however they lie in memory and whatever happens next."""

from __future__ import annotations

import bisect
import os
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import align
from align import staging, steady_file
from align.capture_file import CaptureWriter, open_capture
from align.capture_writer import Handle
from align.errors import CaptureFileError
from align.hooks import values as of_tensors
from align.hooks.values import TensorSource, as_array, dtype_name, repeats_itself
from align.kept_values import LARGE, MOST_IN_MEMORY
from align.records import INIT_STEP, RunInfo
from align.staging import BUFFER_SIZE
from align.steady_file import SteadyFile
from tests.every_write import WatchedFile, open_plainly
from tests.large_values import LARGE_COUNT, RUN, commit, found, keep, named, numbers
from tests.running import python, run_python

DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2, torch.bool,
    torch.uint8, torch.int32, torch.int64, torch.complex64, torch.complex128,
]  # fmt: skip


def random_bits(dtype: torch.dtype, shape: tuple[int, ...], seed: int) -> torch.Tensor:
    """A tensor of any dtype whose elements are any bits."""
    count = int(np.prod(shape, dtype=np.int64))
    if dtype is torch.bool:
        return torch.from_numpy(np.random.default_rng(seed).integers(0, 2, count).astype(bool)).view(shape)
    if not count:
        return torch.empty(shape, dtype=dtype)
    size = torch.empty(0, dtype=dtype).element_size()
    raw = torch.from_numpy(np.random.default_rng(seed).integers(0, 256, count * size).astype(np.uint8))
    return raw.view(dtype).view(shape)


LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "contiguous": lambda tensor: tensor,
    "transposed": lambda tensor: tensor.permute(tuple(reversed(range(tensor.dim())))),
    "every other": lambda tensor: tensor[::2] if tensor.dim() else tensor,
    "narrowed": lambda tensor: tensor[..., 1:] if tensor.dim() and tensor.shape[-1] else tensor,
    "expanded": lambda tensor: tensor.unsqueeze(0).expand(3, *tensor.shape),
    "expanded inside": lambda tensor: tensor.unsqueeze(-1).expand(*tensor.shape, 2),
}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(DTYPES),
    st.lists(st.integers(0, 6), max_size=4),
    st.sampled_from(sorted(LAYOUTS)),
    st.integers(0, 99),
    st.data(),
)
def test_every_layout_is_copied_in_logical_order_whatever_the_pieces(
    dtype: torch.dtype, shape: list[int], layout: str, seed: int, data: st.DataObject
) -> None:
    tensor = LAYOUTS[layout](random_bits(dtype, tuple(shape), seed))
    source = TensorSource(tensor)
    expected = as_array(tensor)
    assert (source.shape, source.stored, source.nbytes) == (expected.shape, expected.dtype, expected.nbytes)
    copied = bytearray(source.nbytes)
    done = 0
    while done < source.nbytes:
        size = data.draw(st.integers(1, 40)) * source.stored.itemsize
        room = memoryview(copied)[done : done + size]
        assert source.copy_into(room, done) is None
        done += len(room)
    assert bytes(copied) == expected.tobytes()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(DTYPES),
            st.sampled_from([(), (0,), (3, 0), (7,), (5, 6), (90, 1000), (16384,), (33, 30, 100)]),
            st.sampled_from(sorted(LAYOUTS)),
            st.integers(0, 99),
        ),
        max_size=6,
    )
)
def test_every_tensor_comes_back(tmp_path: Path, chosen: list[tuple[torch.dtype, tuple[int, ...], str, int]]) -> None:
    tensors = [LAYOUTS[layout](random_bits(dtype, shape, seed)) for dtype, shape, layout, seed in chosen]
    writer = CaptureWriter(tmp_path / "a.h5", RUN, force=True)
    handles = {order: writer.keep(TensorSource(tensor)) for order, tensor in enumerate(tensors)}
    records = [named(order, tensor, dtype=dtype_name(tensor.dtype)) for order, tensor in enumerate(tensors)]
    writer.commit(0, records, {order: handle for order, handle in handles.items() if handle is not None})
    writer.close(RUN)
    for values, tensor in zip(found(tmp_path / "a.h5"), tensors, strict=True):
        expected = as_array(tensor)
        assert (values.shape, values.dtype, values.tobytes()) == (expected.shape, expected.dtype, expected.tobytes())


@pytest.mark.parametrize("count", [3, LARGE_COUNT, BUFFER_SIZE // 2], ids=["small", "large", "two buffers"])
def test_changing_a_tensor_in_place_right_after_the_hook_does_not_show(tmp_path: Path, count: int) -> None:
    tensor = torch.arange(count, dtype=torch.float32)
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    handle = writer.keep(TensorSource(tensor))
    assert handle is not None
    tensor.zero_()
    writer.commit(0, [named(0, tensor)], {0: handle})
    tensor.fill_(7)
    writer.close(RUN)
    assert np.array_equal(found(tmp_path / "a.h5")[0], np.arange(count, dtype=np.float32))


def test_a_device_is_only_asked_for_its_values(tmp_path: Path) -> None:
    program = """
import sys
import torch, torch_npu
from align.capture_file import CaptureWriter
from align.hooks.values import TensorSource, as_array
from align.records import RunInfo
from tests.large_values import RUN, found, named

# The simulated device has no page-locked memory; the event stands for what a real one has not copied yet.
torch.Tensor.is_pinned = lambda self, device=None: True
waited = []
wait = torch.npu.Event.synchronize
torch.npu.Event.synchronize = lambda self: (waited.append(self), wait(self))
tensors = [torch.randn(300, 500).npu(), torch.randn(300, 500).npu().t(), torch.randn(7).npu(), torch.randn(()).npu()]
tensors += [torch_npu.npu_format_cast(tensors[0].bfloat16(), 29), torch.randn(3, 5).npu()[::2]]
expected = [as_array(tensor).copy() for tensor in tensors]
writer = CaptureWriter(sys.argv[1], RUN)
handles = {order: writer.keep(TensorSource(tensor)) for order, tensor in enumerate(tensors)}
early = len(waited)
records = [named(order, tensor, dtype=str(tensor.dtype)[6:]) for order, tensor in enumerate(tensors)]
writer.commit(0, records, handles)
writer.close(RUN)
values = found(sys.argv[1])
print(early, len(waited), [a.tobytes() == b.tobytes() for a, b in zip(values, expected)])
"""
    done = python("-c", program, tmp_path / "a.h5", simulator={})
    assert (done.stdout, done.code) == (f"0 6 {[True] * 6}\n", 0), done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="This system does not tell the memory of a program.")
def test_a_full_ring_makes_the_hook_wait_and_memory_stays_bounded(tmp_path: Path) -> None:
    program = """
import sys
from tests.large_values import *
array = numbers(0, 4 << 20)
writer = CaptureWriter(sys.argv[1], RUN)
before = peak()
arrays = [array] * 20
commit(writer, 0, arrays)
smalls = [array[:10_000]] * 3000
commit(writer, 1, smalls)
print(peak() - before)
writer.close(RUN)
"""
    kilobytes = int(run_python("-c", program, tmp_path / "a.h5", fresh=True).stdout)
    allowed = (staging.BUFFERS * BUFFER_SIZE + 2 * MOST_IN_MEMORY) // 1024 + 32_000
    assert 64_000 < kilobytes < allowed, "456 MB of values were kept"
    expected = numbers(0, 4 << 20)
    assert all(np.array_equal(values, expected) for values in found(tmp_path / "a.h5"))
    assert all(np.array_equal(values, expected[:10_000]) for values in found(tmp_path / "a.h5", 1))


def test_small_values_begin_no_thread(tmp_path: Path) -> None:
    before = threading.active_count()
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    commit(writer, 0, [numbers(0, 100)])
    assert threading.active_count() == before
    commit(writer, 1, [numbers(1)])
    assert threading.active_count() == before + 1
    writer.close(RUN)
    assert threading.active_count() == before


def test_values_that_are_dropped_leave_no_hole_and_do_not_come_back(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    writer = CaptureWriter(path, RUN)
    for step in range(5):
        pending = keep(writer, numbers(step + 50))
        dropped = [keep(writer, numbers(99, 200_000)) for _ in range(4)]
        del dropped
        commit(writer, step, [numbers(step), numbers(step, 10), numbers(step + 10)])
        del pending
    writer.close(RUN)
    for step in range(5):
        expected = [numbers(step), numbers(step, 10), numbers(step + 10)]
        assert all(np.array_equal(a, b) for a, b in zip(found(path, step), expected, strict=True))
    assert path.stat().st_size < 5 * 4 * 2 * LARGE


def test_space_that_others_lie_behind_is_not_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journals: list[int] = []
    really_write = steady_file._write

    def write(descriptor: int, data: memoryview, start: int) -> None:
        if bytes(data[-24:]).startswith(b"ALIGNJRN"):
            journals.append(len(data))
        really_write(descriptor, data, start)

    monkeypatch.setattr(steady_file, "_write", write)
    path = tmp_path / "a.h5"
    writer = CaptureWriter(path, RUN)
    for step in range(4):
        first, second = keep(writer, numbers(98, 500_000)), keep(writer, numbers(99))
        del first
        commit(writer, step, [numbers(step), numbers(step + 10, 10), numbers(step + 20, 200_000)])
        # What is held goes to the file twice, and through the memory.
        assert max(length for length in journals) < 100_000
        del second
    writer.close(RUN)
    for step in range(4):
        expected = [numbers(step), numbers(step + 10, 10), numbers(step + 20, 200_000)]
        assert all(np.array_equal(a, b) for a, b in zip(found(path, step), expected, strict=True))


def test_values_that_wait_over_a_step_get_their_name_later(tmp_path: Path) -> None:
    path = tmp_path / "a.h5"
    writer = CaptureWriter(path, RUN)
    waiting = {0: keep(writer, numbers(1)), 1: keep(writer, numbers(2, 10))}
    commit(writer, 0, [numbers(3), numbers(4, 10)])
    for step in (1, 2):
        records = [named(0, numbers(1), step), named(1, numbers(2, 10), step)]
        writer.commit(step, records, waiting)
    writer.close(RUN)
    for step in (1, 2):
        assert np.array_equal(found(path, step)[0], numbers(1))
        assert np.array_equal(found(path, step)[1], numbers(2, 10))
    with h5py.File(path) as file:
        assert file["step1/forward/layer0/output.0"] == file["step2/forward/layer0/output.0"]


def test_equal_captures_with_large_values_are_equal_files(tmp_path: Path) -> None:
    for name in ("a.h5", "b.h5"):
        writer = CaptureWriter(tmp_path / name, RUN)
        for step in range(3):
            dropped = [keep(writer, numbers(seed, 300_000)) for seed in range(5)]
            del dropped
            commit(writer, step, [numbers(step), numbers(step, 77), numbers(step, 100_001)])
        writer.close(RUN)
    assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()


@pytest.mark.parametrize("other_process", [True, False], ids=["put down by another process", "put down here"])
def test_large_values_can_be_read_after_every_single_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, other_process: bool
) -> None:
    watched = WatchedFile(monkeypatch, other_process=other_process)
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    ends, steps, pending = [], [], None
    for step in range(4):
        dropped = keep(writer, numbers(step + 20, 40_000))
        del dropped
        arrays = [numbers(step), numbers(step, 30), numbers(step + 10, 20_480)]
        commit(writer, step, arrays)
        pending = keep(writer, numbers(70 + step)) if step % 2 else None
        ends.append(len(watched.changes))
        steps.append(arrays)
    del pending
    writer.close(RUN)

    path, image = tmp_path / "b.h5", b""
    for number, image in watched.states(ends[0]):
        path.write_bytes(image)
        finished = bisect.bisect_right(ends, number)
        with open_capture(path) as capture:
            assert capture.steps[:finished] == list(range(finished))
            for step in capture.steps:
                for record, expected in zip(capture.records(step), steps[step], strict=True):
                    assert np.array_equal(capture.values(record), expected)
        if other_process:
            open_plainly(path, finished)
    assert image == (tmp_path / "a.h5").read_bytes()


def test_a_forked_child_neither_writes_nor_waits(tmp_path: Path) -> None:
    program = """
import os, sys
from tests.large_values import *
array = numbers(0, 3 << 20)
writer = CaptureWriter(sys.argv[1], RUN)
handles = {0: keep(writer, array)}
deeds = (lambda: None, lambda: commit(writer, 99, [array] * 20), lambda: writer.close(RUN), writer.flush,
         lambda: [keep(writer, array) for _ in range(30)], lambda: os._exit(7))
for number, deed in enumerate(deeds):
    handles[number + 1] = keep(writer, array)
    child = os.fork()
    if not child:
        deed()
        sys.exit(7)
    handles[number + 1] = keep(writer, array)
    assert os.waitpid(child, 0)[1] >> 8 == 7
writer.commit(0, [named(order, array) for order in handles], handles)
writer.close(RUN)
"""
    done = python("-W", "error", "-c", program, tmp_path / "a.h5", fresh=True)
    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    values, expected = found(tmp_path / "a.h5"), numbers(0, 3 << 20)
    assert len(values) == 7
    assert all(np.array_equal(array, expected) for array in values)


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process may grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.parametrize("limit", [500_000, 3_000_000, 3_001_000, 30_000_000])
def test_a_disk_that_is_full_is_told_once_and_leaves_the_finished_steps(tmp_path: Path, limit: int) -> None:
    path = tmp_path / "a.h5"
    writer = CaptureWriter(path, RUN)
    finished = 0

    def go_on() -> None:
        nonlocal finished
        while True:
            commit(writer, finished, [numbers(finished), numbers(finished, 1_000_000), numbers(finished, 5)])
            finished += 1

    commit(writer, 0, [numbers(0)])
    finished = 1
    with largest_file(limit):
        for _ in range(2):
            with pytest.raises(CaptureFileError) as raised:
                go_on()
            assert str(raised.value) == (
                f"Cannot write '{path}': file too large. The steps that were finished before are in the file."
            )
        writer.close(RunInfo(outcome="finished", notes=("The disk was full.",)))
    assert path.stat().st_size <= limit
    with open_capture(path) as capture:
        assert capture.steps == list(range(finished))
        assert capture.run.notes == ("The disk was full.",)
    for step in range(finished):
        assert np.array_equal(found(path, step)[0], numbers(step))
    assert "align-writer" not in {thread.name for thread in threading.enumerate()}


def test_an_interruption_while_waiting_for_the_disk_comes_after_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_write = steady_file._write
    main = threading.main_thread()

    def write(descriptor: int, data: memoryview, start: int) -> None:
        if threading.current_thread() is not main and len(data) >= LARGE:
            signal.pthread_kill(main.ident or 0, signal.SIGINT)
        really_write(descriptor, data, start)

    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    handle = keep(writer, numbers(0))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(steady_file, "_write", write)
    try:
        with pytest.raises(KeyboardInterrupt):
            writer.commit(0, [named(0, numbers(0))], {0: handle})
    finally:
        signal.signal(signal.SIGINT, before)
    assert not writer.failed
    writer.close(RUN)
    assert np.array_equal(found(tmp_path / "a.h5")[0], numbers(0))


def test_a_system_without_direct_writing_writes_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    writer = CaptureWriter(tmp_path / "a.h5", RUN)
    commit(writer, 0, [numbers(0), numbers(1, 5_000_000)])
    writer.close(RUN)
    assert np.array_equal(found(tmp_path / "a.h5")[1], numbers(1, 5_000_000))


def test_memory_that_the_system_refuses_for_direct_writing_goes_through_the_page_cache(tmp_path: Path) -> None:
    file = SteadyFile.create(tmp_path / "a", overwrite=False)
    data = np.random.default_rng(0).bytes(20_001)
    file.write_behind(memoryview(data)[1:], 4096)
    file.write_behind(memoryview(data)[1:], 40_960)
    assert file.error is None
    file.close()
    content = (tmp_path / "a").read_bytes()
    assert content == bytes(4096) + data[1:] + bytes(40_960 - 24_096) + data[1:]


MANY = 1 << 27


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.ones(1).expand(MANY), True),
        (torch.ones(1000).expand(MANY // 500, 1000), True),
        (torch.ones(MANY >> 8)[:3].unsqueeze(1).expand(3, MANY // 3), True),
        (torch.ones(1000).as_strided((MANY // 500, 1000), (0, 1)), True),
        (torch.ones(MANY >> 6).expand(64, MANY >> 6), False),
        (torch.ones(1).expand(MANY >> 1), False),
        (torch.ones(MANY, dtype=torch.int8).view(torch.float32), False),
        (torch.ones(0).expand(MANY, 0), False),
    ],
    ids=["one", "rows", "slice", "strides", "64 times", "256 MiB", "itself", "nothing"],
)
def test_what_repeats_a_little_memory_very_often_is_told(tensor: torch.Tensor, expected: bool) -> None:
    assert repeats_itself(tensor) is expected


def test_values_of_an_expanded_tensor_are_not_written_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(of_tensors, "MOST_REPEATED", 1000)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 1))
            self.same, self.few = nn.Identity(), nn.Identity()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            loss = self.same(self.weight.expand(3, 300)).mean() + self.few(self.weight.expand(3, 64)).mean() + x.mean()
            assert isinstance(loss, torch.Tensor)
            return loss

    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with align.Recorder(tmp_path / "run.h5", detail="tensors") as recorder:
        for _ in range(2):
            model(torch.ones(2)).backward()
            optimizer.step()
    told = "The values of an expanded float32 tensor of [3, 300] are not kept"
    assert set(recorder.troubles) == {told}
    with align.open(tmp_path / "run.h5") as capture:
        kept = {record.key.name: record for record in capture.records(1) if record.key.slot == "output.0"}
        assert (kept["same"].has_values, kept["few"].has_values) == (False, True)
        assert kept["same"].stats is not None
        assert kept["same"].stats.count == 900
        assert capture.values(kept["few"]).shape == (3, 64)
        assert any("expanded" in note for note in capture.run.notes)


def test_no_values_are_kept_beyond_the_size_that_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "run.h5"
    writer = CaptureWriter(path, RUN, max_bytes=1_000_000)
    commit(writer, 0, [numbers(0), numbers(0, 9)])
    assert (writer.values_kept, writer.values_stopped) == (True, "")
    handles: dict[int, Handle] = {}
    for order in range(30):
        handle = writer.add_values(numbers(order), "float32")
        if handle is not None:
            handles[order] = handle
    assert not writer.values_kept
    writer.commit(1, [named(order, numbers(0), 1) for order in range(30)], handles)
    assert writer.values_stopped == "Values are not kept from step 1 on: run.h5 has reached --max-size 1.0 MB"
    writer.commit(2, [named(0, numbers(0), 2)], {})
    assert writer.values_stopped == "Values are not kept from step 1 on: run.h5 has reached --max-size 1.0 MB"
    writer.close(RUN)
    assert 900_000 < path.stat().st_size < 1_000_000
    with open_capture(path) as capture:
        kept = [record.has_values for record in capture.records(1)]
        assert kept == [order in handles for order in range(30)]
        assert kept == sorted(kept, reverse=True)
        assert 0 < sum(kept) < 30
        for record in capture.records(1):
            if record.has_values:
                assert np.array_equal(capture.values(record), numbers(record.order))
        with pytest.raises(CaptureFileError) as raised:
            capture.values(capture.records(2)[0])
        assert str(raised.value) == (
            f"Cannot read the values of 'step 2, forward: layer0 output.0' from '{path}': they were not kept. "
            "Capture again with --detail tensors."
        )


def test_no_values_are_kept_on_a_disk_that_is_nearly_full(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "run.h5", RUN, least_free=1.0)
    assert writer.add_values(numbers(0), "float32") is None
    writer.commit(INIT_STEP, [named(0, numbers(0), INIT_STEP)], {})
    assert writer.values_stopped == (
        "Values are not kept from the initial parameters on: less than 100% of the disk of run.h5 is free"
    )
    writer.close(RUN)
