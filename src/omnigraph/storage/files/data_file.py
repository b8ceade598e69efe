"""The name of a data file, and the numbers by which data files know columns, as the library says them."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from lance.fragment import DataFile

if TYPE_CHECKING:
    from lance.lance.schema import LanceField  # exists for type checkers only


def data_file_name(file: DataFile) -> str:
    """Return the name of a data file: `DataFile.path` makes a class each time it is asked.

    A commit asks a dozen times, and a comparison of two versions once for every fragment.
    """
    return file._path


def field_ids(fields: "Iterable[LanceField]") -> Iterator[int]:
    """Yield the numbers of columns, each before those of its parts."""
    for field in fields:
        yield field.id()
        yield from field_ids(field.children())
