"""All pairs of one operation on the source and one on the target: outcome, conflicts, what is left.

The graph has four people and one edge. Every expectation below is written by hand from the specification.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """\
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person { tag: String }
"""
START = b"""\
{"type": "Person", "data": {"name": "Ann", "age": 1}}
{"type": "Person", "data": {"name": "Bob", "age": 1}}
{"type": "Person", "data": {"name": "Carol", "age": 1}}
{"type": "Person", "data": {"name": "Dan", "age": 1}}
{"edge": "Knows", "from": "Bob", "to": "Carol", "data": {"tag": "first"}}
"""

# Letters are people, all of age 1 but where a number follows: the source gives age 2, the target age 3.
# Eve is who is added. Bob is who is removed, who is changed, and to whom Ann's new edge leads.
PAIRS = """\
source         target         outcome             conflicts          people           edges
noop           noop           already_up_to_date  -                  A B C D          B>C
noop           add node       already_up_to_date  -                  A B C D E3       B>C
noop           remove node    already_up_to_date  -                  A C D            -
noop           add edge       already_up_to_date  -                  A B C D          A>B B>C
noop           remove edge    already_up_to_date  -                  A B C D          -
noop           set property   already_up_to_date  -                  A B3 C D         B>C
noop           net-zero edge  already_up_to_date  -                  A B C D          B>C
add node       noop           fast_forward        -                  A B C D E2       B>C
add node       add node       conflict            divergent_insert   A B C D E3       B>C
add node       remove node    merged              -                  A C D E2         -
add node       add edge       merged              -                  A B C D E2       A>B B>C
add node       remove edge    merged              -                  A B C D E2       -
add node       set property   merged              -                  A B3 C D E2      B>C
add node       net-zero edge  merged              -                  A B C D E2       B>C
remove node    noop           fast_forward        -                  A C D            -
remove node    add node       merged              -                  A C D E3         -
remove node    remove node    merged              -                  A C D            -
remove node    add edge       conflict            orphan_edge        A B C D          A>B B>C
remove node    remove edge    merged              -                  A C D            -
remove node    set property   conflict            delete_vs_update   A B3 C D         B>C
remove node    net-zero edge  merged              -                  A C D            -
add edge       noop           fast_forward        -                  A B C D          A>B B>C
add edge       add node       merged              -                  A B C D E3       A>B B>C
add edge       remove node    conflict            orphan_edge        A C D            -
add edge       add edge       merged              -                  A B C D          A>B A>B B>C
add edge       remove edge    merged              -                  A B C D          A>B
add edge       set property   merged              -                  A B3 C D         A>B B>C
add edge       net-zero edge  merged              -                  A B C D          A>B B>C
remove edge    noop           fast_forward        -                  A B C D          -
remove edge    add node       merged              -                  A B C D E3       -
remove edge    remove node    merged              -                  A C D            -
remove edge    add edge       merged              -                  A B C D          A>B
remove edge    remove edge    merged              -                  A B C D          -
remove edge    set property   merged              -                  A B3 C D         -
remove edge    net-zero edge  merged              -                  A B C D          -
set property   noop           fast_forward        -                  A B2 C D         B>C
set property   add node       merged              -                  A B2 C D E3      B>C
set property   remove node    conflict            delete_vs_update   A C D            -
set property   add edge       merged              -                  A B2 C D         A>B B>C
set property   remove edge    merged              -                  A B2 C D         -
set property   set property   conflict            divergent_update   A B3 C D         B>C
set property   net-zero edge  merged              -                  A B2 C D         B>C
net-zero edge  noop           fast_forward        -                  A B C D          B>C
net-zero edge  add node       merged              -                  A B C D E3       B>C
net-zero edge  remove node    merged              -                  A C D            -
net-zero edge  add edge       merged              -                  A B C D          A>B B>C
net-zero edge  remove edge    merged              -                  A B C D          -
net-zero edge  set property   merged              -                  A B3 C D         B>C
net-zero edge  net-zero edge  merged              -                  A B C D          B>C
"""
COLUMNS = (0, 15, 30, 50, 69, 86)
# What is in conflict, beside its kind: the one new edge, or one person.
IN_CONFLICT = {
    "divergent_insert": ("node:Person", "Eve"),
    "divergent_update": ("node:Person", "Bob"),
    "delete_vs_update": ("node:Person", "Bob"),
    "orphan_edge": ("edge:Knows", "the new edge"),
}


def cells() -> Iterator[list[str]]:
    for line in PAIRS.splitlines()[1:]:
        yield [line[start:end].strip() for start, end in zip(COLUMNS, (*COLUMNS[1:], None), strict=True)]


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pairs") / "graph"
    with omnigraph.init(root, SCHEMA, durability="process") as graph:
        graph.load(START, "append")
    return root


def test_every_pair_of_operations_is_there() -> None:
    assert {(source, target) for source, target, *_ in cells()} == {
        (a, b) for a in OPERATIONS for b in OPERATIONS
    }
    assert len(list(cells())) == 49


@pytest.mark.case("engine", 232)
@pytest.mark.parametrize("target_branch", ["main", "other"])
@pytest.mark.parametrize(
    ("source", "target", "outcome", "conflicts", "people", "edges"),
    [pytest.param(*cell, id=f"{cell[0]}, {cell[1]}") for cell in cells()],
)
def test_a_pair_of_operations(
    start: Path,
    tmp_path: Path,
    target_branch: str,
    source: str,
    target: str,
    outcome: str,
    conflicts: str,
    people: str,
    edges: str,
) -> None:
    shutil.copytree(start, tmp_path / "graph")
    with omnigraph.open(tmp_path / "graph", durability="process") as graph:
        graph.create_branch("work")
        if target_branch != "main":
            graph.create_branch(target_branch)
        OPERATIONS[source](graph, "work", 2)
        OPERATIONS[target](graph, target_branch, 3)
        heads = [graph.commits(branch=name)[0] for name in (target_branch, "work")]

        if outcome == "conflict":
            with pytest.raises(omnigraph.MergeConflicts) as refused:
                graph.merge("work", into=target_branch)
            found = [(each.table_key, each.row_id, str(each.kind)) for each in refused.value.conflicts]
            assert found == [(*named(graph, conflicts, source, target_branch), conflicts)]
        else:
            assert conflicts == "-"
            assert graph.merge("work", into=target_branch).outcome == outcome

        assert shown_people(graph, target_branch) == people
        assert shown_edges(graph, target_branch) == edges
        head = graph.commits(branch=target_branch)[0]
        if outcome in {"conflict", "already_up_to_date"}:
            assert head == heads[0]
        else:
            parents = (head.parent_commit_id, head.merged_parent_commit_id)
            assert parents == tuple(each.graph_commit_id for each in heads)
        assert graph.commits(branch="work")[0] == heads[1]


def named(graph: Graph, kind: str, source: str, target_branch: str) -> tuple[str, str]:
    table_key, row_id = IN_CONFLICT[kind]
    if kind == "orphan_edge":
        side = "work" if source == "add edge" else target_branch
        rows = graph.table("Knows", branch=side).to_pylist()
        row_id = next(row["id"] for row in rows if row["tag"] == "new")
    return table_key, row_id


def shown_people(graph: Graph, branch: str) -> str:
    rows = graph.table("Person", branch=branch).to_pylist()
    return " ".join(row["name"][0] + ("" if row["age"] == 1 else str(row["age"])) for row in rows)


def shown_edges(graph: Graph, branch: str) -> str:
    rows = graph.table("Knows", branch=branch).to_pylist()
    return " ".join(sorted(f"{row['src'][0]}>{row['dst'][0]}" for row in rows)) or "-"


def add_node(graph: Graph, branch: str, age: int) -> None:
    graph.mutate(f'query m() {{ insert Person {{ name: "Eve", age: {age} }} }}', branch=branch)


def remove_node(graph: Graph, branch: str, age: int) -> None:
    graph.mutate('query m() { delete Person where name = "Bob" }', branch=branch)


def add_edge(graph: Graph, branch: str, age: int) -> None:
    graph.mutate('query m() { insert Knows { from: "Ann", to: "Bob", tag: "new" } }', branch=branch)


def remove_edge(graph: Graph, branch: str, age: int) -> None:
    graph.mutate('query m() { delete Knows where tag = "first" }', branch=branch)


def set_property(graph: Graph, branch: str, age: int) -> None:
    graph.mutate(f'query m() {{ update Person set {{ age: {age} }} where name = "Bob" }}', branch=branch)


def net_zero_edge(graph: Graph, branch: str, age: int) -> None:
    add_edge(graph, branch, age)
    graph.mutate('query m() { delete Knows where tag = "new" }', branch=branch)


OPERATIONS: dict[str, Callable[[Graph, str, int], None]] = {
    "noop": lambda graph, branch, age: None,
    "add node": add_node,
    "remove node": remove_node,
    "add edge": add_edge,
    "remove edge": remove_edge,
    "set property": set_property,
    "net-zero edge": net_zero_edge,
}
