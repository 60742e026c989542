"""Many small writes, gathered into few long ones: HDF5 writes each header of a small tensor by itself."""

from __future__ import annotations

from collections.abc import Iterator

MOST_GATHERED = 8 << 20
"""How many bytes of copies wait: the headers of 25,000 small tensors."""
_RUN = 4 << 20
"""From so many bytes on a longer write is not faster."""


class GatheredWrites:
    """Writes that wait in memory, the last one to each place."""

    def __init__(self) -> None:
        self.copied = 0
        self._writes: dict[int, bytes | memoryview] = {}

    def __bool__(self) -> bool:
        return bool(self._writes)

    def add(self, start: int, data: bytes | memoryview) -> bool:
        """Take what is to be written at an offset; False where what waits must be written first.

        Bytes are a copy that belongs to nobody else; memory stays what it is until it is written.
        """
        earlier = self._writes.get(start)
        if earlier is not None:
            if len(earlier) > len(data):
                return False
            del self._writes[start]  # so that the order stays that of the last writes
        self._writes[start] = data
        if isinstance(data, bytes):
            self.copied += len(data)
        return self.copied <= MOST_GATHERED

    def runs(self) -> Iterator[tuple[int, bytes | memoryview]]:
        """What to write, in order: neighbours joined unless writes overlap, then each as it came."""
        places = sorted(self._writes)
        ends = [start + len(self._writes[start]) for start in places]
        if any(end > start for end, start in zip(ends, places[1:], strict=False)):
            yield from self._writes.items()
            return
        begin = 0
        for number, end in enumerate(ends, start=1):
            if number == len(places) or places[number] != end or end - places[begin] >= _RUN:
                parts = [self._writes[place] for place in places[begin:number]]
                yield places[begin], parts[0] if len(parts) == 1 else b"".join(parts)
                begin = number

    def clear(self) -> None:
        """All of it is written."""
        self._writes.clear()
        self.copied = 0
