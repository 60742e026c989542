"""Attributes of torch's modules and classes that ours stand in for, until they are put back as they were."""

from __future__ import annotations

from typing import Any

_INHERITED = object()
"""In the place of an original that the owner does not have itself."""


class Replacements:
    """Owns every attribute that it replaces."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []

    def put(self, owner: Any, name: str, ours: Any) -> None:
        """Put ours in the place of an attribute, or before one that the owner inherits."""
        self._originals.append((owner, name, vars(owner).get(name, _INHERITED)))
        setattr(owner, name, ours)

    def has(self, owner: Any, name: str) -> bool:
        """Whether the attribute is replaced now."""
        return any(place is owner and each == name for place, each, _ in self._originals)

    def put_back(self) -> None:
        """Put everything back as it was."""
        for owner, name, original in reversed(self._originals):
            if original is _INHERITED:
                delattr(owner, name)
            else:
                setattr(owner, name, original)
        self._originals = []
