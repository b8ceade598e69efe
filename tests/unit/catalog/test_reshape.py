"""What a change of schema does to tables and columns."""

from omnigraph.catalog.build import build_catalog, read_schema
from omnigraph.catalog.identity import accept_first, inherit, resolve
from omnigraph.catalog.reshape import TableChanges, reshape, table_changes
from omnigraph.core.span import Source

BASE = """\
node Person { name: String @key  age: I32?  note: String }
node Place { code: String @key }
edge Knows: Person -> Person { since: I32? }
"""


def changes(desired: str) -> TableChanges:
    accepted = accept_first(read_schema(Source(BASE)))
    wanted = read_schema(Source(desired))
    after = inherit(accepted, wanted, resolve(accepted, wanted), start=100)
    return table_changes(build_catalog(accepted), build_catalog(after))


def columns(found: TableChanges, name: str) -> dict[str, tuple[str | None, bool]]:
    (item,) = [each for each in found.reshaped if each.new.name == name]
    return {key: (origin.column, origin.is_new) for key, origin in item.columns.items()}


def test_a_new_column_comes_from_nowhere_and_the_others_stay() -> None:
    found = changes(BASE.replace("age: I32?", "age: I32?  email: String?"))

    assert (found.added, found.dropped, found.renamed) == ((), (), ())
    assert columns(found, "Person") == {
        "id": ("id", False),
        "age": ("age", False),
        "email": (None, True),
        "name": ("name", False),
        "note": ("note", False),
    }


def test_a_renamed_column_comes_from_the_old_name() -> None:
    found = changes(BASE.replace("age: I32?", 'years: I32? @rename_from("age")'))

    assert columns(found, "Person")["years"] == ("age", False)


def test_a_wider_column_is_written_anew_and_a_relaxed_one_only_beside_it() -> None:
    relaxed = changes(BASE.replace("note: String", "note: String?"))
    both = changes(BASE.replace("note: String", "note: String?").replace("age: I32?", "age: I64?"))

    assert columns(relaxed, "Person")["note"] == ("note", False)
    assert columns(both, "Person")["age"] == ("age", True)
    assert columns(both, "Person")["note"] == ("note", True)


def test_words_change_no_table() -> None:
    for old, new in (
        ("age: I32?", "age: I32? @index"),
        ("age: I32?", "age: I32? @default(3)"),
        ("node Place {", 'node Place @description("where") {'),
    ):
        assert changes(BASE.replace(old, new)) == TableChanges((), (), (), ())


def test_types_come_go_and_are_renamed_by_their_numbers() -> None:
    text = BASE.replace("node Place {", 'node Town @rename_from("Place") {')
    found = changes(
        text.replace("edge Knows: Person -> Person { since: I32? }\n", "node New { k: String @key }\n")
    )

    assert [type_.name for type_ in found.added] == ["New"]
    assert [type_.name for type_ in found.dropped] == ["Knows"]
    assert [(old.name, new.name) for old, new in found.renamed] == [("Place", "Town")]
    assert found.reshaped == ()


def test_the_ends_of_a_new_edge_move_with_the_columns_they_have() -> None:
    found = changes(BASE + "edge Lives: Person -> Place\n")

    assert [item.new.name for item in found.reshaped] == ["Person", "Place"]
    assert all(not is_new for name in ("Person", "Place") for _, is_new in columns(found, name).values())
    assert all(reshape(item.old, item.new) is None for item in found.reshaped)
