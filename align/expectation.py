"""What is expected of a record before it is measured, and what that depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from align.drift import ParameterErrors
from align.flow import Flow
from align.records import ModuleInfo, Origin, TensorRecord


@dataclass(frozen=True, slots=True)
class Expectation:
    """What is expected of a record before it is measured.

    `error` is the difference already there, `factor` by how much cancellation enlarges it, `roundings` how many
    unit roundoffs of float32 or better the code itself may add. A larger difference
    starts in `origin`, in the code of `owner` (after `sibling`, where it lies between two children; `argument` is
    an integer argument that differs already). `precise_in` names the module whose precision counts, `terms` is the
    length of the sums that made the record, `unseen` the number of modules of a model of which the code before was
    not captured. `judged` is False where nothing is known of what came before, and
    `flips` holds the forward error where decisions such as ReLU's may have flipped.
    """

    error: float
    origin: Origin
    owner: str
    precise_in: str
    factor: float = 1.0
    roundings: float = 0.0
    sibling: str = ""
    argument: str = ""
    judged: bool = True
    terms: int = 0
    unseen: int = 0
    flips: float | None = None


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the expectation of a record depends on.

    `kept_of_gradients` is the factor between the gradients after backward and those that the optimizer takes, as far
    as the timeline knows it: the loss scale undone, and clipping.
    """

    flow: Flow
    parameters: ParameterErrors
    modules: Mapping[str, ModuleInfo]
    moving: bool = False
    kept_of_gradients: float = 1.0

    def knows_parameters(self, record: TensorRecord) -> bool:
        """Whether it is known how the parameters differed when the record was made.

        An optimizer that evaluates a closure (LBFGS) moves them between the micro-steps of one step.
        """
        return self.parameters.known and not (self.moving and record.key.micro > 0)

    def is_piecewise(self, name: str) -> bool:
        """Whether the backward of a module depends on decisions that rounding can flip."""
        return name in self.modules and self.modules[name].piecewise

    def chooses(self, name: str) -> bool:
        """Whether the code of a module, not that of a module inside it, takes elements or branches by their order."""
        return (
            name in self.modules
            and self.modules[name].chooses
            and not any(inner.chooses for inner in self._inside(name))
        )

    def normalises(self, name: str) -> bool:
        """Whether the code of a module, not that of a module inside it, takes a mean out or divides by a deviation."""
        return (
            name in self.modules
            and self.modules[name].normalises
            and not any(inner.normalises for inner in self._inside(name))
        )

    def _inside(self, name: str) -> Iterator[ModuleInfo]:
        prefix = "" if name.startswith("<") else f"{name}."
        return (inner for other, inner in self.modules.items() if other != name and other.startswith(prefix))

    def multiplies(self, name: str) -> bool:
        """Whether matrix products or convolutions run in the module; of the script nothing is known."""
        return name not in self.modules or self.modules[name].matmul or self.modules[name].conv

    def uses_weights(self, name: str) -> bool:
        """Whether a module without children is of a kind that has weights, by what it computes or by its class."""
        return self.multiplies(name) or any(word in self.class_of(name) for word in ("Norm", "Embedding"))

    def borrows(self, name: str) -> bool:
        """Whether the module multiplies by a matrix that another module owns: tied weights."""
        module = self.modules.get(name)
        return module is not None and module.leaf and module.matmul and not self.parameters.has(name)

    def class_of(self, name: str) -> str:
        """The class of a module, empty where it is not known."""
        return self.modules[name].class_name if name in self.modules else ""

    def is_norm(self, name: str) -> bool:
        """Whether the module itself subtracts a mean or divides by a deviation."""
        if name not in self.modules:
            return False
        module = self.modules[name]
        products = module.matmul or module.conv
        return "Norm" in module.class_name or (module.leaf and module.normalises and not products)
