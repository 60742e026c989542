"""Give every module of a capture another name, in the file itself."""

from __future__ import annotations

import random
import shutil
import zlib
from pathlib import Path

import h5py
import numpy as np

import align

LETTERS = "bcdfghjklmnpqrstvwxz"


class NewNames:
    """A new name for each part of each path, drawn by lot; the tree stays as it was."""

    def __init__(self, seed: int) -> None:
        self._lots = random.Random(seed)
        self._parts: dict[str, str] = {}

    def of(self, name: str) -> str:
        """The new name of a module; that of a root keeps its brackets."""
        if name.startswith("<") and name.endswith(">"):
            return f"<{self.of(name[1:-1])}>"
        parts = name.split(".")
        return ".".join(self._part(".".join(parts[: depth + 1])) for depth in range(len(parts)))

    def _part(self, path: str) -> str:
        if path not in self._parts:
            self._parts[path] = "".join(self._lots.choices(LETTERS, k=self._lots.randrange(3, 12)))
        return self._parts[path]


def rename_modules(source: Path, target: Path, names: NewNames) -> None:
    """Copy a capture and rename its modules in the table that all records refer to.

    No slot, argument, class or dtype may share its text with a module, since the table holds each text once.
    """
    with align.open(source) as capture:
        modules = [name for name in capture.modules if name]
    shutil.copyfile(source, target)
    with h5py.File(target, "r+", locking=False) as file:
        texts = bytes(file["name_bytes"][...]).split(b"\0")[:-1]
        decoded = [text.decode() for text in texts]
        new = [names.of(text) if text in set(modules) else text for text in decoded]
        assert sum(before != after for before, after in zip(decoded, new, strict=True)) == len(modules)
        encoded = [text.encode() for text in new]
        for key, values in {
            "name_bytes": np.frombuffer(b"".join(text + b"\0" for text in encoded), np.uint8),
            "name_checksums": np.array([zlib.crc32(text) for text in encoded], np.uint32),
        }.items():
            del file[key]
            file.create_dataset(key, data=values)
        kind = file["names"].dtype
        del file["names"]
        file.create_dataset("names", data=np.array(new, dtype=object), dtype=kind)
