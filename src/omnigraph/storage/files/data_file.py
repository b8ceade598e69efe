"""The name of a data file, from what the library says of it."""

from lance.fragment import DataFile


def data_file_name(file: DataFile) -> str:
    """Return the name of a data file: `DataFile.path` makes a class each time it is asked.

    A commit asks a dozen times, and a comparison of two versions once for every fragment.
    """
    return file._path
