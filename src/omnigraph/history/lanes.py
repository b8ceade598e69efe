"""Commits as a picture: a lane for each branch, a dot for each commit, lines to what it continues.

What was merged from a branch that is not in the picture is a dotted line.
"""

from omnigraph.core.markup import Markup, cut, drawing, tag
from omnigraph.history.commits import GraphCommit
from omnigraph.history.identity import branch_name

COMMITS_MAX = 50  # that a notebook shows; a line below says how many more there are
_ROW, _LANE, _PAD = 24, 20, 14
_WORDS = 100  # characters of a line


class CommitList(list[GraphCommit]):
    """Commits, newest first; a notebook shows them as lanes."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return commit_lanes(self)


def commit_lanes(commits: list[GraphCommit]) -> Markup:
    """Return the picture of commits, in the order given."""
    shown = commits[:COMMITS_MAX]
    lanes = {name: place for place, name in enumerate(dict.fromkeys(_branch(commit) for commit in shown))}
    places = {
        commit.graph_commit_id: (_PAD + _LANE * lanes[_branch(commit)], _PAD + _ROW * row)
        for row, commit in enumerate(shown)
    }
    beside = _PAD + _LANE * max(1, len(lanes))
    lines, dots, texts = list[Markup](), list[Markup](), list[Markup]()
    for commit in shown:
        x, y = places[commit.graph_commit_id]
        for parent in (commit.parent_commit_id, commit.merged_parent_commit_id):
            if parent in places:
                to_x, to_y = places[parent]
                path = f"M {x} {y} C {x} {y + _ROW} {to_x} {to_y - _ROW} {to_x} {to_y}"
                lines.append(tag("path", d=path, fill="none", stroke="currentColor"))
        if commit.merged_parent_commit_id not in {None, *places}:  # on a branch that is not shown
            path = f"M {x} {y} l {_PAD - 4} {_ROW // 2}"
            lines.append(tag("path", d=path, fill="none", stroke="currentColor", stroke_dasharray=2))
        dots.append(tag("circle", cx=x, cy=y, r=5))
        texts.append(tag("text", _words(commit), x=beside, y=y + 4))
    height = _PAD + _ROW * len(shown)
    if len(commits) > len(shown):
        texts.append(tag("text", f"and {len(commits) - len(shown)} more commits", x=beside, y=height + 4))
        height += _ROW
    return drawing(beside + 7 * _WORDS, height, *lines, *dots, *texts)


def _words(commit: GraphCommit) -> str:
    at = f"{commit.created_at:%Y-%m-%d %H:%M:%S}"
    who = "" if commit.actor_id is None else f" {commit.actor_id}"
    message = "" if commit.message is None else f": {commit.message}"
    return cut(f"{commit.graph_commit_id} {_branch(commit)} {at}Z{who}{message}", _WORDS)


def _branch(commit: GraphCommit) -> str:
    return branch_name(commit.manifest_branch)
