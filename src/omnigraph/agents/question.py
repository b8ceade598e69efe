"""A question that a query of the language answers: which query, its parameters, and its rows as texts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.core.errors import BadRequest

if TYPE_CHECKING:
    from omnigraph.agents.place import AnyGraph


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """A row as a text with metadata."""

    id: str | None
    content: str
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Question:
    """A query, inline or stored; `question` and `vector` name the parameters that get the question."""

    graph: "AnyGraph"
    branch: str | None
    source: str | Path | None
    name: str | None
    params: Mapping[str, Any]
    question: str | None
    vector: str | None
    content: str | None
    id: str | None

    def rows(
        self, words: str, embed: Callable[[str], Sequence[float]] | None, count: int | None
    ) -> list[AnswerRow]:
        """Return the first rows of the answer.

        Raises:
            BadRequest: neither a source nor a name is given, there is nothing that makes the vector, a column
                is missing, or the stored query is a mutation.
        """
        params = dict(self.params)
        if self.question is not None:
            params[self.question] = words
        if self.vector is not None:
            if embed is None:
                raise BadRequest(
                    f"the parameter '{self.vector}' needs an embedding that makes vectors of texts"
                )
            params[self.vector] = [float(item) for item in embed(words)]
        return [self._row(row) for row in self._ask(params)[:count]]

    def _ask(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        if self.source is not None:
            return self.graph.query(self.source, self.name, params, branch=self.branch).rows
        if self.name is None:
            raise BadRequest("a query retriever needs the source of a query, or the name of a stored one")
        # A stored mutation is refused where a commit is named, before it does anything.
        head = self.graph.commits(branch=self.branch, limit=1)[0].graph_commit_id
        answer = self.graph.invoke(self.name, params, snapshot=head)
        return answer.rows  # type: ignore[union-attr] # of a commit there are reads alone

    def _row(self, row: dict[str, Any]) -> AnswerRow:
        members = next(iter(row.values())) if len(row) == 1 else row
        members = dict(members) if isinstance(members, Mapping) else dict(row)
        for name in (self.content, self.id):
            if name is not None and name not in members:
                raise BadRequest(f"the query has no column '{name}'; it has {', '.join(members)}")
        identity = None if self.id is None else str(members.pop(self.id))
        if self.content is not None:
            return AnswerRow(identity, str(members.pop(self.content)), members)
        lines = [f"{name}: {value}" for name, value in members.items() if value is not None]
        return AnswerRow(identity, "\n".join(lines), members)
