"""Pictures of boxes in boxes, as SVG and as an HTML page whose boxes open."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from .modules import Box, Edge

_FONT, _LINE, _PAD, _GAP, _LANE = 12, 17, 10, 30, 20
"""Sizes in pixels: of letters, of a line, around the content of a box, between boxes, and between lines beside them."""
_MOST = 40
"""The most boxes of a picture whose depth nobody chose."""
_COLORS = ("#ffffff", "#eef3fb", "#dfe9f7", "#d1dff3", "#c3d5ef")
_UNQUOTED = re.compile(r"[^A-Za-z0-9 .,()\[\]:]")
_UNITS = ("bytes", "KB", "MB", "GB")
_STYLE = (
    "text{font-size:12px;font-family:sans-serif;fill:#1c2733}.name{font-weight:bold}.fact,.shape{font-size:11px;fill:#52606d}"
    ".shape{paint-order:stroke;stroke:#fff;stroke-width:3px}.edge{fill:none;stroke:#7b8794}rect{stroke:#9aa5b1}"
    ".found{stroke:#cf222e;stroke-width:2}"
)


def svg(box: Box, depth: int | None = None) -> str:
    """A picture of a box.

    Args:
        box: The box.
        depth: How many levels of boxes in it are open; None for as many as a picture has room for.
    """
    drawn = _Drawn(box, _depth(box) if depth is None else depth)
    width, height = drawn.width + 2 * _PAD, drawn.height + 2 * _PAD
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"><style>{_STYLE}</style>'
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0,0L8,4L0,8z" fill="#7b8794"/></marker></defs>{"".join(drawn.draw(_PAD, _PAD, drawn.width, 0))}</svg>\n'
    )


def page(box: Box) -> str:
    """An HTML page with a picture for each box. It shows the outermost one, and the others open."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>{html.escape(box.name)}</title><style>body{{font:14px sans-serif}}'
        "details details{margin-left:1.5em}summary{cursor:pointer;padding:2px}small{color:#52606d}</style>\n"
        f"{''.join(_details(box, is_open=True))}</html>\n"
    )


def chart(box: Box, most: int) -> str:
    """A picture of a box as a mermaid flowchart, for markdown, where no SVG can be.

    Args:
        box: The box.
        most: How many characters it may have. It has as many levels of boxes as fit; it is empty if one does not.
    """
    for depth in range(_depth(box), 0, -1):
        lines = ["flowchart TD", *_chart(box, "m", depth), "    classDef found stroke:#cf222e,stroke-width:3px"]
        text = "\n".join(lines)
        if len(text) <= most:
            return text
    return ""


def _chart(box: Box, name: str, depth: int) -> Iterator[str]:
    inner = [f"{name}_{index}" for index in range(len(box.boxes))] if depth else []
    label = f'["{"<br>".join(_quoted(each) for each in (_shortened(_title(box)), facts(box)))}"]'
    mark = ":::found" if box.findings else ""
    if not inner:
        yield f"    {name}{label}{mark}"
        return
    yield f"    subgraph {name}{label}"
    for each, key in zip(box.boxes, inner, strict=True):
        yield from _chart(each, key, depth - 1)
    yield "    end"
    for edge in box.edges:
        # NOTE: what comes from outside and what goes there is a line between the boxes around.
        if 0 <= edge.source < len(inner) and 0 <= edge.target < len(inner):
            shape = f'|"{_quoted(edge.label)}"|' if edge.label else ""
            yield f"    {inner[edge.source]} -->{shape} {inner[edge.target]}"
    if mark:
        yield f"    class {name} found"


def _quoted(text: str) -> str:
    """A text in which characters with a meaning in mermaid, markdown or HTML are mermaid's `#number;`."""
    return _UNQUOTED.sub(lambda found: f"#{ord(found[0])};", text)


def _details(box: Box, *, is_open: bool = False) -> Iterator[str]:
    summary = f"<b>{html.escape(_title(box))}</b> <small>{html.escape(facts(box))}</small>"
    yield f"<details{' open' if is_open else ''}><summary>{summary}</summary>\n{svg(box, 1)}"
    for each in box.boxes:
        if each.boxes:
            yield from _details(each)
    yield "</details>\n"


def facts(box: Box) -> str:
    """How many operators and parameters a box has."""
    count = sum(box.operators.values())
    told = f"{count} operator{'s' if count != 1 else ''}"
    if box.findings:
        told = f"{box.findings} finding{'s' if box.findings != 1 else ''}, {told}"
    if not box.parameters:
        return told
    size, unit = float(box.size), 0
    while size >= 1000 and unit + 1 < len(_UNITS):
        size, unit = size / 1000, unit + 1
    return f"{told}, {box.parameters:,} parameters ({size:.3g} {_UNITS[unit]})"


def _title(box: Box) -> str:
    return f"{box.name}: {box.kind}" if box.kind and box.kind != box.name else box.name


def _depth(box: Box) -> int:
    """The largest depth with a legible number of boxes, and at least one."""
    return next((depth for depth in range(_levels(box), 1, -1) if _count(box, depth) <= _MOST), 1)


def _levels(box: Box) -> int:
    """How many levels of boxes are in a box."""
    return 1 + max(map(_levels, box.boxes)) if box.boxes else 0


def _count(box: Box, depth: int) -> int:
    """How many boxes a picture of that depth has in the outermost one."""
    return sum(1 + _count(each, depth - 1) for each in box.boxes) if depth else 0


class _Drawn:
    """A box with its size: its title above the boxes in it, which stand in a column. Lines pass others on the right."""

    def __init__(self, box: Box, depth: int) -> None:
        self._box = box
        self._inner = [_Drawn(each, depth - 1) for each in box.boxes] if depth > 0 else []
        self._title = [_shortened(_title(box)), facts(box)]
        edges = box.edges if self._inner else ()
        self._straight = [each for each in edges if each.target == each.source + 1]
        self._around = list(_lanes([each for each in edges if each.target != each.source + 1]))
        lanes = 1 + max((lane for _, lane in self._around), default=-1)
        labels = max((len(each.label) for each in self._straight), default=0)
        # NOTE: the lines between boxes run at a quarter of their width, with the labels on their right.
        self._column = max(int(labels * 0.52 * _FONT * 4 / 3) + _PAD if labels else 0, *(each.width for each in self._inner), 0)
        self._beside = lanes * _LANE + (_PAD if lanes else 0)
        letters = max(len(self._title[0]) * 0.62, len(self._title[1]) * 0.52)
        self.width: int = max(int(letters * _FONT) + 2 * _PAD, self._column + self._beside + 2 * _PAD)
        self._column = self.width - self._beside - 2 * _PAD
        self._head = 2 * _LINE + _PAD
        self.height: int = self._head + (sum(each.height + _GAP for each in self._inner) + _GAP if self._inner else 0)

    def draw(self, x: int, y: int, width: int, level: int) -> Iterator[str]:
        """The elements of the picture, with the box at `x` and `y`."""
        spare = width - self.width
        style, color = ' class="found"' if self._box.findings else "", _COLORS[min(level, len(_COLORS) - 1)]
        yield f'<rect{style} x="{x}" y="{y}" width="{width}" height="{self.height}" rx="5" fill="{color}"/>'
        yield _text(self._title[0], x + _PAD, y + _LINE, "name") + _text(self._title[1], x + _PAD, y + 2 * _LINE, "fact")
        tops, top = [], y + self._head + _GAP
        for each in self._inner:
            tops.append(top)
            yield from each.draw(x + _PAD, top, self._column + spare, level + 1)
            top += each.height + _GAP
        middle = x + _PAD + (self._column + spare) // 4
        begins = [y + self._head, *(top + each.height for top, each in zip(tops, self._inner, strict=True))]
        ends = [*tops, y + self.height]
        for edge in self._straight:
            start, end = begins[edge.source + 1], ends[edge.target]
            yield _line(f"M{middle},{start}V{end}") + _text(edge.label, middle + 6, (start + end) // 2 + 4, "shape")
        side = x + _PAD + self._column + spare
        for edge, lane in self._around:
            start = begins[0] + 4 if edge.source < 0 else begins[edge.source + 1] - 8
            end = y + self.height - 4 if edge.target == len(self._inner) else ends[edge.target] + 8
            beside = side + (lane + 1) * _LANE
            leaves, arrives = (middle if edge.source < 0 else side), (middle if edge.target == len(self._inner) else side)
            yield _line(f"M{leaves},{start}H{beside}V{end}H{arrives}")
            yield _text(edge.label, beside - 4, (start + end) // 2, "shape", turned=True) if abs(end - start) > 6 * len(edge.label) else ""


def _lanes(edges: Sequence[Edge]) -> Iterator[tuple[Edge, int]]:
    """Gives each edge a lane beside the boxes in which no other one is. Short edges are next to the boxes."""
    taken: list[list[tuple[int, int]]] = []
    for edge in sorted(edges, key=lambda each: abs(each.target - each.source)):
        low, high = sorted((edge.source, edge.target))
        free = next((index for index, lane in enumerate(taken) if all(high < start or end < low for start, end in lane)), len(taken))
        if free == len(taken):
            taken.append([])
        taken[free].append((low, high))
        yield edge, free


def _shortened(text: str) -> str:
    return text if len(text) <= 48 else f"{text[:45]}..."


def _line(path: str) -> str:
    return f'<path class="edge" d="{path}" marker-end="url(#tip)"/>'


def _text(text: str, x: int, y: int, style: str, *, turned: bool = False) -> str:
    turn = f' text-anchor="middle" transform="rotate(-90 {x} {y})"' if turned else ""
    return f'<text class="{style}" x="{x}" y="{y}"{turn}>{html.escape(text)}</text>'
