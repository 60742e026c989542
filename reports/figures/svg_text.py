"""SVG as matplotlib writes it made short: coordinates to a tenth of a point, paths relative, styles said once."""

from __future__ import annotations

import re

NUMBER = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
STRAIGHT = re.compile(rf"(?:[ML] {NUMBER} {NUMBER}\s*|z\s*)+")
VERTEX = re.compile(rf"([ML]) ({NUMBER}) ({NUMBER})|(z)")
GROUP = re.compile(r"<g([^>]*)>\n((?:<use [^>]*/>\n)+)</g>")
FEW = 4
"""Paths with fewer vertices keep their coordinates: they are the shapes of marks."""


def shortened(text: str) -> str:
    """The same picture in less text; a twentieth of a point is nothing that can be seen."""
    text = re.sub(r"\s*\n\s*", "\n", text)
    text = re.sub(r'(<path [^>]*?\bd=")([^"]*)"', lambda found: f'{found[1]}{_path(found[2])}"', text)
    text = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r'(<use [^>]*?\b[xy]="[^>]*/>)', lambda tag: re.sub(r"(\.\d)\d+", r"\1", tag[0]), text)
    text = re.sub(r" ?font-family: [^;\"]*;?", "", text)
    text = re.sub(r' transform="rotate\(-0 [^"]*\)"', "", text)
    return GROUP.sub(_said_once, text)


def _said_once(found: re.Match[str]) -> str:
    """Marks whose style is the same take it from their group."""
    styles = set(re.findall(r' style="[^"]*"', found[2]))
    if len(styles) != 1 or "style=" in found[1]:
        return found[0]
    (style,) = styles
    return f"<g{found[1]}{style}>\n{found[2].replace(style, '')}</g>"


def _path(text: str) -> str:
    """Straight lines from point to point as steps in tenths; anything else as it is."""
    vertices = VERTEX.findall(text)
    if len(vertices) < FEW or not STRAIGHT.fullmatch(text):
        return " ".join(text.split())
    said: list[str] = []
    place = start = (0, 0)
    for command, x, y, _ in vertices:
        if not command:
            said.append("z")
            place = start
            continue
        goal = (round(float(x) * 10), round(float(y) * 10))
        if command == "M":
            said.append(f"M{_tenths(goal[0])} {_tenths(goal[1])}")
            start = goal
        else:
            said.append(_step(goal[0] - place[0], goal[1] - place[1]))
        place = goal
    return "".join(said)


def _step(right: int, down: int) -> str:
    if not right and not down:
        return ""
    if not down:
        return f"h{_tenths(right)}"
    return f"l{_tenths(right)} {_tenths(down)}" if right else f"v{_tenths(down)}"


def _tenths(number: int) -> str:
    text = f"{number / 10:g}"
    return re.sub(r"^(-?)0\.", r"\1.", text)
