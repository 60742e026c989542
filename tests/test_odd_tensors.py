"""Tensors that are not plain: what is measured of them, and the word for how they lie in memory."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from align.hooks.layout import layout_of
from align.hooks.measure import Measurements
from align.hooks.odd_tensors import values_of
from align.records import TensorStats
from tests.running import python


def fake() -> torch.Tensor:
    with FakeTensorMode():
        return torch.ones(3)


def quantized() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.quantize_per_tensor(torch.tensor([0.0, 1.0, 2.5]), 0.5, 0, torch.qint8)


def blocks() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.eye(4).to_sparse_bsr((2, 2))


def rows() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.eye(3).to_sparse_csr()


def nested(layout: torch.layout) -> Callable[[], torch.Tensor]:
    def make() -> torch.Tensor:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parts = [torch.ones(2, 3), torch.ones(4, 3)]
            return torch.nested.nested_tensor(parts, layout=layout)

    return make


ODD: dict[str, tuple[Callable[[], torch.Tensor], str, TensorStats | None]] = {
    "coo": (lambda: torch.eye(3).to_sparse(), "sparse_coo", TensorStats(3, 1.0, 1.0, 3.0, 3.0)),
    "uncoalesced": (
        lambda: torch.sparse_coo_tensor(torch.tensor([[0, 0]]), torch.tensor([1.0, 2.0]), (3,), check_invariants=True),
        "sparse_coo",
        TensorStats(2, 1.0, 2.0, 3.0, 5.0),
    ),
    "no element": (lambda: torch.zeros(3, 3).to_sparse(), "sparse_coo", TensorStats(0)),
    "csr": (rows, "sparse_csr", TensorStats(3, 1.0, 1.0, 3.0, 3.0)),
    "bsr": (blocks, "sparse_bsr", TensorStats(8, 0.0, 1.0, 4.0, 4.0, zeros=4)),
    "nested": (nested(torch.strided), "nested", TensorStats(18, 1.0, 1.0, 18.0, 18.0)),
    "jagged": (nested(torch.jagged), "nested", TensorStats(18, 1.0, 1.0, 18.0, 18.0)),
    "quantized": (quantized, "quantized", TensorStats(3, 0.0, 2.5, 3.5, 7.25, zeros=1)),
    "complex32": (
        lambda: torch.view_as_complex(torch.tensor([[1.0, 2.0]]).half()),
        "",
        TensorStats(2, 1.0, 2.0, 3.0, 5.0),
    ),
    "negated view": (
        lambda: torch.tensor([1 + 2j, 3 + 4j]).conj().imag,
        "strided",
        TensorStats(2, -4.0, -2.0, -6.0, 20.0),
    ),
    "scalar": (lambda: torch.tensor(3.0), "", TensorStats(1, 3.0, 3.0, 3.0, 9.0)),
    "meta": (lambda: torch.ones(3, device="meta"), "meta", None),
    "fake": (fake, "fake", None),
    "lazy": (torch.nn.parameter.UninitializedParameter, "lazy", None),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_are_measured_by_what_they_hold(name: str) -> None:
    make, layout, stats = ODD[name]
    tensor = make()
    measured = Measurements(with_sketch=True).measure(tensor)
    assert layout_of(tensor) == layout
    assert (None if measured is None else measured.stats) == stats
    if layout not in ("", "strided"):
        assert measured is None or measured.sketch is None


@pytest.mark.parametrize("name", ["float4_e2m1fn_x2", "uint4", "bits8"])
def test_dtypes_that_no_operator_reads_are_left_alone(name: str) -> None:
    dtype = getattr(torch, name, None)
    if dtype is None:
        pytest.skip(f"this torch has no {name}")
    tensor = torch.zeros(4, dtype=torch.uint8).view(dtype)
    assert Measurements(with_sketch=True).measure(tensor) is None
    assert layout_of(tensor) == ""


def test_tensors_inside_functorch_are_left_alone() -> None:
    seen: list[tuple[str, object]] = []
    measurements = Measurements(with_sketch=True)

    def look(tensor: torch.Tensor) -> torch.Tensor:
        seen.append((layout_of(tensor), measurements.measure(tensor)))
        return tensor.sum()

    torch.func.vmap(look)(torch.ones(2, 3))
    torch.func.grad(look)(torch.ones(3))
    assert seen == [("functorch", None), ("functorch", None)]


def test_measuring_a_sparse_gradient_records_no_graph() -> None:
    table = torch.nn.Embedding(5, 3, sparse=True)
    table(torch.tensor([1, 4])).sum().backward()
    assert table.weight.grad is not None
    values = values_of(table.weight.grad)
    assert values is not None
    measured = Measurements(with_sketch=True).measure(table.weight.grad)
    assert measured is not None
    assert measured.stats == TensorStats(6, 1.0, 1.0, 6.0, 6.0)


LAYOUTS: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "row-major": (lambda x: x, ""),
    "channels_last": (lambda x: x.contiguous(memory_format=torch.channels_last), "channels_last"),
    "transposed": (lambda x: x.transpose(0, 1), "strided"),
    "every other": (lambda x: x[..., ::2], "strided"),
    "expanded": (lambda x: x[:1].expand(5, 3, 4, 6), "strided"),
    "part": (lambda x: x[1:], ""),
    "parameter": (lambda x: torch.nn.Parameter(x, requires_grad=False), ""),
    "channels_last_3d": (
        lambda x: x[:, :, None].expand(2, 3, 5, 4, 6).contiguous(memory_format=torch.channels_last_3d),
        "channels_last_3d",
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_strided_tensors(name: str) -> None:
    make, layout = LAYOUTS[name]
    assert layout_of(make(torch.randn(2, 3, 4, 6))) == layout


DISTRIBUTED = """
import sys
import torch
import torch.distributed as distributed
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from align.hooks.layout import layout_of
from align.hooks.measure import Measurements

distributed.init_process_group("gloo", init_method="file://" + sys.argv[1], rank=0, world_size=1)
mesh = init_device_mesh("cpu", (1,))
whole = torch.ones(4, 4)
for tensor in (
    distribute_tensor(whole, mesh, [Shard(1)]),
    torch.nn.Parameter(distribute_tensor(whole, mesh, [Replicate()])),
    DTensor.from_local(whole, mesh, [Partial()]),
):
    measured = Measurements(with_sketch=True).measure(tensor)
    print(layout_of(tensor), measured.stats.count, measured.stats.total, measured.sketch)
distributed.destroy_process_group()
"""


def test_of_a_distributed_tensor_the_shard_is_measured(tmp_path: object) -> None:
    done = python("-c", DISTRIBUTED, f"{tmp_path}/rendezvous")
    assert done.stdout.splitlines() == [
        "dtensor(Shard(1)) 16 16.0 None",
        "dtensor(Replicate()) 16 16.0 None",
        "dtensor(Partial(sum)) 16 16.0 None",
    ], done.stderr


FORMATS = """
import enum
import torch
import torch_npu
from align.hooks.layout import layout_of

class Format(enum.IntEnum):
    ND = 2
    FRACTAL_NZ = 29
    NZ_C0_16 = 51

tensor = torch.ones(4, 4, device="npu")
print(repr(layout_of(tensor)))
for answer in (Format.ND, Format.FRACTAL_NZ, Format.NZ_C0_16, 0, 29, 51):
    torch_npu.get_npu_format = lambda tensor: answer
    print(repr(layout_of(tensor)), repr(layout_of(tensor.t())))
del torch_npu.get_npu_format
print(repr(layout_of(tensor)))
"""


def test_the_format_of_an_npu_is_named() -> None:
    done = python("-c", FORMATS, simulator={})
    assert done.stdout.splitlines() == [
        "''",
        "'' 'strided'",
        "'FRACTAL_NZ' 'FRACTAL_NZ'",
        "'NZ_C0_16' 'NZ_C0_16'",
        "'' 'strided'",
        "'FRACTAL_NZ' 'FRACTAL_NZ'",
        "'format 51' 'format 51'",
        "''",
    ], done.stderr
