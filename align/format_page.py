"""The page of the docs that describes a capture file, made from the literal in `capture_format`.

`python -m align.format_page > docs/file-format.md` writes it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np

from align import capture_format as layout
from align import hashing, sketch
from align.value_types import BIT_FLOATS

_HEAD = """# The capture file

One HDF5 file holds the capture of one rank. Any HDF5 tool reads it:

```python
import h5py

with h5py.File("gpu.h5", locking=False) as file:
    print(file["step0/forward/layers.3.mlp.fc2/output.0"][...])
```

This page is made from `align/capture_format.py` by `python -m align.format_page`; a test holds it.
"""

_PATHS = """## Paths

The values of a record are at `stepN/PHASE/NAME/SLOT`, those before step 0 at `init/NAME/SLOT`. They are there only
where the capture kept values (`--detail tensors`). A micro-step above 0 is appended to the slot as `@1`, a call above
0 as `#2`: `output.0@1#2`. In names and slots `%` is written `%25`, `/` is `%2F`, a NUL is `%00`; in slots also `@` is
`%40` and `#` is `%23`. The name `.` is `%2E`, the empty name is `%`. A tensor that several records saw is stored once:
their paths are hard links to the same dataset.
"""

_DTYPES = """## Values

Values have the shape of the tensor and its dtype. Booleans are h5py's enumeration of 8-bit integers. bfloat16 and
float8 are HDF5 floats of 16 and 8 bits, so that other tools show numbers; `align` reads the bits, without
conversion. One caution: HDF5 takes the greatest exponent of every float for Inf and NaN. In float8_e4m3fn codes with
that exponent are numbers from 256 to 448, and other tools show them as Inf or NaN; the fnuz dtypes differ likewise.
"""

_SKETCHES = """## Sketches

A floating tensor of n elements has a sketch of min(n, K) float32 numbers. Number j is the sum of sign(i) * x[i] over
all i with i mod K = j, where i is the row-major index in the logical shape, whatever the layout in memory. K is the
first of {buckets} that divides no product of trailing dimensions (greater than 1, the product of all excluded), or
else the last. Signs repeat after P = {period} elements. They come from an integer hash in 32-bit arithmetic:

```
h = i * 0x9E3779B1;  h ^= h >> 15;  h *= 0x85EBCA77;  h ^= h >> 13;  h *= 0xC2B2AE3D;  h ^= h >> 16
sign(i) = +1 if h is odd, else -1
```

The id of this table is the CRC-32 of the P signs as signed bytes: {table_id:#010x}. Sums run in float64, or in
float32 chains of at most 32; `resolution` is the error that this leaves, relative to the norm of the tensor.

The first 16 signs: {first_signs}. The values of K for some shapes: {examples}.
The sketch of 0, 1, ..., 999 begins with {vector}.
"""

_HASHES = """## Hashes

The hash is taken of the logical bytes: row-major, little-endian, without shape and dtype. Arithmetic is modulo 2**64.
The bytes are words x of 64 bits, {words} words a block. Bytes behind the last whole word are padded with zeros to one
word, which is a block of its own. mix is the finalizer of splitmix64:

```
mix(v):  v = (v ^ v >> 30) * 0xBF58476D1CE4E5B9;  v = (v ^ v >> 27) * 0x94D049BB133111EB;  v ^ v >> 31
w[i]   = mix((i + 1) * 0x9E3779B97F4A7C15) | 1
y      = (x ^ x >> 32) * 0xFF51AFD7ED558CCD
block  = sum over the block of w[i] * (y ^ y >> 29), with i the position in the block
total  = sum over the blocks of mix(block ^ mix(number of the block + 1))
hash   = mix(total ^ mix(length in bytes + 0x9E3779B97F4A7C15))
```
"""

_CHECKSUMS = """## Checksums

Damage is told from a difference between runs by checksums, which `align` checks whenever it reads; a file that does
not fit them is refused. With the hash above:

* A step: `checksum` is the hash of six 64-bit words: the number of the step (-1 for `init`), the hash of the rows of
  its index as they are stored (packed, little-endian), and the hashes of its sketches, facts, row hashes and exponents
  (of no bytes where there are none). In version 1 it is that of the first three words.
* The modules and the timeline: `checksum` of each row is the hash of the bytes of the row before it.
* The names: `/name_checksums` holds the CRC-32 of each text in `/name_bytes`.
* The facts of the run: the last entry, `checksum`, is the hash of the JSON text without `, "checksum": "..."`, as 16
  hexadecimal digits.

Values of tensors have none. A group or table at the top of the file that is not in the list of objects is damage too.
"""

_SAFETY = """## While it is written

A step appears in the file when it is complete. What is new is written behind everything that a reader looks at. When a
step is finished, the changed parts of the directory are appended to the file as a journal; then they are put down
together and the journal is cut off again. Another process does that, a tiny one that belongs to this file and that no
signal to the training reaches: when the training is killed, it finishes what it was asked and leaves. So a file opens
with plain HDF5 in whatever moment its training was killed, at the latest an instant afterwards.

Where this process cannot be started (Windows, an embedded interpreter), or is killed in the same microseconds (a whole
container at once), the changes may be put down in part. The journal is then at the end of the file, and `align` applies
it in memory when it reads.

A journal is a sequence of runs (offset and length as 64-bit little-endian integers, then the bytes) and a footer: the
word `ALIGNJRN`, the length of the runs and their hash, each 64 bits.
"""

HASH_VECTORS = (
    ("no bytes", np.zeros(0, dtype=np.uint8)),
    ("the byte 0", np.zeros(1, dtype=np.uint8)),
    ("eight bytes 0", np.zeros(8, dtype=np.uint8)),
    ("the bytes 0 to 10", np.arange(11, dtype=np.uint8)),
    ("float32 1.0", np.array(1.0, dtype="<f4")),
    ("int64 0 to 9", np.arange(10, dtype="<i8")),
    ("int64 0 to 99,999", np.arange(100_000, dtype="<i8")),
)


def format_page() -> str:
    """The whole page."""
    parts = [
        _HEAD,
        _history(),
        "## Objects\n",
        _table(("path", "what", "holds"), ((f"`{entry.path}`", entry.kind, entry.comment) for entry in layout.LAYOUT)),
        _PATHS,
        _DTYPES,
        _table(
            ("dtype", "sign bit", "exponent bits", "fraction bits", "bias"),
            ((name, bits.sign, bits.exponent, bits.fraction, bits.bias) for name, bits in BIT_FLOATS.items()),
        ),
        *_fields("The index", layout.INDEX_FIELDS),
        *_fields("The facts of a step", layout.FACT_FIELDS),
        *_fields("The modules", layout.MODULE_FIELDS),
        *_fields("The timeline", layout.TIMELINE_FIELDS),
        *_fields("The facts of the run", layout.RUN_FIELDS),
        _sketches(),
        _HASHES.format(words=hashing.BLOCK_WORDS),
        _table(
            ("bytes of", "hash"),
            ((name, f"`{hashing.hash_bytes(array):#018x}`") for name, array in HASH_VECTORS),
        ),
        _CHECKSUMS,
        _SAFETY,
    ]
    return "\n".join(parts)


def _history() -> str:
    lines = [f"* {version}: {what}" for version, what in layout.HISTORY.items()]
    return "\n".join([f"## Versions\n\nThe format is version {layout.FORMAT_VERSION}.\n", *lines, ""])


def _fields(title: str, fields: Sequence[layout.Field]) -> tuple[str, str]:
    rows = ((f"`{field.name}`", field.dtype, field.comment) for field in fields)
    return f"## {title}\n", _table(("field", "type", "holds"), rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines) + "\n"


def _sketches() -> str:
    shapes = ((512, 1004), (1000, 251), (257, 251, 2), (7,), ())
    return _SKETCHES.format(
        buckets=", ".join(map(str, sketch.BUCKET_COUNTS)),
        period=sketch.PERIOD,
        table_id=sketch.SIGN_TABLE_ID,
        first_signs=" ".join("+" if sign > 0 else "-" for sign in sketch.signs()[:16]),
        examples=", ".join(f"{shape} has {sketch.bucket_count(shape)}" for shape in shapes),
        vector=", ".join(f"{number:g}" for number in sketch.sketch_array(np.arange(1000.0))[:6]),
    )


if __name__ == "__main__":
    sys.stdout.write(format_page())
