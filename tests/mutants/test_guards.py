"""The list of guards fits the code and the tests as they are; `make mutants` breaks them one by one."""

import re
from functools import cache

import pytest

from tests.mutants.guards import PACKAGE, REPOSITORY, Guard, GuardError, read_guards
from tests.mutants.run import Run, Verdict, judge

GUARDS_MIN = 80
GUARD = Guard("a", "a.py", "if bad:", "if False:", ("tests/test_a.py",))
KILLED = Run(1, "FAILED tests/test_a.py::test_bad[one - two] - AssertionError\n")


@cache
def text_of(name: str) -> str:
    return (REPOSITORY / name).read_text(encoding="utf-8")


def test_every_line_of_the_list_is_in_the_code_once() -> None:
    guards = read_guards()

    for guard in guards:
        broken = guard.mutated(text_of(f"{PACKAGE}/{guard.file}"))
        compile(broken, f"{guard.id} in {guard.file}", "exec", dont_inherit=True)  # else no test can run

    assert len(guards) >= GUARDS_MIN


def test_every_test_of_the_list_is_there() -> None:
    named = {test for guard in read_guards() for test in guard.tests}

    missing = []
    for test in sorted(named):
        name, _, function = test.partition("[")[0].partition("::")
        is_there = (REPOSITORY / name).is_file()
        if not is_there or (function and not re.search(rf"^def {function}\(", text_of(name), re.MULTILINE)):
            missing.append(test)

    assert missing == []


@pytest.mark.parametrize("text", ["", "if bad:\nif bad:\n"])
def test_a_line_that_moved_or_is_there_twice_is_an_error(text: str) -> None:
    with pytest.raises(GuardError, match=r"a: its line occurs \d times in a\.py"):
        GUARD.mutated(text)


@pytest.mark.parametrize(
    ("run", "reason", "verdict"),
    [
        (KILLED, "", Verdict.KILLED),
        (Run(None, ""), "", Verdict.ERROR),
        (Run(0, "1 passed"), "", Verdict.SURVIVED),
        (Run(0, "1 passed"), "nobody can tell", Verdict.ACCEPTED),
        (KILLED, "nobody can tell", Verdict.ERROR),
        (Run(2, "SyntaxError"), "", Verdict.ERROR),
        (Run(4, "the package comes from elsewhere"), "", Verdict.ERROR),
        (Run(5, "no tests ran"), "", Verdict.ERROR),
    ],
)
def test_only_a_test_that_fails_kills(run: Run, reason: str, verdict: Verdict) -> None:
    guard = Guard(GUARD.id, GUARD.file, GUARD.line, GUARD.becomes, GUARD.tests, reason)

    assert judge(guard, run)[0] is verdict
