"""Contents of several branches: what a step must do to them, written from the specification.

Commits, ancestors and merges are those of `tests.models.dag.model`, which takes rows by id; here contents
become such rows and rows contents. An edge is known by its tag and a note by its body in place of the id:
each of them names one row, on whatever branch.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from tests.models.dag.model import MAIN, Conflict, EdgeRule, Model, NodeRule, Rows, Rules, violations
from tests.models.dag.steps import Create, Delete, Merge
from tests.models.dag.steps import perform as perform_on_branches
from tests.models.histories.contents import OWN_TABLES, SCHEMA, Contents, Refused
from tests.models.histories.operations import Operation, apply, perform

if TYPE_CHECKING:
    from omnigraph.graph.graph import Graph

# What each of two branches may do and both together may not.
BRANCH_SCHEMA = SCHEMA.replace("value: I64", "value: I64 @unique").replace(
    "Person -> Team ", "Person -> Team @card(0..1) "
)
RULES: Rules = {
    "node:Person": NodeRule(),
    "node:Team": NodeRule(),
    "node:Note": NodeRule(),
    "edge:Knows": EdgeRule("Person", "Person"),
    "edge:Joined": EdgeRule("Person", "Team", high=1),
    **{f"node:Own{table}": NodeRule((("value",),)) for table in range(OWN_TABLES)},
}


@dataclass(frozen=True, slots=True)
class On:
    """An operation on a branch."""

    branch: str
    operation: Operation


Step = On | Create | Delete | Merge


@dataclass(frozen=True, slots=True)
class Expected:
    """What a step must do: leave `rows` on `branch`, if it is one that commits, or be refused."""

    branch: str | None = None
    rows: Rows | None = None
    merged: str | None = None  # the head that a merge brings in
    outcome: str | None = None  # of a merge
    conflicts: frozenset[Conflict] = frozenset()
    refusals: tuple[str, ...] = ()  # names of errors, one of which must come


@dataclass(frozen=True, slots=True)
class Answer:
    """What the engine said of a step that it did not refuse."""

    commit_id: str | None = None
    outcome: str | None = None


def shown(model: Model, branch: str) -> Contents:
    """Return the contents of a branch."""
    return contents_of(model.rows(branch))


def expect(model: Model, step: Step) -> Expected:
    """Return what a step must do, without doing it."""
    match step:
        case On(branch, operation):
            try:
                return Expected(branch, _written(model.rows(branch), operation))
            except Refused:
                return Expected(branch, model.rows(branch), refusals=("ValidationError", "KeyConflict"))
        case Create(name, source):
            if name in model.branches:
                return Expected(refusals=("BadRequest" if name == MAIN else "AlreadyExistsError",))
            return Expected(refusals=() if source in model.branches else ("BranchNotFound",))
        case Delete(name):
            if name == MAIN:
                return Expected(refusals=("BadRequest",))
            return Expected(refusals=() if is_free(model, name) else ("BranchInUse",))
        case Merge(source, target):
            plan = model.plan_merge(source, target)
            merged = None if plan.outcome == "already_up_to_date" else model.head(source).id
            refusals = ("MergeConflicts",) if plan.conflicts else ()
            return Expected(target, plan.rows, merged, plan.outcome, plan.conflicts, refusals)


def is_free(model: Model, name: str) -> bool:
    """Return whether a branch may be deleted: no live one was made from it."""
    return name != MAIN and all(other.parent != name for other in model.branches.values())


def change_branches(model: Model, step: Step) -> None:
    """Make or remove the branch that a step makes or removes."""
    match step:
        case Create(name, source):
            model.create(name, source)
        case Delete(name):
            model.delete(name)
        case _:
            pass


def perform_step(graph: "Graph", step: Step) -> Answer:
    """Ask the engine for a step."""
    if isinstance(step, On):
        return Answer(perform(graph, step.operation, branch=step.branch))
    done = perform_on_branches(graph, step)
    return Answer(None if done.commit is None else done.commit.graph_commit_id, done.outcome)


def rows_of(contents: Contents) -> Rows:
    """Return contents as rows by table and id."""
    rows: Rows = {
        "node:Person": {
            handle: {"handle": handle, "age": age, "tag": tag}
            for handle, (age, tag) in contents.people.items()
        },
        "node:Team": {name: {"name": name, "size": size} for name, size in contents.teams.items()},
        "node:Note": {body: {"body": body} for body in contents.notes},
        **{f"node:Own{table}": {} for table in range(OWN_TABLES)},
    }
    for key, edges in (("edge:Knows", contents.knows), ("edge:Joined", contents.joined)):
        rows[key] = {tag: {"src": source, "dst": target} for tag, (source, target) in edges.items()}
    for name, value in contents.own.items():
        table, key = name.split("/")
        rows[f"node:Own{table}"][key] = {"value": value}
    return rows


def contents_of(rows: Rows) -> Contents:
    """Return rows by table and id as contents."""
    tables = cast("dict[str, dict[str, dict[str, Any]]]", rows)
    own = {
        f"{table}/{key}": row["value"]
        for table in range(OWN_TABLES)
        for key, row in tables[f"node:Own{table}"].items()
    }
    return Contents(
        people={handle: (row["age"], row["tag"]) for handle, row in tables["node:Person"].items()},
        teams={name: row["size"] for name, row in tables["node:Team"].items()},
        notes=frozenset(tables["node:Note"]),
        knows={tag: (row["src"], row["dst"]) for tag, row in tables["edge:Knows"].items()},
        joined={tag: (row["src"], row["dst"]) for tag, row in tables["edge:Joined"].items()},
        own=own,
    )


def _written(before: Rows, operation: Operation) -> Rows:
    after = rows_of(apply(contents_of(before), operation))
    if broken := violations(RULES, before, after):
        raise Refused(sorted(broken))
    return after
