"""Random policies that section 4 of surfaces.md accepts, and questions to ask of them."""

from collections.abc import Iterator
from random import Random

from tests.models.policy.evaluator import BRANCH, SCOPE_KEY, SERVER_ACTIONS, TARGET, Asked

ACTORS = (
    "act-mira",
    "act-tomas",
    "ann",
    'a "quoted" one',
    "back\\slash",
    "Ünïcode ☂",
    "tab\there",
    "x" * 200,
)
BRANCHES = ("main", "june", "review/june", "release-1", "Main", "été")
NO_BRANCHES = ("ma in", "unheard-of", None)  # asked about, and protected by no policy
GROUPS = ("crew", "control", 'odd "group" \\', "Gruppe ß")
SCOPES = ("any", "protected", "unprotected")
GRAPH_ACTIONS = tuple(action for action in SCOPE_KEY if action not in SERVER_ACTIONS)


def policy(random: Random) -> dict[str, object]:
    """Return one policy as its file says it."""
    names = random.sample(GROUPS, random.randint(1, len(GROUPS)))
    document: dict[str, object] = {
        "version": 1,
        "groups": {name: random.sample(ACTORS, random.randint(1, 4)) for name in names},
        "rules": [_rule(random, number, names, is_server=False) for number in range(random.randint(0, 6))],
    }
    if random.random() < 0.1:
        document["rules"] = [_rule(random, number, names, is_server=True) for number in range(3)]
    if random.random() < 0.8:
        document["protected_branches"] = random.sample(BRANCHES, random.randint(0, 3))
    if random.random() < 0.3:
        is_server = any("graph_list" in rule["allow"]["actions"] for rule in document["rules"])  # type: ignore[attr-defined]
        document["kind"] = "server" if is_server else "graph"
    return document


def _rule(random: Random, number: int, groups: list[str], *, is_server: bool) -> dict[str, object]:
    allow: dict[str, object] = {"actors": {"group": random.choice(groups)}}
    if is_server:
        allow["actions"] = list(SERVER_ACTIONS)
        return {"id": f"server-{number}", "allow": allow}
    kind = random.choice((BRANCH, TARGET, None, "mixed"))
    actions = [action for action in GRAPH_ACTIONS if kind == "mixed" or SCOPE_KEY[action] == kind]
    allow["actions"] = random.sample(actions, random.randint(1, len(actions)))
    if kind in (BRANCH, TARGET) and random.random() < 0.8:
        allow[str(kind)] = random.choice(SCOPES)
    order = random.randint(0, 99)  # ids do not sort as the rules stand
    return {"id": f"r{order:02}-{number} \"'\\{{}}", "allow": allow}


def questions(random: Random, count: int) -> Iterator[Asked]:
    """Yield requests of all kinds, also of actors and branches that no rule knows."""
    for _ in range(count):
        yield Asked(
            random.choice((*ACTORS, "nobody", None)),
            random.choice(tuple(SCOPE_KEY)),
            _branch(random),
            _branch(random),
        )


def _branch(random: Random) -> str | None:
    name = random.choice((*BRANCHES, *NO_BRANCHES))
    return f"  {name} " if name is not None and random.random() < 0.2 else name
