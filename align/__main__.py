"""`python -m align` is the command `align`."""

from __future__ import annotations

from align.cli import main

if __name__ == "__main__":
    main(prog_name="align")
