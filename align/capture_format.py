"""What a capture file holds, as one versioned literal from which the writer, the reader and the docs are made."""

from __future__ import annotations

from typing import NamedTuple

import h5py
import numpy as np

from align.records import INIT_STEP, Phase, TensorKey

FORMAT_VERSION = 1
HISTORY = {
    1: "First version.",
}


class Entry(NamedTuple):
    """One object of the file."""

    path: str
    kind: str
    comment: str


class Field(NamedTuple):
    """One column of a table."""

    name: str
    dtype: str
    comment: str


LAYOUT = (
    Entry("/", "group", "Attributes: `align_format`, the format version; `sign_table`, the id of the signs."),
    Entry(
        "/run", "text", "The facts of the run as one JSON object, padded with spaces so that it is rewritten in place."
    ),
    Entry("/names", "list of text", "Every text that the tables refer to by its position; `%` is `%25`, a NUL `%00`."),
    Entry(
        "/name_bytes",
        "uint8",
        "The same texts, each with a NUL behind it. `align` reads these; HDF5 may hang on a damaged /names.",
    ),
    Entry("/name_checksums", "uint32", "The CRC-32 of each text in /name_bytes, without its NUL."),
    Entry("/modules", "table", "One row per module; a later row of the same name replaces an earlier one."),
    Entry("/timeline", "table", "One row for every step of the run, captured or not."),
    Entry("/init", "group", "Parameters and buffers before step 0; holds what a step holds."),
    Entry("/init/NAME/SLOT", "values", "The values of one initial tensor, where they were kept."),
    Entry("/stepN", "group", "One group per captured step; it appears when the step is complete."),
    Entry("/stepN/index", "table", "One row per record, in execution order."),
    Entry("/stepN/sketches", "float32", "The sketches of the step, one after another; rows say where theirs begins."),
    Entry("/stepN/checksum", "uint64", "Hash of the step's number, the hash of its index and that of its sketches."),
    Entry(
        "/stepN/PHASE/NAME/SLOT",
        "values",
        "The values of one tensor, where they were kept, in its own shape and dtype.",
    ),
)

INDEX_FIELDS = (
    Field("order", "int32", "Position in the execution order of the step."),
    Field("phase", "enum", "When the tensor was seen."),
    Field("name", "int32", "Module path, argument or owner (position in /names)."),
    Field("slot", "int32", "Which tensor of that name (position in /names)."),
    Field("micro", "int32", "Forward and backward pass inside the step, from 0."),
    Field("call", "int32", "Call inside the micro-step, from 0."),
    Field("within", "int32", "Module call whose code was running; an empty name is the script (position in /names)."),
    Field("within_call", "int32", "Number of that call."),
    Field("dtype", "int32", "Torch's name of the dtype, as in float32 or bfloat16 (position in /names)."),
    Field("shape", "int32", "Logical shape, as in 4,512,64; empty for a scalar (position in /names)."),
    Field("same_as", "int32", "Order of an earlier record of the step that is the very same tensor, else -1."),
    Field("total", "bool", "The gradient holds the contributions of other consumers too."),
    Field("has_values", "bool", "The values are in the file."),
    Field("has_hash", "bool", "The field `hash` holds a hash."),
    Field("has_stats", "bool", "The statistics below were taken."),
    Field("hash", "uint64", "Hash of the logical little-endian bytes."),
    Field("count", "int64", "Number of elements that the statistics saw."),
    Field("minimum", "float64", "Least finite element."),
    Field("maximum", "float64", "Greatest finite element."),
    Field("total_sum", "float64", "Sum of the finite elements."),
    Field("total_squares", "float64", "Sum of squares of the finite elements."),
    Field("zeros", "int64", "Number of exact zeros."),
    Field("nans", "int64", "Number of NaN."),
    Field("positive_infs", "int64", "Number of +Inf."),
    Field("negative_infs", "int64", "Number of -Inf."),
    Field("subnormals", "int64", "Number of subnormal elements of a 16-bit float; 0 for other dtypes."),
    Field("resolution", "float64", "Error of the sketch relative to the norm of the tensor."),
    Field("sketch_start", "int64", "First number of the sketch in `sketches`, -1 where there is none."),
    Field("sketch_length", "int32", "How many numbers the sketch has: the lesser of element count and bucket count."),
)

MODULE_FIELDS = (
    Field("name", "int32", "Module path (position in /names)."),
    Field("class_name", "int32", "Class of the module (position in /names)."),
    Field("leaf", "bool", "It has no child modules."),
    Field(
        "compute_dtype", "int32", "Coarsest floating dtype that its forward made (position in /names), -1 if unknown."
    ),
    Field("matmul", "bool", "Matrix products ran in it."),
    Field("conv", "bool", "Convolutions ran in it."),
    Field("piecewise", "bool", "Its backward depends on decisions that rounding can flip."),
    Field("checksum", "uint64", "Hash of the bytes of the row before this field."),
)

TIMELINE_FIELDS = (
    Field("step", "int64", "Step of the run, from 0."),
    Field("loss", "float64", "Mean loss of the step, before the loss scale; NaN here and below: not seen."),
    Field("learning_rate", "float64", "Learning rate of the first parameter group."),
    Field("loss_scale", "float64", "Factor of the GradScaler."),
    Field("gradient_norm", "float64", "L2 norm of all gradients."),
    Field("seconds", "float64", "From the end of the step before to the end of this one."),
    Field("skipped", "bool", "The optimizer took no step."),
    Field("nonfinite", "bool", "A loss or gradient was NaN or infinite."),
    Field("micros", "int32", "Forward and backward passes in the step."),
    Field("optimizer", "int32", "Class of the optimizer (position in /names)."),
    Field("checksum", "uint64", "Hash of the bytes of the row before this field."),
)

RUN_FIELDS = (
    Field("align_version", "text", "The align that wrote the file."),
    Field("format_version", "integer", "The format of the file."),
    Field("device_type", "text", "Where the training ran: cpu, cuda, npu."),
    Field("device_name", "text", "The device by its maker's name."),
    Field("device_count", "integer", "How many devices the process could see."),
    Field("parameters_on", "text", "The device that held the parameters."),
    Field("simulated", "true or false", "The device was a simulation."),
    Field("rank", "integer", "The rank of the process, from 0."),
    Field("world_size", "integer", "How many ranks there were."),
    Field("detail", "text", "How much was kept of each tensor: stats, sketch or tensors."),
    Field("phases", "list", "The phases that were captured."),
    Field("steps_requested", "text", "The steps that were asked for, as in 0:3."),
    Field("versions", "object", "Versions of Python, libraries and drivers."),
    Field("environment", "object", "Environment variables that change numbers, where they were set."),
    Field("flags", "object", "Switches of torch that change numbers: deterministic algorithms, TF32, HF32, others."),
    Field("seeds", "object", "Seeds and digests of the states of the random number generators."),
    Field("autocast", "text or null", "The dtype of autocast, where it was on."),
    Field("command", "list", "The command line of the script."),
    Field("script_hash", "text", "SHA-256 of the script."),
    Field("optimizers", "list", "The classes of the optimizers."),
    Field("started", "text", "When the run began."),
    Field("ended", "text", "When the run ended."),
    Field("outcome", "text", "How it ended; `unfinished` while it runs, and for ever if it was killed."),
    Field("steps_seen", "integer", "How many steps the run took, captured or not."),
    Field("notes", "list", "The troubles that the capture met."),
    Field("checksum", "text", "Hash of the object without this last entry."),
)

PHASES = tuple(Phase)
_PHASE_DTYPE = h5py.enum_dtype({phase.value: number for number, phase in enumerate(PHASES)}, basetype="u1")


def table_dtype(fields: tuple[Field, ...]) -> np.dtype[np.void]:
    """The numpy dtype of a table's rows."""
    return np.dtype(
        [(field.name, _PHASE_DTYPE if field.dtype == "enum" else np.dtype(field.dtype)) for field in fields]
    )


INDEX_DTYPE = table_dtype(INDEX_FIELDS)
MODULE_DTYPE = table_dtype(MODULE_FIELDS)
TIMELINE_DTYPE = table_dtype(TIMELINE_FIELDS)


def step_group(step: int) -> str:
    """The name of the group that holds a step."""
    return "init" if step == INIT_STEP else f"step{step}"


def step_number(group: str) -> int | None:
    """The step that a group of this name holds, None for other names."""
    digits = group.removeprefix("step")
    return int(digits) if digits != group and digits.isascii() and digits.isdigit() else None


def escape_name(name: str) -> str:
    """A name as one level of an HDF5 path, which splits at `/` and knows `.` as "here"."""
    if name in {"", "."}:
        return "%" if not name else "%2E"
    return name.replace("%", "%25").replace("/", "%2F").replace("\0", "%00")


def escape_slot(slot: str, micro: int, call: int) -> str:
    """A slot as one level of an HDF5 path, with its micro-step and call where they are not 0."""
    escaped = escape_name(slot).replace("@", "%40").replace("#", "%23")
    return escaped + (f"@{micro}" if micro else "") + (f"#{call}" if call else "")


def value_path(key: TensorKey) -> tuple[str, ...]:
    """The levels of the path under which the values of a record are kept."""
    phase = () if key.step == INIT_STEP else (key.phase.value,)
    return (step_group(key.step), *phase, escape_name(key.name), escape_slot(key.slot, key.micro, key.call))


def encode_text(text: str) -> bytes:
    """A text as it stands in /names, whose texts end at a NUL."""
    return text.replace("%", "%25").replace("\0", "%00").encode("utf-8", "surrogatepass")


def decode_text(data: bytes) -> str:
    """A text from /names."""
    return data.decode("utf-8", "surrogatepass").replace("%00", "\0").replace("%25", "%")
