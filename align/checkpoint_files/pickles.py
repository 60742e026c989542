"""Pickles read as data: nothing that they name is imported, made or called, so no code in them can run.

The opcodes are walked with `pickletools.genops`, which only splits bytes, over a stack of plain Python values. What a
pickle would import is a `Name`; what it would call gives a plain container for a few known names, a tensor for torch's
own functions (`align.checkpoint_files.torch_tensors`), and an `Opaque` for names that hold settings. Any other name is
refused: it may be code.
"""

from __future__ import annotations

import io
import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from align.sentences import say, told

MOST_LINE = 1 << 16
"""Bytes of a text line in a pickle: names are shorter."""

LARGEST_PICKLE = 1 << 28
"""Bytes of a pickle without its tensors: that of 100,000 tensors has about 20 MB."""


class Name(NamedTuple):
    """Something that the pickle would import."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


class Opaque(NamedTuple):
    """What a harmless call would have made, of which nothing is needed."""

    of: str


class RefusedPickleError(Exception):
    """The pickle names something that is not known to be data."""

    def __init__(self, name: Name) -> None:
        super().__init__(say("its pickle asks for '{}', which may be code", name))
        self.name = name


class BrokenPickleError(Exception):
    """The bytes are no pickle that torch could have written."""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What names mean: `calls` by what they are called with, `harmless` modules or names that become Opaque."""

    calls: Mapping[str, Callable[[tuple[Any, ...]], Any]]
    values: Mapping[str, Any]
    harmless: frozenset[str]

    def meaning(self, name: Name) -> Any:
        """A value for a name that stands for one, else the name itself; raises RefusedPickleError."""
        text = str(name)
        if text in self.values:
            return self.values[text]
        if text in self.calls or text in self.harmless:
            return name
        raise RefusedPickleError(name)


class Bounded:
    """A stream of a known size for `genops`: a damaged length must neither be allocated nor searched to the end."""

    def __init__(self, stream: io.BufferedIOBase, size: int) -> None:
        self._stream = stream
        self._size = min(size, stream.tell() + LARGEST_PICKLE)

    def read(self, count: int) -> bytes:
        """As a file does."""
        return self._stream.read(min(count, max(self._size - self._stream.tell(), 0)))

    def readline(self) -> bytes:
        """A line, or as much of it as may be."""
        return self._stream.readline(MOST_LINE)

    def tell(self) -> int:
        """As a file does."""
        return self._stream.tell()


_MARK = object()


class PickleReader:
    """Reads one pickle; `persistent` turns the ids of storages into values."""

    def __init__(self, vocabulary: Vocabulary, persistent: Callable[[Any], Any]) -> None:
        self._vocabulary = vocabulary
        self._persistent = persistent
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def read(self, stream: Bounded) -> Any:
        """The value; raises BrokenPickleError or RefusedPickleError. The stream then stands behind the pickle."""
        try:
            for opcode, argument, _ in pickletools.genops(stream):  # type: ignore[arg-type]
                if opcode.name == "STOP":
                    return self._stack.pop()
                self._step(opcode.name, argument)
        except RefusedPickleError:
            raise
        except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError, UnicodeError) as error:
            raise BrokenPickleError(told(error, 100) or type(error).__name__) from error
        except (MemoryError, RecursionError) as error:
            raise BrokenPickleError(say("it is nested or larger than any checkpoint")) from error
        msg = say("it has no end")
        raise BrokenPickleError(msg)

    def _step(self, opcode: str, argument: Any) -> None:
        if opcode in _CONSTANTS:
            self._stack.append(_CONSTANTS[opcode])
        elif opcode in _LITERALS:
            self._stack.append(argument)
        elif opcode in _EMPTY:
            self._stack.append(_EMPTY[opcode]())
        elif opcode not in _IGNORED:
            action = _ACTIONS.get(opcode)
            if action is None:
                msg = say("it has the opcode {}, which no checkpoint has", opcode)
                raise ValueError(msg)
            action(self, argument)

    def mark(self, _: Any) -> None:
        """A mark, which ends what `to_mark` takes."""
        self._stack.append(_MARK)

    def _to_mark(self) -> list[Any]:
        place = len(self._stack) - 1
        while self._stack[place] is not _MARK:
            place -= 1
            if place < 0:
                msg = say("a mark is missing")
                raise ValueError(msg)
        taken = self._stack[place + 1 :]
        del self._stack[place:]
        return taken

    def pop(self, _: Any) -> None:
        """Drop a value."""
        self._stack.pop()

    def pop_mark(self, _: Any) -> None:
        """Drop all down to the mark."""
        self._to_mark()

    def duplicate(self, _: Any) -> None:
        """The top once more."""
        self._stack.append(self._stack[-1])

    def put(self, argument: int) -> None:
        """Keep the top under a number."""
        self._memo[argument] = self._stack[-1]

    def memoize(self, _: Any) -> None:
        """Keep the top under the next number."""
        self._memo[len(self._memo)] = self._stack[-1]

    def get(self, argument: int) -> None:
        """What was kept under a number."""
        self._stack.append(self._memo[argument])

    def make_tuple(self, _: Any) -> None:
        """A tuple of all down to the mark."""
        self._stack.append(tuple(self._to_mark()))

    def short_tuple(self, count: int) -> None:
        """A tuple of so many values."""
        taken = self._stack[len(self._stack) - count :]
        if len(taken) < count:
            msg = say("a value is missing")
            raise ValueError(msg)
        del self._stack[len(self._stack) - count :]
        self._stack.append(tuple(taken))

    def make_list(self, _: Any) -> None:
        """A list of all down to the mark."""
        self._stack.append(self._to_mark())

    def make_dict(self, _: Any) -> None:
        """A table of all down to the mark."""
        self._stack.append(_pairs(self._to_mark()))

    def make_frozenset(self, _: Any) -> None:
        """A set, of which nothing is needed."""
        self._stack.append(_set(self._to_mark()))

    def append(self, _: Any) -> None:
        """Append one value."""
        value = self._stack.pop()
        self._extend([value])

    def appends(self, _: Any) -> None:
        """Append all down to the mark."""
        self._extend(self._to_mark())

    def _extend(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            target.extend(values)
        elif not isinstance(target, Opaque):
            msg = say("values are appended to what is no list")
            raise TypeError(msg)

    def set_item(self, _: Any) -> None:
        """Set one key."""
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def set_items(self, _: Any) -> None:
        """Set the keys down to the mark."""
        self._update(self._to_mark())

    def _update(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, dict):
            target.update(_pairs(values))
        elif not isinstance(target, Opaque):
            msg = say("values are set in what is no table")
            raise TypeError(msg)

    def add_items(self, _: Any) -> None:
        """Values of a set, of which nothing is needed."""
        self._to_mark()

    def named(self, argument: str) -> None:
        """A name."""
        module, _, name = argument.partition(" ")
        self._stack.append(self._vocabulary.meaning(Name(module, name)))

    def stack_global(self, _: Any) -> None:
        """A name from two texts."""
        name, module = self._stack.pop(), self._stack.pop()
        self._stack.append(self._vocabulary.meaning(Name(str(module), str(name))))

    def reduce(self, _: Any) -> None:
        """What calling gives."""
        arguments, called = self._stack.pop(), self._stack.pop()
        self._stack.append(self.call(called, arguments))

    def call(self, called: Any, arguments: Any) -> Any:
        """What calling a name gives, without calling anything that the file could choose."""
        if not isinstance(called, Name):
            msg = say("it calls what is no function")
            raise TypeError(msg)
        known = self._vocabulary.calls.get(str(called))
        if known is None or not isinstance(arguments, tuple):
            return Opaque(str(called))
        return known(arguments)

    def new_object(self, _: Any) -> None:
        """What making an object gives."""
        self.reduce(_)

    def new_object_with_words(self, _: Any) -> None:
        """The same, with keywords, which are dropped."""
        self._stack.pop()
        self.reduce(_)

    def build(self, _: Any) -> None:
        """Attributes, which are dropped."""
        # Attributes of a container, or the state of an object that is not made.
        self._stack.pop()
        self._stack[-1]

    def persistent_id(self, _: Any) -> None:
        """A storage by its id."""
        self._stack.append(self._persistent(self._stack.pop()))


def _pairs(values: list[Any]) -> dict[Any, Any]:
    if len(values) % 2:
        msg = say("a table has a key without a value")
        raise ValueError(msg)
    return {_key(values[place]): values[place + 1] for place in range(0, len(values), 2)}


def _key(value: Any) -> Any:
    """A key that can be looked up; what cannot be one becomes its text."""
    return value if isinstance(value, (str, int, float, bool, bytes, type(None))) else Opaque(type(value).__name__)


def _set(values: list[Any]) -> Any:
    return Opaque(f"set of {len(values)}")


_CONSTANTS: Mapping[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_LITERALS = frozenset(
    {
        "INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING",
        "SHORT_BINSTRING", "BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8", "UNICODE", "BINUNICODE",
        "SHORT_BINUNICODE", "BINUNICODE8",
    }
)  # fmt: skip
_EMPTY: Mapping[str, Callable[[], Any]] = {
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "EMPTY_SET": lambda: Opaque("set"),
}
_IGNORED = frozenset({"PROTO", "FRAME"})
_ACTIONS: Mapping[str, Callable[[PickleReader, Any], None]] = {
    "MARK": PickleReader.mark,
    "POP": PickleReader.pop,
    "POP_MARK": PickleReader.pop_mark,
    "DUP": PickleReader.duplicate,
    "PUT": PickleReader.put,
    "BINPUT": PickleReader.put,
    "LONG_BINPUT": PickleReader.put,
    "MEMOIZE": PickleReader.memoize,
    "GET": PickleReader.get,
    "BINGET": PickleReader.get,
    "LONG_BINGET": PickleReader.get,
    "TUPLE": PickleReader.make_tuple,
    "TUPLE1": lambda reader, _: reader.short_tuple(1),
    "TUPLE2": lambda reader, _: reader.short_tuple(2),
    "TUPLE3": lambda reader, _: reader.short_tuple(3),
    "LIST": PickleReader.make_list,
    "DICT": PickleReader.make_dict,
    "FROZENSET": PickleReader.make_frozenset,
    "APPEND": PickleReader.append,
    "APPENDS": PickleReader.appends,
    "SETITEM": PickleReader.set_item,
    "SETITEMS": PickleReader.set_items,
    "ADDITEMS": PickleReader.add_items,
    "GLOBAL": PickleReader.named,
    "STACK_GLOBAL": PickleReader.stack_global,
    "REDUCE": PickleReader.reduce,
    "NEWOBJ": PickleReader.new_object,
    "NEWOBJ_EX": PickleReader.new_object_with_words,
    "BUILD": PickleReader.build,
    "BINPERSID": PickleReader.persistent_id,
}
