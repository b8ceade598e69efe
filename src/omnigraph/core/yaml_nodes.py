"""The values and levels of a YAML text, counted while its nodes are made.

Y1  Every alias counts as all that it stands for: a few lines can say billions of values.
Y2  The count ends the reading at once; what is too large is never read to its end.
Y3  Levels are counted before they are entered, so no text exhausts the stack.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode

from omnigraph.core.errors import BadRequest
from omnigraph.core.limits import NESTING_MAX, SETTINGS_NODES_MAX

if TYPE_CHECKING:
    from omnigraph.core.yaml_text import PlacedMapping

_TEXT_OF_A_VALUE = 256  # characters; a longer text counts as several values, as each alias copies it
_MAP_TAG = "tag:yaml.org,2002:map"


def bounded_yaml(path: Path | str, mapping: "type[PlacedMapping] | None") -> YAML:
    """Return a reader of one text, which makes such mappings with the lines of their keys, or plain ones.

    Its `load` raises `BadRequest` with the path: too many values or levels, or an alias of nothing.
    """

    class Nodes(_Nodes):
        file = path

    class Values(SafeConstructor):
        pass

    def placed(values: Any, node: MappingNode) -> Iterator[object]:  # noqa: ANN401 - an untyped class
        assert mapping is not None
        made = mapping()
        yield made
        made.update(values.construct_mapping(node))
        lines = ((values.construct_object(key, deep=True), key.start_mark.line + 1) for key, _ in node.value)
        made.lines = dict(lines)

    if mapping is not None:
        Values.add_constructor(_MAP_TAG, placed)
    yaml = YAML(typ="safe", pure=True)
    yaml.Composer, yaml.Constructor = Nodes, Values
    return yaml


class _Nodes(Composer):
    """Makes nodes of events, and knows of each how many values and levels there are in it."""

    file: Path | str

    def __init__(self, *arguments: Any, **named: Any) -> None:  # noqa: ANN401 - an untyped class
        super().__init__(*arguments, **named)
        self._sizes: dict[Node, tuple[int, int]] = {}  # of what is closed
        self._count = 0  # of all that was made so far
        self._levels = 0  # below what is open
        self._open = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - an untyped class
        """Return the next node, having counted it (Y1, Y2, Y3)."""
        if self.parser.check_event(AliasEvent):
            event = self.parser.peek_event()
            if event.anchor not in self.anchors:
                line = event.start_mark.line + 1
                raise BadRequest(
                    f"{self.file}:{line}: the alias '*{event.anchor}' stands for nothing above it"
                )
            node = super().compose_node(parent, index)
            self._take(*self._sizes.get(node, (SETTINGS_NODES_MAX, 0)))  # one that is open has no end
            return node
        count, levels, self._levels = self._count, self._levels, 0
        self._take(1, 0)
        self._open += 1
        node = super().compose_node(parent, index)
        self._open -= 1
        if isinstance(node, ScalarNode):
            self._take(len(node.value) // _TEXT_OF_A_VALUE, 0)
        below = 0 if isinstance(node, ScalarNode) else 1 + self._levels
        self._sizes[node] = (self._count - count, below)
        self._levels = max(levels, below)
        return node

    def _take(self, count: int, levels: int) -> None:
        self._count, self._levels = self._count + count, max(self._levels, levels)
        if self._count > SETTINGS_NODES_MAX:
            raise BadRequest(f"{self.file}: more than {SETTINGS_NODES_MAX} values, with aliases written out")
        if self._open + levels > NESTING_MAX:
            raise BadRequest(f"{self.file}: nested more than {NESTING_MAX} deep")
