"""A schema as a picture: a box for each node type with its properties, an arrow for each edge type.

The layout depends on the catalog alone: boxes stand in rows, in the order of their names.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from omnigraph.catalog.model import Catalog, EdgeType, NodeType
from omnigraph.core.markup import Markup, cut, drawing, tag

TYPES_MAX = 60  # boxes; a picture of more shows nothing, and a line below says how many there are
PROPERTIES_MAX = 8  # of a type: the box stays a box
_WIDTH, _LINE, _PAD = 180, 18, 8
_GAP_X, _GAP_Y = 110, 80
_TEXT = 26  # characters that fit a box
_BEND = 26  # by how much arrows between the same boxes stay apart


@dataclass(frozen=True, slots=True)
class Box:
    """Where a type stands: its upper left corner, and its size."""

    left: float
    top: float
    height: float

    @property
    def middle(self) -> tuple[float, float]:
        """The middle of the box."""
        return self.left + _WIDTH / 2, self.top + self.height / 2

    def border(self, x: float, y: float) -> tuple[float, float]:
        """Return where a line from the middle to a point leaves the box."""
        from_x, from_y = self.middle
        over, down = x - from_x, y - from_y
        scale = min(
            _WIDTH / 2 / abs(over) if over else math.inf, self.height / 2 / abs(down) if down else math.inf
        )
        return from_x + over * scale, from_y + down * scale


def schema_diagram(catalog: Catalog) -> Markup:
    """Return the picture of a schema as an SVG."""
    nodes = list(catalog.nodes.values())[:TYPES_MAX]
    boxes = _placed(nodes)
    right = max((box.left + _WIDTH for box in boxes.values()), default=_WIDTH) + _GAP_X / 2
    bottom = max((box.top + box.height for box in boxes.values()), default=0) + _LINE * 2
    shapes = [_arrow_head(), *_arrows(catalog, boxes), *(_box(node, boxes[node.name]) for node in nodes)]
    left_out = len(catalog.nodes) - len(nodes)
    if left_out:
        shapes.append(tag("text", f"and {left_out} more node types", x=_PAD, y=bottom - _PAD))
    return drawing(right, bottom, *shapes)


def _placed(nodes: list[NodeType]) -> dict[str, Box]:
    across = max(1, math.ceil(math.sqrt(len(nodes))))
    boxes: dict[str, Box] = {}
    top = float(_LINE * 2)  # room for the arrows from a type to itself
    for begin in range(0, len(nodes), across):
        row = nodes[begin : begin + across]
        heights = [_LINE * (1 + len(_lines(node))) + _PAD for node in row]
        for place, (node, height) in enumerate(zip(row, heights, strict=True)):
            boxes[node.name] = Box(_PAD + place * (_WIDTH + _GAP_X), top, height)
        top += max(heights) + _GAP_Y
    return boxes


def _lines(node: NodeType) -> list[str]:
    key = node.key or ()
    found = [
        f"{item.name}: {item.type}{' @key' if item.name in key else ''}" for item in node.properties.values()
    ]
    shown = found if len(found) <= PROPERTIES_MAX else found[: PROPERTIES_MAX - 1]
    more = [f"and {len(found) - len(shown)} more"] if len(shown) < len(found) else []
    return [cut(line, _TEXT) for line in shown] + more


def _box(node: NodeType, box: Box) -> Markup:
    lines = _lines(node)
    texts = [
        tag("text", line, x=box.left + _PAD, y=box.top + _LINE * (place + 2) - 4)
        for place, line in enumerate(lines)
    ]
    return tag(
        "g",
        tag("rect", x=box.left, y=box.top, width=_WIDTH, height=box.height, rx=4, fill="none", **_STROKE),
        tag("text", cut(node.name, _TEXT), x=box.left + _PAD, y=box.top + _LINE - 4, font_weight="bold"),
        *texts,
    )


_STROKE: Mapping[str, object] = {"stroke": "currentColor"}


def _arrow_head() -> Markup:
    path = tag("path", d="M 0 0 L 8 4 L 0 8 z")
    marker = tag(
        "marker", path, id="omnigraph-arrow", markerWidth=8, markerHeight=8, refX=8, refY=4, orient="auto"
    )
    return tag("defs", marker)


def _arrows(catalog: Catalog, boxes: Mapping[str, Box]) -> Iterator[Markup]:
    drawn = Counter[frozenset[str]]()
    for edge in catalog.edges.values():
        if edge.source not in boxes or edge.target not in boxes:
            continue
        ends = frozenset({edge.source, edge.target})
        number = drawn[ends]
        drawn[ends] += 1
        source, target = boxes[edge.source], boxes[edge.target]
        yield _loop(edge, source, number) if source is target else _arrow(edge, source, target, number)


def _loop(edge: EdgeType, box: Box, number: int) -> Markup:
    x, y = box.left + _WIDTH - 24 - 34 * number, box.top
    path = f"M {x - 16:g} {y:g} C {x - 16:g} {y - 26:g} {x + 10:g} {y - 26:g} {x + 10:g} {y:g}"
    return _labelled(edge, path, x - 3, y - 22 - 12 * (number % 2))


def _arrow(edge: EdgeType, source: Box, target: Box, number: int) -> Markup:
    (x0, y0), (x1, y1) = source.middle, target.middle
    length = math.hypot(x1 - x0, y1 - y0)
    # Arrows between two boxes bend to both sides in turn. Each is bent relative to its own direction, so
    # those that go back are turned to bend away from those that go there.
    side = (-1 if number % 2 else 1) * ((number + 1) // 2 + 0.5) * _BEND * (1 if (x0, y0) < (x1, y1) else -1)
    bend_x, bend_y = (x0 + x1) / 2 - (y1 - y0) / length * side, (y0 + y1) / 2 + (x1 - x0) / length * side
    from_x, from_y = source.border(bend_x, bend_y)
    to_x, to_y = target.border(bend_x, bend_y)
    path = f"M {from_x:.1f} {from_y:.1f} Q {bend_x:.1f} {bend_y:.1f} {to_x:.1f} {to_y:.1f}"
    return _labelled(edge, path, (from_x + to_x) / 4 + bend_x / 2, (from_y + to_y) / 4 + bend_y / 2 - 4)


def _labelled(edge: EdgeType, path: str, x: float, y: float) -> Markup:
    return tag(
        "g",
        tag("path", d=path, fill="none", marker_end="url(#omnigraph-arrow)", **_STROKE),
        tag(
            "text",
            cut(edge.name, _TEXT),
            x=f"{x:.1f}",
            y=f"{y:.1f}",
            text_anchor="middle",
            font_style="italic",
        ),
    )
