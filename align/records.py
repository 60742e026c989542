"""The records that every part of align makes, reads or prints: one concept each, nothing mutable."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

INIT_STEP = -1
"""The step number of the group `init`, which stands before step 0."""


class Word(str, Enum):
    """An enumeration whose values are the words that files and reports print."""

    def __str__(self) -> str:
        return str(self.value)


class Phase(Word):
    """When a tensor was seen."""

    INIT = "init"
    INPUT = "input"
    FORWARD = "forward"
    LOSS = "loss"
    BACKWARD = "backward"
    GRADIENT = "gradient"
    UPDATE = "update"
    PARAM = "param"
    OPTIMIZER = "optimizer"
    SCALER = "scaler"
    RNG = "rng"


class Detail(Word):
    """How much of each tensor is kept; each level holds all of the one before."""

    STATS = "stats"
    SKETCH = "sketch"
    TENSORS = "tensors"


class Verdict(Word):
    """The outcome of `align diff`."""

    ALIGNED = "aligned"
    DIVERGED = "diverged"
    INCOMPARABLE = "incomparable"


class Health(Word):
    """The outcome of `align inspect`."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    UNKNOWN = "unknown"


class State(Word):
    """What is known of one question about a run: good, bad, not to be told, or not to be asked of this run.

    `odd` is what a warning or a note tells of: it makes no run unhealthy.
    """

    GOOD = "good"
    ODD = "odd"
    BAD = "bad"
    UNKNOWN = "unknown"
    ABSENT = "absent"


class Severity(Word):
    """How much a finding matters: an error parts the runs, a warning may, a note explains."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Kind(Word):
    """In which way a pair differs."""

    VALUE = "value"
    NONFINITE = "nonfinite"
    DTYPE = "dtype"
    SHAPE = "shape"
    MISSING = "missing"
    EXTRA = "extra"
    EQUALITY = "equality"


class Aspect(Word):
    """A part of a difference, relative to the norm of the reference's tensor.

    All of it; the part along the reference's tensor (a common factor); the part along the constant tensor (one number
    added everywhere); the largest bucket of its sketch (a few elements that are far off); a factor or a constant of one
    channel (replays only).
    """

    SIZE = "size"
    SCALE = "scale"
    SHIFT = "shift"
    PEAK = "peak"
    CHANNEL = "channel"


class Origin(Word):
    """Where a difference enters the run."""

    MODULE = "module"
    FUNCTIONAL = "functional"
    INPUT = "input"
    WEIGHTS = "weights"
    LOSS = "loss"
    OPTIMIZER = "optimizer"
    UNKNOWN = "unknown"


class Status(Word):
    """What the comparison says of one pair."""

    EQUAL = "equal"
    WITHIN = "within"
    ORIGIN = "origin"
    PROPAGATED = "propagated"
    NONFINITE = "nonfinite"
    NOT_JUDGED = "not judged"


Owner: TypeAlias = tuple[str, str]
"""The module that owns a parameter, and its local name; of a state, a gradient or an output its slot."""


@dataclass(frozen=True, slots=True)
class TensorKey:
    """The name of one tensor at one point of a run; two runs are paired by it."""

    step: int
    phase: Phase
    name: str
    slot: str
    micro: int = 0
    call: int = 0

    def __str__(self) -> str:
        place = "before step 0" if self.step == INIT_STEP else f"step {self.step}"
        micro = f", micro {self.micro}" if self.micro else ""
        call = f", call {self.call}" if self.call else ""
        return f"{place}{micro}, {self.phase}: {self.name} {self.slot}{call}"

    @property
    def owner(self) -> Owner:
        """The module and the slot."""
        return self.name, self.slot


FactValue: TypeAlias = float | int | bool | str | None
"""What a fact may be; None says that it was looked for and is not known."""


@dataclass(frozen=True, slots=True)
class TensorStats:
    """Statistics of one tensor, computed in float32 or better whatever its dtype.

    `minimum`, `maximum`, `total` and `total_squares` are over the finite elements only (0.0 where there
    are none); `subnormals` is counted for 16-bit floats and is 0 for others.
    """

    count: int
    minimum: float = 0.0
    maximum: float = 0.0
    total: float = 0.0
    total_squares: float = 0.0
    zeros: int = 0
    nans: int = 0
    positive_infs: int = 0
    negative_infs: int = 0
    subnormals: int = 0

    @property
    def nonfinite(self) -> int:
        """How many elements are NaN or infinite."""
        return self.nans + self.positive_infs + self.negative_infs

    @property
    def norm(self) -> float:
        """The L2 norm of the finite elements."""
        return math.sqrt(max(self.total_squares, 0.0))

    @property
    def rms(self) -> float:
        """The root mean square of the finite elements."""
        finite = self.count - self.nonfinite
        return self.norm / math.sqrt(finite) if finite else 0.0

    @property
    def mean(self) -> float:
        """The mean of the finite elements."""
        finite = self.count - self.nonfinite
        return self.total / finite if finite else 0.0

    @property
    def absolute_maximum(self) -> float:
        """The greatest magnitude among the finite elements."""
        return max(abs(self.minimum), abs(self.maximum))


@dataclass(frozen=True, slots=True, eq=False)
class TensorRecord:
    """All that is known of one tensor at one point.

    `order` counts the records of a step in execution order. `same_as` is the order of an earlier record of
    the same step that is the very same tensor. `hash` is the 64-bit hash of the logical bytes where equality
    matters (integers, batches, initial parameters), else None. `sketch` is float32, K or fewer numbers
    (see `align.sketch`); `resolution` is its own error relative to the tensor's norm.
    `within` and `within_call` name the module call whose code was running (an empty name is the script); of what a
    model was given (phase `input`), the call that was given it.
    `total` marks a gradient that holds the contributions of other consumers too. `recomputed` marks what an
    activation checkpoint computed again inside the backward: it carries the micro-step and call of the forward that
    it repeats. `layout` is empty for a plain row-major tensor, else `channels_last`, `strided`, `sparse_coo`, the
    format of a device, ... `row_hashes` are the hashes of `tensor[i]` of a batch (uint64), `exponents` the number of
    elements of each exponent code of a float (int64; 32 codes for float16, 256 for bfloat16 and float32).
    """

    key: TensorKey
    order: int
    dtype: str
    shape: tuple[int, ...]
    stats: TensorStats | None = None
    hash: int | None = None
    sketch: NDArray[np.float32] | None = None
    resolution: float = 0.0
    same_as: int | None = None
    within: str = ""
    within_call: int = 0
    total: bool = False
    has_values: bool = False
    recomputed: bool = False
    layout: str = ""
    row_hashes: NDArray[np.uint64] | None = None
    exponents: NDArray[np.int64] | None = None

    @property
    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Fact:
    """One number or word of a step that is no tensor: a hyper-parameter, a loss scale, a mode of a module.

    The key says where it belongs as that of a record does, as in (3, optimizer, `group0`, `weight_decay`).
    """

    key: TensorKey
    value: FactValue


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """What the capture learned of one module.

    `compute_dtype` is the coarsest floating dtype among all tensors that its forward made, inside included;
    `matmul` and `conv` say whether matrix products or convolutions ran in it (hence TF32 or HF32 may matter);
    `piecewise` whether its backward depends on decisions (ReLU, max-pool, top-k) that rounding can flip, `chooses`
    whether its forward does too: it takes elements or branches by their order. `normalises` says that a mean is taken
    out in it or divided by a deviation. `config` are
    its public plain attributes (eps, p, approximate, ...) by name; the values are numbers, words, booleans, null or
    lists of those.
    """

    name: str
    class_name: str
    leaf: bool = True
    compute_dtype: str | None = None
    matmul: bool = False
    conv: bool = False
    piecewise: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    chooses: bool = False
    normalises: bool = False


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The facts of one run that a comparison needs or a reader asks for.

    `flags` hold the switches that change numbers (see `docs/file-format.md`); `outcome` is `finished`,
    `exception: ...`, `exit code ...`, `the capture ended in step ...` or `unfinished` (still running, or killed).
    `notes` are the troubles met.
    `same_start` says what was done on purpose to make the run comparable (`seed`, `deterministic`, `no_dropout`,
    `init_from`, `batches_from`), empty for a run as it is. `perturbed` says of a run made with --perturb by what its
    weights and inputs were moved and how many (`seed`, `unit`, `by`, `weights`, `inputs`, `integers`, ...). `kept` are
    the values that were kept whatever the detail: init, batches. `loaders` are the settings of the DataLoaders in the
    order of their first use. `fallbacks` are the operators that the device left to the CPU, with the number of their
    calls in the first captured step (0 where only the device's own warning told). `classes` say of each class of
    modules that ran whose code its forward is: `code` is equal for equal code (`torch` for torch's own, empty where
    that is not known), `random` says that it may draw random numbers. `loads` are the calls of `load_state_dict`: the
    step, how many keys were given, how many of the module's were missing, how many given ones it has not, examples.
    """

    align_version: str = ""
    format_version: int = 0
    device_type: str = "cpu"
    device_name: str = ""
    device_count: int = 0
    parameters_on: str = ""
    simulated: bool = False
    rank: int = 0
    world_size: int = 1
    detail: str = "sketch"
    phases: tuple[str, ...] = ()
    steps_requested: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, Any] = field(default_factory=dict)
    seeds: Mapping[str, Any] = field(default_factory=dict)
    autocast: str | None = None
    command: tuple[str, ...] = ()
    script_hash: str = ""
    optimizers: tuple[str, ...] = ()
    started: str = ""
    ended: str = ""
    outcome: str = "unfinished"
    steps_seen: int = 0
    notes: tuple[str, ...] = ()
    modules_requested: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    same_start: Mapping[str, Any] = field(default_factory=dict)
    loaders: tuple[Mapping[str, Any], ...] = ()
    fallbacks: Mapping[str, int] = field(default_factory=dict)
    process_id: int = 0
    host: str = ""
    perturbed: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    loads: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """One row for every step of the run, captured or not; what was not seen is NaN.

    `loss` is the mean over the step's backward calls of the scalar that backward was called on, before the
    loss scale (their sum where the script itself has divided each by how many there are); `loss_scale` is the factor
    that it was multiplied by, by a GradScaler or by hand, `loss_scale_after` the scaler's of the next step.
    `gradient_norm` is the L2 norm of all gradients as the optimizer took them; `clip_norm` is the norm that was
    found when they were clipped, `clip_limit` the greatest that was allowed. `seconds` is from the end of the step
    before to the end of this one. `overflow` is the flag of a device that saturates instead of making infinities.
    """

    step: int
    loss: float
    learning_rate: float
    loss_scale: float
    gradient_norm: float
    seconds: float
    skipped: bool
    nonfinite: bool
    micros: int
    optimizer: str
    loss_scale_after: float = math.nan
    clip_norm: float = math.nan
    clip_limit: float = math.nan
    overflow: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """One pair and what the comparison says of it.

    `relative_l2` is ||candidate - reference|| / ||reference|| (after undoing the loss scale), None where it
    cannot be had. `floor` is the relative L2 difference that rounding alone may cause here, at least
    `unit`, the unit roundoff of what was computed. `times_floor` is their quotient; it counts as a
    difference above `limit`. Where the `aspect` is not the size, `part` is the part of the difference that was held
    against the floor.
    """

    reference: TensorRecord
    candidate: TensorRecord
    status: Status
    relative_l2: float | None = None
    unit: float = 0.0
    floor: float = 0.0
    times_floor: float | None = None
    limit: float = 0.0
    aspect: Aspect = Aspect.SIZE
    part: float | None = None

    @property
    def key(self) -> TensorKey:
        """The key of the reference's record."""
        return self.reference.key


@dataclass(frozen=True, slots=True)
class Place:
    """Where a finding points; fields that do not apply are None. `rank` is told where several ranks were read."""

    step: int | None = None
    phase: str | None = None
    name: str = ""
    slot: str | None = None
    micro: int = 0
    call: int = 0
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first tensor that really differs, in its size or in the aspect that stands out from rounding."""

    step: int
    micro: int
    phase: Phase
    name: str
    slot: str
    call: int
    kind: Kind
    origin: Origin
    relative_l2: float | None
    floor: float | None
    times_floor: float | None
    aspect: Aspect = Aspect.SIZE

    @property
    def key(self) -> TensorKey:
        """The name of the tensor; of what the timelines tell, no comparison has it."""
        return TensorKey(self.step, self.phase, self.name, self.slot, self.micro, self.call)


@dataclass(frozen=True, slots=True)
class Finding:
    """One diagnosis. `summary` and `advice` are the English sentences made from `arguments`.

    `explained_by` is the code of the finding whose consequence this one is, empty for a cause.
    """

    code: str
    label: str
    severity: Severity
    summary: str
    advice: str
    where: Place = field(default_factory=Place)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    explained_by: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What one run says to one question, in a sentence; of what cannot be told: what would have to be captured."""

    question: str
    state: State
    sentence: str


class Shown(Word):
    """How the cells of a column are written; the JSON has the numbers as they are."""

    TEXT = "text"
    NAME = "name"
    NUMBER = "number"
    COUNT = "count"
    SHARE = "share"
    RELATIVE = "relative"
    TIMES = "times"
    LOSS = "loss"
    SCALE = "scale"
    SECONDS = "seconds"


class Curve(Word):
    """The curves of a run over its steps, under which a table may stand."""

    LOSS = "loss"
    LOSS_SCALE = "loss_scale"
    GRADIENT_NORM = "gradient_norm"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table: its title, and how its cells are written.

    `text` is a sentence or a word, `name` the name of a module or a tensor, `number` a value of a tensor, `count` a
    whole number (also a step), `share` a part of 1 that is shown as percent, `relative` a difference with two digits,
    `times` a factor of a limit, `loss` a loss, `scale` a loss scale, `seconds` a time.
    """

    title: str
    shown: Shown = Shown.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """What an analysis has found, row by row, the row that matters most first.

    `name` is a word of letters and underscores, unique within a result: the key of the JSON. `lead` says in a sentence
    how to read it. A cell that is None is not known. `question` is that of the reply that the table backs, `curve` the
    curve under which it stands; without one it has a section of its own.
    """

    name: str
    title: str
    lead: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[FactValue, ...], ...]
    question: str = ""
    curve: Curve | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the comparison could see: the smallest relative effect on a module's output, and why.

    `smallest_visible_factor` is how far from 1 a common factor of an output is seen.
    """

    smallest_visible_effect: float | None
    precision: str
    floor_method: str = "two files"
    smallest_visible_factor: float | None = None


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """How large the elements of one tensor are; the numbers of elements are those of its dtype.

    `zeros`, `subnormals` and `nonfinite` (NaN and infinities) are numbers of elements, `largest` is the greatest
    finite magnitude. `codes` are the numbers of elements of each exponent code (32 of float16, 256 of bfloat16 and
    float32), empty where they were not counted.
    """

    dtype: str
    count: int
    zeros: int
    subnormals: int
    nonfinite: int
    largest: float
    codes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Exponents:
    """Magnitudes of one tensor against what its format can hold, of both runs; one run is the candidate."""

    key: TensorKey
    candidate: Magnitudes
    reference: Magnitudes | None = None


@dataclass(frozen=True, slots=True)
class PairedNames:
    """Modules whose names are not equal and that were paired in one way.

    `reference` and `candidate` are what their names begin with, up to where they are alike; an `N` stands for any
    number, an empty one for the begin of all names. `method` is `rule` (given by the user), `root` (the lone roots of
    both runs) or `aligned`; `by` are the likenesses that speak for it, `confidence` from 0 to 1 is that of the least
    sure of them.
    """

    reference: str
    candidate: str
    modules: int
    method: str
    confidence: float
    by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PairedCalls:
    """A module (an empty name: the micro-steps) that one run calls more often in a step, its calls aligned.

    `pairs` are the numbers of the calls of reference and candidate that are pairs, `totals` how many calls each made.
    """

    step: int
    micro: int
    name: str
    pairs: tuple[tuple[int, int], ...]
    totals: tuple[int, int]
    confidence: float


@dataclass(frozen=True, slots=True)
class Pairing:
    """How the records of both runs were paired where that is not by equal names and numbers.

    `reference_steps` and `candidate_steps` are all steps of both captures, of which the common ones are compared.
    `tensors` are those of paired modules, and of what the model was given, that have other names in the candidate and
    were paired by their values: (reference, candidate), each a module or argument and a slot. `notes` are sentences:
    rules that did nothing, what was not tried. `shards` is the number of tensors of which one run holds a part only.
    """

    names: tuple[PairedNames, ...] = ()
    calls: tuple[PairedCalls, ...] = ()
    tensors: tuple[tuple[str, str], ...] = ()
    reference_steps: tuple[int, ...] = ()
    candidate_steps: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    shards: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class DiffResult:
    """All that `align diff` knows; the text, the JSON and the page are renderings of it.

    `comparisons` are in execution order of the reference run. `only_reference` and `only_candidate` are the
    keys without an answer. `counts` has the number of comparisons per status, and `paired`,
    `only_reference`, `only_candidate`. `exponents` are the tensors that come nearest to the limits of their formats,
    the first that differs before them.
    """

    reference_path: str
    candidate_path: str
    reference: RunInfo
    candidate: RunInfo
    verdict: Verdict
    summary: str
    first_divergence: Divergence | None
    findings: tuple[Finding, ...]
    resolution: Resolution
    comparisons: tuple[Comparison, ...]
    only_reference: tuple[TensorKey, ...] = ()
    only_candidate: tuple[TensorKey, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    reference_timeline: tuple[TimelineRow, ...] = ()
    candidate_timeline: tuple[TimelineRow, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    pairing: Pairing = field(default_factory=Pairing)
    exponents: tuple[Exponents, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class InspectResult:
    """All that `align inspect` knows of one run, or of the ranks of one job.

    `paths` are the files that were read, rank by rank; `run` and `timeline` are those of the first. `replies` answer
    the questions in the order of a training step. `first` is where the first thing goes wrong, None for a run in which
    nothing does. `counts` has the numbers of steps, captured steps, records and findings. `tables` are what the
    analyses found, in the order of the questions; `captured` are the steps whose tensors were kept. `exponents` are
    the tensors that come nearest to the limits of their formats.
    """

    paths: tuple[str, ...]
    run: RunInfo
    verdict: Health
    summary: str
    findings: tuple[Finding, ...]
    replies: tuple[Reply, ...]
    timeline: tuple[TimelineRow, ...] = ()
    modules: tuple[ModuleInfo, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    first: Place | None = None
    tables: tuple[Table, ...] = ()
    captured: tuple[int, ...] = ()
    exponents: tuple[Exponents, ...] = ()
