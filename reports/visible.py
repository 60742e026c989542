"""Text from a capture made safe to show: no control characters, no bidirectional overrides, no endless names."""

from __future__ import annotations

import re

DISPLAY_LIMIT = 120
"""Names longer than this are cut in the middle where they are only shown."""

_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with every character that cannot be seen written as an escape of its code."""
    return _HIDDEN.sub(lambda found: f"\\u{ord(found.group()):04x}", text)


def shortened(text: str, limit: int = DISPLAY_LIMIT) -> str:
    """The visible text, cut in the middle so that it has at most `limit` characters."""
    shown = visible(text)
    if len(shown) <= limit:
        return shown
    head = (limit - 3) // 2
    return f"{shown[:head]}...{shown[len(shown) - (limit - 3 - head) :]}"
