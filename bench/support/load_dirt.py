"""The NDJSON of a load as it often comes: with rows that are wrong, and in thousands of small files."""

from itertools import islice
from pathlib import Path

from bench.support.load_data import Files

WRONG_EVERY = 500  # rows: 0.2 % are wrong


def spoilt(files: Files, folder: Path) -> tuple[Files, int]:
    """Return the files with some rows more that are wrong, and how many these are.

    A value that is none and a key that comes twice take turns among nodes; edges lack an end.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made = Files(folder / files.people.name, folder / files.knows.name)
    wrong = 0
    with files.people.open() as source, made.people.open("w") as sink:
        for number, line in enumerate(source):
            sink.write(line)
            if number % WRONG_EVERY == 0:
                sink.write(line if wrong % 2 else line.replace('"age":', '"age":"old","was":'))
                wrong += 1
    with files.knows.open() as source, made.knows.open("w") as sink:
        for number, line in enumerate(source):
            sink.write(line)
            if number % WRONG_EVERY == 0:
                sink.write(line.replace('"to":"person-', '"to":"nobody-'))
                wrong += 1
    return made, wrong


def cut(files: Files, folder: Path, rows: int) -> Path:
    """Return a folder with the same rows, a number of them in each file."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (files.people, files.knows):
        with path.open() as source:
            number = 0
            while lines := list(islice(source, rows)):
                (folder / f"{path.stem}-{number:05}.jsonl").write_text("".join(lines))
                number += 1
    return folder
