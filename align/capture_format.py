"""What a capture file holds, as one versioned literal from which the writer, the reader and the docs are made."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import h5py
import numpy as np
from numpy.typing import NDArray

from align.records import INIT_STEP, Phase, TensorKey

FORMAT_VERSION = 4
HISTORY = {
    1: "First version.",
    2: "Facts of a step, hashes of rows, exponent counts, layouts, recomputed records; configuration of modules; loss "
    "scale after the step, clipping and overflow in the timeline.",
    3: "Modules that choose among elements by their order; by what --perturb moved a run.",
    4: "Modules that normalise.",
}


class Entry(NamedTuple):
    """One object of the file."""

    path: str
    kind: str
    comment: str


class Field(NamedTuple):
    """One column of a table; `default` is its value in a file of a version before `since`."""

    name: str
    dtype: str
    comment: str
    since: int = 1
    default: Any = 0


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
    Entry("/stepN/facts", "table", "One row per fact of the step that is no tensor; only where there are any."),
    Entry("/stepN/row_hashes", "uint64", "Hashes of the rows of batches; only where there are any."),
    Entry("/stepN/exponents", "int64", "Elements per exponent code, record by record; only where they were counted."),
    Entry("/stepN/checksum", "uint64", "Hash of the step's number and of the hashes of all of the above."),
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
    Field(
        "within",
        "int32",
        "Module call whose code was running; an empty name is the script (position in /names). Of `input`: the call "
        "that was given it.",
    ),
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
    Field("recomputed", "bool", "An activation checkpoint computed it again inside the backward.", since=2),
    Field(
        "layout", "int32", "Order in memory, empty for row-major (position in /names), else -1.", since=2, default=-1
    ),
    Field("rows_start", "int64", "First of its hashes in `row_hashes`, -1 where there is none.", since=2, default=-1),
    Field("rows_length", "int32", "How many rows were hashed.", since=2),
    Field("exponents_start", "int64", "First of its counts in `exponents`, -1 if not counted.", since=2, default=-1),
    Field("exponents_length", "int32", "How many exponent codes its dtype has.", since=2),
)

FACT_FIELDS = (
    Field("phase", "enum", "Where the fact belongs, as in the index.", since=2),
    Field("name", "int32", "Module path, parameter group or other owner (position in /names).", since=2),
    Field("slot", "int32", "What is told of it, as in weight_decay (position in /names).", since=2),
    Field("micro", "int32", "Forward and backward pass inside the step, from 0.", since=2),
    Field("call", "int32", "Call inside the micro-step, from 0.", since=2),
    Field("kind", "uint8", "0 not known, 1 true or false, 2 integer, 3 real number, 4 text.", since=2),
    Field("number", "float64", "The value, unless it is a text.", since=2),
    Field("text", "int32", "The value of a text (position in /names), else -1.", since=2, default=-1),
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
    Field("config", "int32", "Its plain attributes as a JSON object (position in /names), else -1.", 2, -1),
    Field("chooses", "bool", "It takes elements or branches by their order (top-k, sort).", since=3, default=False),
    Field("normalises", "bool", "A mean is taken out in it, or divided by a deviation.", since=4, default=False),
    Field("checksum", "uint64", "Hash of the bytes of the row before this field."),
)

TIMELINE_FIELDS = (
    Field("step", "int64", "Step of the run, from 0."),
    Field("loss", "float64", "Mean loss of the step, before the loss scale; NaN here and below: not seen."),
    Field("learning_rate", "float64", "Learning rate of the first parameter group."),
    Field("loss_scale", "float64", "Factor of the GradScaler, or of a hand-made loss scale."),
    Field("gradient_norm", "float64", "L2 norm of all gradients."),
    Field("seconds", "float64", "From the end of the step before to the end of this one."),
    Field("skipped", "bool", "The optimizer took no step."),
    Field("nonfinite", "bool", "A loss or gradient was NaN or infinite."),
    Field("micros", "int32", "Forward and backward passes in the step."),
    Field("optimizer", "int32", "Class of the optimizer (position in /names)."),
    Field("loss_scale_after", "float64", "Factor of the GradScaler after the step.", 2, math.nan),
    Field("clip_norm", "float64", "L2 norm of all gradients that was found when they were clipped.", 2, math.nan),
    Field("clip_limit", "float64", "Greatest norm that clipping allowed.", 2, math.nan),
    Field(
        "overflow", "bool", "The device has saturated a number since its flag was last cleared.", since=2, default=False
    ),
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
    Field("modules_requested", "list", "The globs of --modules."),
    Field("kept", "list", "The values that were kept whatever the detail: init, batches."),
    Field("same_start", "object", "What was done to make the run comparable: seed, deterministic, no_dropout, ..."),
    Field("loaders", "list", "The settings of each DataLoader, in the order of first use."),
    Field("fallbacks", "object", "Operators that ran on the CPU for the device, with calls in the first step."),
    Field("process_id", "integer", "The process that wrote the file."),
    Field("host", "text", "The machine that it ran on."),
    Field("perturbed", "object", "By what --perturb moved the weights and inputs: seed, unit, weights, inputs, ..."),
    Field("classes", "object", "Of each class of modules: a digest of its code, whether it may draw random numbers."),
    Field("loads", "list", "Each call of load_state_dict: the step, how many keys were given, missing, unexpected."),
    Field("checksum", "text", "Hash of the object without this last entry."),
)

PHASES = tuple(Phase)
_PHASE_DTYPE = h5py.enum_dtype({phase.value: number for number, phase in enumerate(PHASES)}, basetype="u1")


def table_dtype(fields: tuple[Field, ...], version: int = FORMAT_VERSION) -> np.dtype[np.void]:
    """The numpy dtype of a table's rows in files of a version."""
    return np.dtype(
        [
            (field.name, _PHASE_DTYPE if field.dtype == "enum" else np.dtype(field.dtype))
            for field in fields
            if field.since <= version
        ]
    )


def upgraded(rows: NDArray[np.void], fields: tuple[Field, ...]) -> NDArray[np.void]:
    """The rows of a table of any version with all columns of this one."""
    present = set(rows.dtype.names or ())
    full = np.empty(len(rows), dtype=table_dtype(fields))
    for field in fields:
        full[field.name] = rows[field.name] if field.name in present else field.default
    return full


INDEX_DTYPE = table_dtype(INDEX_FIELDS)
FACT_DTYPE = table_dtype(FACT_FIELDS)
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
