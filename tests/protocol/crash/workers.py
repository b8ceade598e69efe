"""Several writer processes at work on one graph."""

import random
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import cast

from tests.models.histories.contents import OWN_TABLES, Contents, Refused
from tests.models.histories.operations import Operation, PutOwn, apply
from tests.models.histories.programs import Program
from tests.protocol.crash.histories import Reports
from tests.protocol.crash.writer import Acknowledged, Failed, Message, Opened, Request, WriterProcess

OWN_SHARE = 0.5  # of the writes go to the writer's own table, the others to the shared ones


class Workers:
    """Writer processes that are kept busy; the dead are replaced."""

    def __init__(self, root: Path, seed: int, *, processes: int, own_share: float = OWN_SHARE) -> None:
        self.root = root
        self.processes = processes
        self.own_share = own_share
        self.random = random.Random(seed)
        self.program = Program(seed)
        self.reports = Reports()
        self.writers: dict[int, WriterProcess] = {}
        self.current: dict[int, str] = {}
        self.contents = Contents()  # a guess, to draw writes that mostly make sense
        for place in range(processes):
            self.start(place)

    def start(self, place: int) -> None:
        """Start a writer in a place; it is asked for its first write when it has opened the graph."""
        self.writers[place] = WriterProcess(self.root)
        self.writers[place].begin()

    def work_until(self, deadline: float, writes_max: int | None = None) -> None:
        """Keep everybody busy until the time has come, or enough writes were asked for and answered."""
        while (left_s := deadline - monotonic()) > 0:
            self._take_messages(min(left_s, 1.0), writes_max)
            if writes_max is not None and not self.current and self.asked_least() == writes_max:
                return

    def _take_messages(self, within_s: float, writes_max: int | None) -> None:
        places = {writer.pipe: place for place, writer in self.writers.items()}
        for pipe in wait(list(places), timeout=within_s):
            place = places[cast("Connection", pipe)]
            message = self.writers[place].receive(0)
            assert message is not None, f"writer {place} died by itself"
            self.answer(place, message, is_over=self.asked(place) == writes_max)

    def work_until_asked(self, count: int) -> None:
        """Keep everybody busy until so many writes were asked for in all; some are still under way."""
        while len(self.reports.writes) < count:
            self._take_messages(60.0, None)

    def answer(self, place: int, message: Message, *, is_over: bool) -> None:
        """Take a message, and ask for the next write where the last one has ended."""
        if not isinstance(message, Opened):
            self.reports.said(message)
        if isinstance(message, Acknowledged):
            self.guess(self.reports.writes[message.name].operation)
        if isinstance(message, Opened | Acknowledged | Failed):
            self.current.pop(place, None)
            if not is_over:
                self.ask(place)

    def ask(self, place: int) -> None:
        name = f"writer-{place}-{len(self.reports.writes)}"
        request = Request(name, self.draw(place))
        self.reports.asked(request)
        self.current[place] = name
        self.writers[place].ask(request)

    def draw(self, place: int) -> Operation:
        if self.random.random() < self.own_share:
            return PutOwn(place % OWN_TABLES, f"k{self.random.randrange(50)}", self.random.randrange(1_000))
        return self.program.next(self.contents)

    def guess(self, operation: Operation) -> None:
        try:
            self.contents = apply(self.contents, operation)
        except Refused:
            return  # answers arrive in another order than commits

    def asked(self, place: int) -> int:
        return sum(name.startswith(f"writer-{place}-") for name in self.reports.writes)

    def asked_least(self) -> int:
        return min(self.asked(place) for place in range(self.processes))

    def kill(self, place: int) -> None:
        """Kill a writer wherever it is, and hear what it had still said."""
        writer = self.writers.pop(place)
        for message in writer.kill():
            if not isinstance(message, Opened):
                self.reports.said(message)
        name = self.current.pop(place, None)
        if name is not None and self.reports.writes[name].fate == "open":
            self.reports.writes[name].fate = "killed"
        self.reports.kills += 1

    def stop(self) -> None:
        """Let every write in flight end, and end the writers."""
        deadline = monotonic() + 60
        while self.current and monotonic() < deadline:
            for place in list(self.current):
                message = self.writers[place].receive(0.05)
                if message is not None:
                    self.answer(place, message, is_over=True)
        assert not self.current, f"no answer: {self.current}"
        for writer in self.writers.values():
            writer.kill()
