"""Cutting the power at every sync of a piece of work, and looking at what is left."""

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import omnigraph
from omnigraph.commit.recovery.kinds import RecoveryKind
from tests.models.histories.contents import SCHEMA, Contents, difference
from tests.models.histories.operations import PutNote, apply, perform
from tests.models.histories.reading import check_whole, read_contents
from tests.protocol.powercut.disk import VARIANTS, Disk
from tests.support.hollow import quiet


@dataclass(slots=True)
class Tally:
    """What a run has looked at, and of which verb."""

    verb: str = "write"
    cuts: int = 0
    images: int = 0
    lost: int = 0
    unsafe_files: int = 0
    quarantined: int = 0
    recovered: int = 0
    before: int = 0
    after: int = 0


@dataclass(slots=True)
class Bench:
    """A graph on a watched disk, and what its contents may be after a cut.

    `acknowledged` are the commits that every image must hold; `allowed` the contents that main may show, and
    `beside` those of other branches; `recovered` the finished recoveries, whose rows must be in the audit.
    """

    folder: Path
    stride: int = 1  # one cut of so many is looked at, and always the last one
    tally: Tally = field(default_factory=Tally)
    acknowledged: set[str] = field(default_factory=set)
    allowed: list[Contents] = field(default_factory=list)
    beside: dict[str, Contents] = field(default_factory=dict)
    recovered: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        omnigraph.init(self.root, SCHEMA).close()
        self.allowed = [Contents()]

    @property
    def root(self) -> Path:
        """Where the graph lies."""
        return self.folder / "graph"

    def cut_during(
        self, work: Callable[[], str | None], after: Contents, between: Sequence[Contents] = ()
    ) -> None:
        """Do acknowledged work, and cut before each of its syncs and after its end."""
        disk = Disk(self.root, self.folder / "shadow")
        disk.start()
        self.allowed = [self.allowed[-1], *between, after]
        with disk.watching(lambda: self.cut_sometimes(disk)):
            commit_id = work()
        if commit_id is not None:
            self.acknowledged.add(commit_id)
        self.allowed = [after]
        with omnigraph.open(self.root, mode="ro") as graph:
            self.recovered = {record.operation_id for record in graph.recoveries()}
        self.cut(disk)
        shutil.rmtree(self.folder / "shadow")

    def cut_sometimes(self, disk: Disk) -> None:
        """Look at one cut of so many."""
        if disk.syncs % self.stride == 0:
            self.cut(disk)

    def cut(self, disk: Disk) -> None:
        """Look at every variant of what is on the disk now."""
        self.tally.cuts += 1
        for variant in VARIANTS:
            image = self.folder / "images" / "image"  # not beside the disk: what opens an image syncs, too
            self.tally.unsafe_files += disk.image(image, variant, seed=self.tally.images)
            self.tally.images += 1
            try:
                self.look(image)
            except Exception as error:
                self.tally.lost += 1
                kept = self.folder / "failed"
                shutil.copytree(self.root, kept / "before", dirs_exist_ok=True)
                raise AssertionError(
                    f"image {self.tally.images}, cut {self.tally.cuts}, {variant}"
                ) from error
            shutil.rmtree(image)

    def look(self, image: Path) -> None:
        """Open an image as the next boot would: everything acknowledged is there, and writes go on."""
        with quiet(), omnigraph.open(image, durability="process") as graph:
            found = read_contents(graph)
            chain = set(check_whole(graph))
            for branch, contents in self.beside.items():
                assert read_contents(graph, graph.snapshot(branch)) == contents, branch
                chain.update(check_whole(graph, branch))
            assert self.acknowledged <= chain, f"lost: {sorted(self.acknowledged - chain)}"
            assert found in self.allowed, difference(found, self.allowed[-1])
            self.tally.before += found == self.allowed[0]
            self.tally.after += found == self.allowed[-1] and len(self.allowed) > 1
            self.check_quarantine(image, graph)
            body = PutNote("after the cut")
            perform(graph, body)
            assert read_contents(graph) == apply(found, body)

    def check_quarantine(self, image: Path, graph: omnigraph.Graph) -> None:
        """Check that every dataset that was moved aside has its one row."""
        records = graph.recoveries()
        rows = [record for record in records if record.recovery_kind is RecoveryKind.VERSION_QUARANTINED]
        finished = [record.operation_id for record in records if record not in rows]
        assert len(set(finished)) == len(finished), "a recovery twice in the audit"
        assert self.recovered <= set(finished), "a finished recovery has lost its row"
        self.tally.recovered += len(finished)
        moved = {
            (path.relative_to(image / "__quarantine").parts[0], str(path.parent.relative_to(image)))
            for path in (image / "__quarantine").rglob("*.manifest")
        }
        self.tally.quarantined += len(moved)
        assert sorted(name for name, _ in moved) == sorted(row.operation_id for row in rows)
        names = [outcome.table_key for row in rows for outcome in row.outcomes]
        assert len(names) == len(rows), json.dumps(names)
