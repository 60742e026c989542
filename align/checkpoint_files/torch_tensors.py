"""What torch's own pickles name: tensors as places in storages, and the settings that stand beside them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from align.checkpoint_files.entries import ITEM_BITS, MOST_DIMENSIONS
from align.checkpoint_files.pickles import Name, Opaque, Vocabulary
from align.sentences import say

STORAGE_DTYPES: Mapping[str, str] = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}
DTYPE_NAMES: Mapping[str, str] = {
    **{name: name for name in ITEM_BITS},
    "float": "float32",
    "double": "float64",
    "half": "float16",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "cfloat": "complex64",
    "cdouble": "complex128",
    "float4_e2m1fn_x2": "uint8",
}


class StorageType(NamedTuple):
    """The class of a storage, which says what its elements are."""

    dtype: str


class DType(NamedTuple):
    """A dtype of torch."""

    name: str


class Storage(NamedTuple):
    """Memory that tensors share: its key in the file, the dtype it was saved with, its number of elements."""

    key: str
    dtype: str
    numel: int


class StoredTensor(NamedTuple):
    """A tensor: elements of a storage from `offset` on, in the strides of its dimensions, all in elements."""

    storage: Storage
    dtype: str
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class UnreadTensor(NamedTuple):
    """A tensor whose layout is not read: `why` says which that is."""

    dtype: str
    shape: tuple[int, ...]
    why: str


def storage_of(value: Any) -> Storage:
    """The storage that a persistent id names: ('storage', class, key, device, number of elements)."""
    if not isinstance(value, tuple) or len(value) < 5 or value[0] != "storage":  # noqa: PLR2004 - as documented
        msg = say("it has an id that names no storage")
        raise ValueError(msg)
    kind, key, numel = value[1], value[2], value[4]
    if not isinstance(kind, StorageType) or not isinstance(key, str) or not _is_size(numel):
        msg = say("it describes a storage that makes no sense")
        raise ValueError(msg)
    if len(value) > 5 and value[5] is not None:  # noqa: PLR2004 - legacy files tell of views
        msg = say("it has storages that are views of others")
        raise ValueError(msg)
    return Storage(key, kind.dtype, numel)


def _view(arguments: tuple[Any, ...]) -> StoredTensor | UnreadTensor:
    """`_rebuild_tensor_v2`; its metadata say that the numbers are the conjugates or negatives of those stored."""
    tensor = _tensor(arguments)
    metadata = arguments[6] if len(arguments) > 6 else None  # noqa: PLR2004 - the last of its parameters
    turned = [word for word in ("conj", "neg") if isinstance(metadata, dict) and metadata.get(word)]
    if turned:
        return UnreadTensor(tensor.dtype, tensor.shape, f"it is a lazy view (is_{turned[0]}) of what is stored")
    return tensor


def _tensor(arguments: tuple[Any, ...], dtype: str | None = None) -> StoredTensor:
    storage, offset, shape, strides = arguments[:4]
    if not isinstance(storage, Storage) or not _is_size(offset):
        msg = say("it describes a tensor without a storage")
        raise ValueError(msg)
    for sizes in (shape, strides):
        if not isinstance(sizes, tuple) or len(sizes) > MOST_DIMENSIONS or not all(map(_is_size, sizes)):
            msg = say("it describes a tensor whose shape makes no sense")
            raise ValueError(msg)
    if len(shape) != len(strides):
        msg = say("it describes a tensor with more lengths than strides")
        raise ValueError(msg)
    return StoredTensor(storage, dtype or storage.dtype, offset, shape, strides)


def _tensor_with_dtype(arguments: tuple[Any, ...]) -> StoredTensor:
    """`_rebuild_tensor_v3`, for dtypes that have no storage class of their own: its storage counts bytes."""
    kind = arguments[6]
    if not isinstance(kind, DType):
        msg = say("it describes a tensor of an unknown dtype")
        raise TypeError(msg)
    return _tensor(arguments, kind.name)


def _first(arguments: tuple[Any, ...]) -> Any:
    return arguments[0]


def _from_type(arguments: tuple[Any, ...]) -> Any:
    """A tensor of a subclass, or with attributes: (function, class, its arguments, attributes)."""
    function, _, inner, _ = arguments
    known = CALLS.get(str(function)) if isinstance(function, Name) else None
    if known is None or not isinstance(inner, tuple):
        msg = say("it describes a tensor of an unknown class")
        raise ValueError(msg)
    return known(inner)


def _quantized(arguments: tuple[Any, ...]) -> UnreadTensor:
    tensor = _tensor(arguments)
    return UnreadTensor(tensor.dtype, tensor.shape, "it is quantized")


def _sparse(arguments: tuple[Any, ...]) -> UnreadTensor:
    data = arguments[1]
    sizes = [part for part in data if isinstance(part, tuple) and all(_is_size(size) for size in part)]
    values = [part for part in data if isinstance(part, StoredTensor)]
    return UnreadTensor(values[-1].dtype if values else "float32", sizes[-1] if sizes else (), "it is sparse")


def _without_storage(arguments: tuple[Any, ...]) -> UnreadTensor:
    kind, shape = arguments[0], arguments[1]
    known = isinstance(kind, DType) and isinstance(shape, tuple) and all(_is_size(size) for size in shape)
    if not known:
        msg = say("it describes a tensor that makes no sense")
        raise ValueError(msg)
    return UnreadTensor(kind.name, shape, "it is on the device 'meta' and has no values")


def _table(arguments: tuple[Any, ...]) -> dict[Any, Any]:
    """`OrderedDict()`, or the same from a list of pairs as old versions of Python wrote it."""
    given = arguments[-1] if arguments and not isinstance(arguments[-1], Name) else ()
    if isinstance(given, dict):
        return dict(given)
    return {pair[0]: pair[1] for pair in given if isinstance(pair, (list, tuple)) and isinstance(pair[0], (str, int))}


def _size(arguments: tuple[Any, ...]) -> Any:
    return tuple(arguments[0]) if arguments else ()


def _text(arguments: tuple[Any, ...]) -> Any:
    return Opaque(":".join(map(str, arguments))[:100])


def _sequence(arguments: tuple[Any, ...]) -> list[Any]:
    given = arguments[0] if arguments else ()
    return list(given) if isinstance(given, (list, tuple)) else []


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


CALLS: Mapping[str, Any] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _view,
    "torch._utils._rebuild_tensor_v3": _tensor_with_dtype,
    # What torch_npu writes for a tensor on the device; the values are those of the plain layout.
    "torch_npu.utils.storage._rebuild_npu_tensor": _tensor,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _first,
    "torch._tensor._rebuild_from_type_v2": _from_type,
    "torch._utils._rebuild_qtensor": _quantized,
    "torch._utils._rebuild_sparse_tensor": _sparse,
    "torch._utils._rebuild_meta_tensor_no_storage": _without_storage,
    "torch.nn.parameter.Parameter": _first,
    "collections.OrderedDict": _table,
    "collections.defaultdict": _table,
    "collections.Counter": _table,
    "collections.deque": _sequence,
    "torch.Size": _size,
    "torch.device": _text,
}
"""The functions that pickles of torch call, by what is taken from their arguments."""

HARMLESS = frozenset(
    {
        "_codecs.encode", "argparse.Namespace", "types.SimpleNamespace", "copyreg._reconstructor",
        "copy_reg._reconstructor", "datetime.datetime", "datetime.timedelta", "datetime.date", "uuid.UUID",
        "decimal.Decimal", "fractions.Fraction", "numpy.ndarray", "numpy.dtype",
        "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct", "numpy.core.multiarray.scalar",
        "numpy._core.multiarray.scalar", "numpy._core.numeric._frombuffer", "numpy.core.numeric._frombuffer",
        "torch.Tensor", "torch.nn.parameter.Buffer", "torch.serialization._get_layout", "torch.Generator",
        "torch.torch_version.TorchVersion", "torch_npu.npu._format.Format",
        *(f"pathlib.{name}" for name in ("Path", "PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath")),
        *(f"pathlib._local.{name}" for name in ("Path", "PosixPath", "WindowsPath")),
        *(f"{module}.{name}" for module in ("builtins", "__builtin__") for name in (
            "int", "float", "complex", "bool", "str", "bytes", "bytearray", "list", "dict", "tuple", "set", "frozenset",
            "slice", "range", "object", "unicode", "long")),
    }
)  # fmt: skip
"""Names of settings and plain values beside the tensors; nothing is made of them here."""


def _values() -> dict[str, Any]:
    """Names that stand for a dtype or a class of storages; one for each device, as old files have them."""
    values: dict[str, Any] = {f"torch.{name}": DType(dtype) for name, dtype in DTYPE_NAMES.items()}
    for name, dtype in STORAGE_DTYPES.items():
        for module in ("torch", "torch.cuda", "torch.npu", "torch_npu.npu", "torch.storage"):
            values[f"{module}.{name}"] = StorageType(dtype)
    layouts = ("strided", "sparse_coo", "sparse_csr", "per_tensor_affine", "per_channel_affine", "contiguous_format")
    return values | {f"torch.{name}": Opaque(name) for name in layouts}


TORCH = Vocabulary(CALLS, _values(), HARMLESS)
