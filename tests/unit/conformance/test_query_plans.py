"""Case 173 of languages.md, and what other cases of 7.7 and 7.11 say before anything runs."""

import pytest

from omnigraph.plan.optimize import plan_read
from tests.engine.plan.planning import Counts
from tests.support.library import catalog
from tests.support.queries import bind_read, books, plan_error, read, type_code

CODE = "return { $b.code }"
ADA = '$a: Author { handle: "ada" }'
CY = '$a: Author { handle: "cy" }'
NEAREST = "nearest($b.embedding, [1, 0, 0, 0])"

# The reads of 7.7 and 7.11 by their number; their results wait for something that runs them.
READS = [
    (134, read('$b: Book { code: "AA-1" }', "return { $b.title }")),
    (136, read('$b: Book { code: "AA-1" }', "return { $b }")),
    (137, books(tail="return { $b.published, $b.added, $b.embedding, $b.pages }")),
    (138, read('$b: Book { format: "paper" }')),
    (139, books('$b.format = "vinyl"')),
    (140, read('$b: Book { tags: "glass" }')),
    (140, books('$b.tags contains "machine"')),
    (141, books('$b.title contains "Song" $b.title starts_with "River"')),
    (142, books('"see AA-1 and AA-2" contains $b.code')),
    (143, books("$b.pages != 120")),
    (144, books("$b.pages = 120.0 $b.pages < 3000000000")),
    (144, read("$b: Book { pages: 120.5 }")),
    (145, books("$b.weight = 0.1")),
    (146, books('$b.published >= date("2020-01-01")')),
    (147, books('$b.added < datetime("2021-01-02T01:00:00+01:00") $b.added <= now()')),
    (148, books("$b.published = $d", params="$d: Date?")),
    (149, read("$a: Book $b: Book $a.pages = $b.pages $a.code < $b.code", "return { $a.code, $b.code }")),
    (150, read("$a: Author $s: Shelf", "return { count($a) as n }")),
    (151, read(f"{ADA} $a wrote $b")),
    (151, read('$b: Book { code: "AA-1" } $b wrote $a', "return { $a.handle }")),
    (151, books("$b storedon $s")),
    (152, read(f"{CY} $a $w:wrote $b", "return { $w.role }")),
    (153, read('$a: Author $a $w:wrote $b $w.role = "main"', "return { count($b) as n }")),
    (153, read("$a: Author $a $w:wrote $b", "return { count($w.share) as n }")),
    (154, read(f"{ADA} $a wrote{{1,2}} $b")),
    (154, read(f"{ADA} $a wrote{{2,2}} $b")),
    (155, read('$a: Book { code: "AA-1" } $a cites{1,3} $b')),
    (156, read('$a: Book { code: "BB-1" } $a <cites> $b')),
    (157, read(f"{ADA} $a <mentors>{{1,2}} $b", "return { $b.handle }")),
    (158, read("$a: Book $a cites $b $b cites $c $c cites $a", "return { count($a) as n }")),
    (159, books("not { $b storedOn $_ }")),
    (160, books('not { $b cites $x  $x.format = "paper" }')),
    (161, books("not { $b cites $x  $x.pages > 100 }")),
    (162, read('$a: Author not { $a wrote $b  not { $b.format = "paper" } }', "return { $a.handle }")),
    (163, read('$a: Author not { $a $w:wrote $b  $w.role = "editor" }', "return { $a.handle }")),
    (164, read("$a: Author not { $a <mentors> $_ }", "return { $a.handle }")),
    (164, read("$a: Author not { $a mentors{2,2} $x }", "return { $a.handle }")),
    (165, read("$a: Author not { $x: Author  $x.born < $a.born }", "return { $a.handle }")),
    (
        166,
        books(tail="return { count($b) as c, sum($b.pages) as s, avg($b.pages) as v, max($b.title) as t }"),
    ),
    (167, books(tail="return { $b.format, count($b) as c }")),
    (168, books(tail="return { $b.pages, count($b) as n } order { n desc }")),
    (170, books(tail=f"{CODE} order {{ $b.pages desc }}")),
    (171, books(tail=f"{CODE} order {{ $b.price desc, $b.code desc }} limit 0")),
    (172, read(f"{CY} $a $w:wrote $b", "return { $w.role } order { $b.price }")),
    (174, read(f'{CY} $a wrote $b search($b.blurb, "rivers")')),
    (175, books('match_text($b.blurb, "machines silent") fuzzy($b.title, "Qviet", 1)')),
    (176, books(tail=f'{CODE} order {{ bm25($b.blurb, "rivers") }}')),
    (177, books(tail=f"{CODE} order {{ {NEAREST} }} limit 10")),
    (178, books('$b.format != "paper"', f"{CODE} order {{ {NEAREST} }} limit 1")),
    (179, books(tail=f'{CODE} order {{ rrf({NEAREST}, bm25($b.blurb, "rivers")) }} limit 3')),
    (180, books(tail=f'{CODE} order {{ nearest($b.embedding, "rivers") }} limit 3')),
    (218, read(f"{CY} $a $w:wrote $b", "return { $w }")),
    (219, read("$a: Author $a $w:wrote $b", "return { $a, count($w) as n } order { n desc }")),
    (220, books(tail="return { $b as x } order { x }")),
    (221, books(tail=f"return {{ $b.code, {NEAREST} as d }} order {{ d }} limit 3")),
    (224, books('fuzzy($b.blurb, "machines", 0)')),
]


@pytest.mark.parametrize("text", [text for _, text in READS], ids=[str(number) for number, _ in READS])
def test_the_reads_of_the_specification_have_a_plan(text: str) -> None:
    plan = plan_read(bind_read(text), catalog(), Counts())

    assert plan.pipeline


@pytest.mark.parametrize(
    ("projection", "column"),
    [("$b.title", "b.title"), ("$b", "b"), ("count($b)", "b"), ("count($b) as n", "n")],
)
def test_a_column_has_its_name(projection: str, column: str) -> None:
    """The static part of cases 134, 135, 136 and 169."""
    plan = plan_read(bind_read(books(tail=f"return {{ {projection} }}")), catalog(), Counts())

    assert [found.column for found in plan.projections] == [column]


@pytest.mark.case("languages", 173)
@pytest.mark.parametrize(
    "tail",
    [
        "order { nope }",
        "order { count($b) }",
        "order { $b.price, nearest($b.embedding, [1, 0, 0, 0]) } limit 1",
    ],
)
def test_an_order_key_without_a_meaning_is_a_plan_error(tail: str) -> None:
    plan_error(books(tail=f"return {{ $b.code }} {tail}"))


def test_a_text_predicate_is_not_compared_with_false() -> None:
    """The static part of case 174."""
    plan_error(books('search($b.blurb, "MACHINE") = false'))


def test_an_entity_is_neither_compared_nor_an_order_key() -> None:
    """The static part of case 220."""
    assert type_code(read("$a $w:wrote $b $w = $b")) == "T7"
    plan_error(read("$a $w:wrote $b", "return { $b.code } order { $w }"))
