"""`embed` for files: NDJSON records get vectors, or lose them, before there is a graph.

    read line by line -> texts of some records -> provider -> lines in the same order -> rename

F1  The output appears under its name when it is complete; a failed run leaves what was there before.
F2  A line that is not changed is written as it was read, byte for byte. A record that is changed keeps its
    members, known or not, in their order.
F3  However long the input is, only some of its records are in memory.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NoReturn

from omnigraph.bulk.files import whole_file
from omnigraph.core.errors import BadRequest
from omnigraph.core.regular_file import open_regular, require_replaceable
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.embedder import open_provider
from omnigraph.embedding.provider import TEXTS_MAX, Provider
from omnigraph.embedding.records import dump_record, is_missing, parse_record, text_of
from omnigraph.embedding.remembering import RememberingProvider
from omnigraph.embedding.seed import EmbedSpec
from omnigraph.operations.embed.select import EmbedMode, Selector, check_types, mode_of

LINES_MAX = 4_096  # waiting for the vectors of some of them (F3)


@dataclass(frozen=True, slots=True)
class EmbedFile:
    """Which file to embed, where to, and how; with `clean`, vectors are removed and none are computed."""

    input: Path
    output: Path
    spec: EmbedSpec
    types: tuple[str, ...] = ()
    selectors: tuple[Selector, ...] = ()
    reembed_all: bool = False
    clean: bool = False
    batch: int = TEXTS_MAX

    @property
    def mode(self) -> EmbedMode:
        """What is done to vectors."""
        return "clean" if self.clean else mode_of(reembed_all=self.reembed_all, selectors=self.selectors)


@dataclass(frozen=True, slots=True)
class FileSummary:
    """What was done: the records in the input, those chosen, and those changed.

    Without a provider there is no model.
    """

    input: str
    output: str
    records: int
    selected_records: int
    embedded_records: int
    cleaned_records: int
    mode: EmbedMode
    dimension: int
    model: str | None


def embed_file(job: EmbedFile, config: EmbeddingConfig | None = None) -> FileSummary:
    """Write the input with vectors, or without them, to the output (F1, F2, F3).

    The provider is that of the configuration, else of the environment; removing vectors needs none.

    Raises:
        BadRequest: a file cannot be read or written, a line is not a record, or a type is not specified.
        EmbeddingError: there is no such provider, its key is missing, or it fails.
    """
    check_types(job.types, job.selectors, job.spec.types, "in the specification")
    provider = None
    if not job.clean:
        provider = RememberingProvider(open_provider(config or EmbeddingConfig.from_environment()))
    try:
        with _opened(job.input) as lines, _replaced(job.output) as sink:
            run = _FileRun(job, provider, sink)
            for number, line in enumerate(lines, 1):
                run.take(number, line)
            run.write()
    finally:
        if provider is not None:
            provider.close()
    return FileSummary(
        str(job.input),
        str(job.output),
        run.records,
        run.selected,
        run.embedded,
        run.cleaned,
        job.mode,
        job.spec.dimension,
        None if provider is None else provider.model,
    )


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A line on its way to the output; with a text it gets a vector first."""

    line: bytes
    record: dict[str, object] | None = None
    data: dict[str, object] = field(default_factory=dict)
    text: str = ""
    target: str = ""


class _FileRun:
    """The lines of one input."""

    def __init__(self, job: EmbedFile, provider: Provider | None, sink: IO[bytes]) -> None:
        self._job, self._provider, self._sink = job, provider, sink
        self._waiting: list[_Waiting] = []
        self._texts = 0
        self.records = self.selected = self.embedded = self.cleaned = 0

    def take(self, number: int, line: bytes) -> None:
        """Take the next line, and write lines when enough of them wait."""
        found = self._changed(number, line)
        self._waiting.append(found)
        self._texts += bool(found.text)
        if self._texts >= self._job.batch or len(self._waiting) >= LINES_MAX:
            self.write()

    def write(self) -> None:
        """Compute the vectors of the waiting lines, and write all of them."""
        texts = [item.text for item in self._waiting if item.text]
        vectors: Iterator[list[float]] = iter(())
        if texts:
            assert self._provider is not None, "texts are for a provider"
            vectors = iter(self._provider.embed(texts, "document", self._job.spec.dimension))
        for item in self._waiting:
            if item.text:
                item.data[item.target] = next(vectors)
            self._sink.write(item.line if item.record is None else dump_record(item.record, item.line))
        self._waiting, self._texts = [], 0

    def _changed(self, number: int, line: bytes) -> _Waiting:
        """Return a line, and what to do with it (F2)."""
        if not line.strip():
            return _Waiting(line)
        record = self._parsed(number, line)
        self.records += 1
        type_name = record.get("type")
        spec = self._job.spec.types.get(type_name) if isinstance(type_name, str) else None
        if not isinstance(type_name, str) or spec is None:
            return _Waiting(line)
        data = record.setdefault("data", {})
        if not isinstance(data, dict):
            self._fail(number, f"the data of a {type_name} must be an object")
        if not self._is_selected(type_name, data):
            return _Waiting(line)
        self.selected += 1
        if self._job.clean:
            return self._cleaned(line, record, data, spec.target)
        text = text_of(type_name, spec.fields, data)
        is_wanted = self._job.mode != "fill_missing" or is_missing(data.get(spec.target))
        if text is None or not is_wanted:
            return _Waiting(line)
        try:
            text.encode()
        except UnicodeEncodeError:
            self._fail(number, "a text with half a surrogate pair cannot be embedded")
        self.embedded += 1
        return _Waiting(line, record, data, text, spec.target)

    def _cleaned(
        self, line: bytes, record: dict[str, object], data: dict[str, object], target: str
    ) -> _Waiting:
        if target not in data:
            return _Waiting(line)
        del data[target]
        self.cleaned += 1
        return _Waiting(line, record)

    def _is_selected(self, type_name: str, data: Mapping[str, object]) -> bool:
        job = self._job
        if job.types and type_name not in job.types:
            return False
        return not job.selectors or any(selector.matches(type_name, data) for selector in job.selectors)

    def _parsed(self, number: int, line: bytes) -> dict[str, object]:
        try:
            record = parse_record(line)
        except ValueError as error:
            self._fail(number, str(error))
        if not isinstance(record, dict):
            self._fail(number, "a record must be an object")
        return record

    def _fail(self, number: int, reason: str) -> NoReturn:
        raise BadRequest(f"{self._job.input}:{number}: {reason}")


@contextmanager
def _opened(path: Path) -> Iterator[Iterator[bytes]]:
    """Yield the lines of a file.

    Raises:
        BadRequest: it cannot be read.
    """
    try:
        file = open_regular(path)
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error
    with file:
        yield _lines(file, path)


def _lines(file: IO[bytes], path: Path) -> Iterator[bytes]:
    try:
        yield from file
    except OSError as error:
        raise BadRequest(f"cannot read {path}: {error.strerror}") from error


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that replaces the one at this path if the block succeeds, and is removed otherwise (F1).

    Raises:
        BadRequest: it cannot be written.
    """
    try:
        require_replaceable(path)
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}") from error
    with whole_file(str(path)) as file:
        yield file
