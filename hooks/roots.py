"""Find the module that is being trained, and give every module and parameter its name.

The root is the outermost called module that holds all parameters of an optimizer, or, where only its
children are called, the smallest module that holds them. (Not always the smallest: the parameters of a
language model with tied weights all lie in its body, but the head's work belongs to the root too.)
"""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
from torch import nn

WRAPPERS = (
    ("torch.nn.parallel.data_parallel", "DataParallel", "module"),
    ("torch.nn.parallel.distributed", "DistributedDataParallel", "module"),
    ("torch.distributed.fsdp.fully_sharded_data_parallel", "FullyShardedDataParallel", "_fsdp_wrapped_module"),
    ("torch._dynamo.eval_frame", "OptimizedModule", "_orig_mod"),
    (
        "torch.distributed.algorithms._checkpoint.checkpoint_wrapper",
        "CheckpointWrapper",
        "_checkpoint_wrapped_module",
    ),
)
"""(module, class, attribute of the wrapped module); found in `sys.modules`, since importing some is slow."""

PARALLEL = ("DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "fully_shard")
"""What runs a model in several processes or on several devices; the other wrappers do not."""

NO_MODULE = "<parameters>"
"""The name of what owns a parameter of an optimizer that belongs to no known module."""

Owner = tuple[str, str]
"""(name of the owning module, local name of the parameter or buffer)."""


@dataclass(slots=True)
class Root:
    """One outermost module with the names of all that it holds, by identity.

    `kept` says that a backward has followed one of its calls; `adopted` that it was found through its optimizer
    before it was called. A parameter that has been here keeps its name for as long as it lives, also while another
    tensor stands in its place (`torch.func.functional_call`).
    """

    reference: weakref.ref[nn.Module]
    prefix: str
    trainable: bool
    kept: bool = False
    adopted: bool = False
    names: dict[int, str] = field(default_factory=dict)
    owners: dict[int, Owner] = field(default_factory=dict)
    class_names: dict[str, str] = field(default_factory=dict)
    _parameters: dict[int, weakref.ref[torch.Tensor]] = field(default_factory=dict)

    def read(self) -> None:
        """Name every module, parameter and buffer as they are now."""
        module = self.reference()
        if module is None:
            return
        self.names.clear()
        before, self.owners = self.owners, {}
        itself = self.prefix or f"<{class_name(unwrapped(module))}>"
        for path, member in _named(module, ""):
            name = itself if not path else f"{self.prefix}.{path}" if self.prefix else path
            if id(member) in self.names:
                continue
            self.names[id(member)] = name
            self.class_names[name] = class_name(member)
            tensors = (*member._parameters.items(), *member._buffers.items())
            for local, tensor in tensors:
                if tensor is not None:
                    self.owners.setdefault(id(tensor), (name, local))
            own = (one for one in member._parameters.values() if one is not None and one.grad_fn is None)
            self._parameters.update((id(one), weakref.ref(one)) for one in own)
        self._parameters = {number: one for number, one in self._parameters.items() if one() is not None}
        for number in self._parameters.keys() - self.owners.keys():
            self.owners[number] = before[number]


class Roots:
    """All roots of a run and the optimizers that tell which of them are trained."""

    def __init__(self) -> None:
        self.known: list[Root] = []
        self._optimizers: list[weakref.ref[torch.optim.Optimizer]] = []
        self._threads: list[int] = []
        self._by_module: dict[int, Root] = {}
        self._without_holder: set[frozenset[int]] = set()
        self._strangers: dict[int, Owner] = {}

    @property
    def optimizer_seen(self) -> bool:
        """Whether any torch optimizer has been made."""
        return bool(self._optimizers)

    @property
    def living_optimizers(self) -> int:
        """How many optimizers that were made are still there."""
        return sum(one() is not None for one in self._optimizers)

    def add_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Take note of an optimizer; known roots that hold its parameters are trained."""
        for number, reference in enumerate(self._optimizers):
            if reference() is optimizer:
                self._threads[number] = threading.get_ident()
                return
        self._threads.append(threading.get_ident())
        self._optimizers.append(weakref.ref(optimizer))
        parameters = optimizer_parameters(optimizer)
        for root in self.known:
            root.trainable = root.trainable or any(parameter in root.owners for parameter in parameters)

    def resolve(self, module: nn.Module) -> Root:
        """The root that an outermost call of this module belongs to."""
        root = self._by_module.get(id(module))
        if root is not None and root.reference() is not None:
            return root
        inner = unwrapped(module)
        self.known = [known for known in self.known if known.reference() is not None]
        for known in self.known:
            if id(inner) in known.names:
                known.adopted = known.adopted and known.reference() is not inner
                self._by_module[id(module)] = known
                return known
        root = self._new_root(inner)
        self._by_module[id(module)] = root
        return root

    def has(self, module: nn.Module) -> bool:
        """Whether a module belongs to a known root."""
        return any(id(module) in root.names and root.reference() is not None for root in self.known)

    def adopt(self) -> list[Root]:
        """Find the modules that an optimizer trains though neither they nor what holds them has been called yet."""
        found = []
        for holder in self.holders_of_unknown():
            found.append(self._add(holder, trainable=True))
            found[-1].adopted = True
        return found

    def holders_of_unknown(self) -> list[nn.Module]:
        """The greatest modules that hold nothing but trained parameters that no root has."""
        trained = {id(one): one for optimizer in self._optimizers for one in _parameters_of_living(optimizer)}
        missing = {one for one in trained if not any(one in root.owners for root in self.known)}
        return _greatest_within(missing) if missing else []

    def optimizer_number(self, optimizer: torch.optim.Optimizer) -> int:
        """The position of an optimizer among all that were made in the run."""
        return next((number for number, one in enumerate(self._optimizers) if one() is optimizer), 0)

    def owner(self, tensor: torch.Tensor) -> Owner:
        """The owning module and local name of a parameter or buffer; `<parameters>` for one of no known module."""
        for root in self.known:
            found = root.owners.get(id(tensor))
            if found is not None:
                return found
        if id(tensor) not in self._strangers:
            self._strangers = {id(one): (NO_MODULE, place) for place, one in self._positions()}
            self._strangers.setdefault(id(tensor), (NO_MODULE, "unknown"))
        return self._strangers[id(tensor)]

    def name_of(self, module: nn.Module | None) -> str:
        """The name of a module of any known root, empty for others."""
        return next((root.names[id(module)] for root in self.known if id(module) in root.names), "")

    def made_optimizer(self, thread: int) -> bool:
        """Whether an optimizer was made or used by this thread."""
        return thread in self._threads

    def optimized(self) -> list[torch.Tensor]:
        """All parameters of the optimizers that this thread made or uses; others may change them at any moment."""
        mine = threading.get_ident()
        optimizers = [one() for one, thread in zip(self._optimizers, self._threads, strict=True) if thread == mine]
        return [
            parameter for optimizer in optimizers if optimizer is not None for parameter in parameters_of(optimizer)
        ]

    def _positions(self) -> Iterator[tuple[str, torch.Tensor]]:
        """`group0.3` for the fourth parameter of an optimizer's first group."""
        for reference in self._optimizers:
            optimizer = reference()
            for number, group in enumerate(optimizer.param_groups if optimizer is not None else ()):
                for place, parameter in enumerate(group["params"]):
                    yield f"group{number}.{place}", parameter

    def _new_root(self, module: nn.Module) -> Root:
        holder, trainable = self._holder(module)
        inside = {id(member) for member in holder.modules()}
        self.known = [root for root in self.known if not (root.adopted and id(root.reference()) in inside)]
        return self._add(holder, trainable=trainable)

    def _add(self, holder: nn.Module, *, trainable: bool) -> Root:
        first = trainable and not any(root.trainable and not root.prefix for root in self.known)
        prefix = "" if first else self._free_prefix(holder)
        root = Root(weakref.ref(holder), prefix, trainable)
        root.read()
        self.known.append(root)
        return root

    def _holder(self, module: nn.Module) -> tuple[nn.Module, bool]:
        """The root for this outermost module, and whether an optimizer trains it."""
        mine = {id(parameter) for parameter in module.parameters()}
        alive = [optimizer for reference in self._optimizers if (optimizer := reference()) is not None]
        touching = [wanted for optimizer in alive if (wanted := optimizer_parameters(optimizer)) & mine]
        if not touching:
            needs_gradient = any(parameter.requires_grad for parameter in module.parameters())
            return module, needs_gradient and not alive
        if any(parameters <= mine for parameters in touching):
            return module, True
        needed = frozenset(set.union(*touching))
        if needed in self._without_holder:
            return module, True
        holder = _smallest_holding(needed, module)
        if holder is None:
            self._without_holder.add(needed)
        return holder or module, True

    def _free_prefix(self, module: nn.Module) -> str:
        taken = {name for root in self.known for name in (root.prefix, *root.names.values())}
        name = class_name(module)
        prefix, number = f"<{name}>", 1
        while prefix in taken:
            number += 1
            prefix = f"<{name}#{number}>"
        return prefix


def optimizer_parameters(optimizer: torch.optim.Optimizer) -> set[int]:
    """The identities of all parameters that an optimizer updates."""
    return {id(parameter) for parameter in parameters_of(optimizer)}


def parameters_of(optimizer: torch.optim.Optimizer) -> Iterator[torch.Tensor]:
    """All parameters that an optimizer updates, group by group."""
    for group in optimizer.param_groups:
        yield from group["params"]


def _parameters_of_living(reference: weakref.ref[torch.optim.Optimizer]) -> Iterator[torch.Tensor]:
    optimizer = reference()
    if optimizer is not None:
        yield from parameters_of(optimizer)


def living_optimizers() -> list[torch.optim.Optimizer]:
    """The optimizers that were made before anybody watched."""
    return [found for found in gc.get_objects() if issubclass(type(found), torch.optim.Optimizer)]


def class_name(module: nn.Module) -> str:
    """The name of a module's class; FSDP2 gives a module a class of its own that is made of the one it had."""
    kind = type(module)
    sharded = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    if isinstance(sharded, type) and issubclass(kind, sharded):
        kind = next((base for base in kind.__bases__ if base is not sharded), kind)
    return kind.__name__


def unwrapped(module: nn.Module) -> nn.Module:
    """The module inside wrappers such as DistributedDataParallel."""
    while True:
        inner = _wrapped_child(module)
        if inner is None:
            return module
        module = inner


def parallel_wrappers(module: nn.Module) -> tuple[str, ...]:
    """The classes that run an outermost module in parallel, the outer one first; FSDP2 as `fully_shard`."""
    found = []
    inner: nn.Module | None = module
    while inner is not None:
        module, inner = inner, _wrapped_child(inner)
        if inner is not None:
            found.append(type(module).__name__)
    sharded = getattr(sys.modules.get("torch.distributed.fsdp"), "FSDPModule", None)
    if isinstance(sharded, type) and isinstance(module, sharded):
        found.append("fully_shard")
    return tuple(name for name in found if name in PARALLEL)


def _wrapped_child(module: nn.Module) -> nn.Module | None:
    for home, class_name, attribute in WRAPPERS:
        wrapper = getattr(sys.modules.get(home), class_name, None)
        if isinstance(wrapper, type) and isinstance(module, wrapper):
            inner = module._modules.get(attribute)
            return inner if isinstance(inner, nn.Module) else None
    return None


def _named(module: nn.Module, path: str) -> Iterator[tuple[str, nn.Module]]:
    """(path, module) for a module and all below it, wrapper levels left out."""
    inner = unwrapped(module)
    yield path, inner
    for name, child in inner._modules.items():
        if child is not None:
            yield from _named(child, f"{path}.{name}" if path else name)


def _greatest_within(wanted: set[int]) -> list[nn.Module]:
    """The live modules whose trained parameters are all wanted ones, none of them inside another."""
    inside: dict[int, nn.Module] = {}
    for candidate in gc.get_objects():
        if _is_module(candidate) and unwrapped(candidate) is candidate:
            trained = [id(parameter) for parameter in candidate.parameters() if parameter.requires_grad]
            if trained and wanted.issuperset(trained):
                inside[id(candidate)] = candidate
    members = {id(one) for module in inside.values() for one in module.modules() if one is not module}
    return [module for number, module in inside.items() if number not in members]


def _smallest_holding(wanted: frozenset[int], member: nn.Module) -> nn.Module | None:
    """Among all live modules that contain the member, the smallest that holds the parameters."""
    parents: dict[int, list[nn.Module]] = {}
    for candidate in gc.get_objects():
        if _is_module(candidate):
            for child in candidate._modules.values():
                if child is not None:
                    parents.setdefault(id(child), []).append(candidate)
    best: tuple[int, nn.Module] | None = None
    pending, seen = [member], {id(member)}
    while pending:
        for parent in parents.get(id(pending.pop()), ()):
            if id(parent) in seen:
                continue
            seen.add(id(parent))
            pending.append(parent)
            size = sum(1 for _ in parent.modules())
            if (best is None or size < best[0]) and wanted <= {id(parameter) for parameter in parent.parameters()}:
                best = (size, parent)
    return best[1] if best else None


def _is_module(candidate: object) -> bool:
    """Whether an arbitrary live object is a module, without waking lazy proxies."""
    return issubclass(type(candidate), nn.Module) and "_modules" in getattr(candidate, "__dict__", {})
