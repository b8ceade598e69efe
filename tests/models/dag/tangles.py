"""Scripts that leave branches with several best common ancestors, which single random merges seldom do.

A merge takes the newest commit of its source. Where an older one is wanted, a branch made before keeps it;
such branches are mostly deleted afterwards, so that no live branch is at the ancestors.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.models.dag.steps import Create, Delete, Merge

FORGOTTEN = 0.7  # of the branches that only a script needs


@dataclass(frozen=True, slots=True)
class Touch:
    """Any write to a branch."""

    branch: str


@dataclass(frozen=True, slots=True)
class TouchTaken:
    """A write to something that the branch took in its last merge."""

    branch: str


@dataclass(frozen=True, slots=True)
class TouchSame:
    """A write to something that the last commit of another branch has written."""

    branch: str
    other: str


Move = Create | Delete | Merge | Touch | TouchTaken | TouchSame
Script = list[Move]


def tangle(draw: random.Random, live: Sequence[str], free: Sequence[str]) -> Script:
    """Return a script for live branches, two or more, with the help of free names, one or more."""
    scripts = [hotfixes, criss_cross] + ([round_robin] if min(len(live), len(free)) >= 3 else [])
    return draw.choice(scripts)(draw, live, free)


def hotfixes(draw: random.Random, live: Sequence[str], free: Sequence[str]) -> Script:
    """Take one to three fixes into two or three branches; change there what came, and merge the branches."""
    fixes = draw.sample(free, min(len(free), draw.choice((1, 2, 2, 3))))
    takers = draw.sample(live, min(len(live), draw.choice((2, 2, 3))))
    script: Script = []
    for fix in fixes:
        is_rival = fix != fixes[0] and draw.random() < 0.5
        script += [Create(fix, draw.choice(takers)), TouchSame(fix, fixes[0]) if is_rival else Touch(fix)]
    script += [Touch(each) for each in takers if draw.random() < 0.5]
    for taker in takers:
        is_last = taker == takers[-1]
        for fix in draw.sample(fixes, len(fixes)):
            script.append(Merge(fix, taker, is_last=is_last and draw.random() < FORGOTTEN))
        if draw.random() < 0.6:
            script.append(TouchTaken(taker))
    return script + _around(draw, takers)


def criss_cross(draw: random.Random, live: Sequence[str], free: Sequence[str]) -> Script:
    """Merge two branches into each other as they were before, perhaps again and again; then merge them."""
    one, other = draw.sample(live, 2)
    script: Script = []
    for _ in range(draw.choice((1, 1, 2, 3))):
        kept = draw.choice(free)
        script += [Touch(one), Touch(other), Create(kept, one), Merge(other, one)]
        script += [TouchTaken(one)] if draw.random() < 0.5 else []
        script += [Merge(kept, other), Delete(kept)]
        script += [TouchTaken(other)] if draw.random() < 0.5 else []
    return script + _around(draw, (one, other))


def round_robin(draw: random.Random, live: Sequence[str], free: Sequence[str]) -> Script:
    """Merge each of three branches, as it was before, into the two others; then merge what came of it."""
    names = draw.sample(live, 3)
    kept = dict(zip(names, draw.sample(free, 3), strict=True))
    script: Script = [Touch(each) for each in names]
    script += [Create(copy, each) for each, copy in kept.items()]
    for name in names:
        others = [each for each in names if each != name]
        script += [Merge(kept[each], name) for each in draw.sample(others, 2)]
        script += [TouchTaken(name)] if draw.random() < 0.5 else []
    script += [Delete(copy) for copy in kept.values() if draw.random() < FORGOTTEN]
    return script + _around(draw, names)


def _around(draw: random.Random, names: Sequence[str]) -> Script:
    """Merge each branch into the next, and the last into the first."""
    pairs = zip(names, (*names[1:], names[0]), strict=True)
    return [Merge(source, target, is_dry_run=draw.random() < 0.1) for source, target in pairs]
