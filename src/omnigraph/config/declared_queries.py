"""Stored queries as a file declares them: a folder, a list of files, or names with their files.

What is in those files is for their reader; here they are places.
"""

from collections.abc import Mapping, Sequence

from omnigraph.config.section import Section
from omnigraph.graph.stored_files import DeclaredQueries, NamedQuery

_NAMED = "must be a mapping with the key file, and if wanted expose and tool_name, as in {file: a.gq}"


def declared_queries(top: Section, key: str = "queries") -> DeclaredQueries | None:
    """Return what a file declares under a key, with paths beside that file; None where it declares nothing.

    Raises:
        BadRequest: the value has none of the three forms.
    """
    value, beside = top.raw(key), top.file.parent
    if isinstance(value, str) and value:
        place = beside / value
        is_file = place.suffix == ".gq"
        return DeclaredQueries(files=(place,)) if is_file else DeclaredQueries(folder=place)
    if isinstance(value, Mapping):
        for name, item in value.items():
            if not isinstance(item, Mapping | None):
                top.section(key).refuse(str(name), _NAMED)
        return DeclaredQueries(named=tuple(_named(name, section) for name, section in top.sections(key)))
    if isinstance(value, Sequence):
        return DeclaredQueries(files=tuple(beside / file for file in top.texts(key) or ()))
    if value is not None:
        top.refuse(key, "must be a folder, a list of .gq files, or a mapping of names to {file: …}")
    return None


def _named(name: str, section: Section) -> NamedQuery:
    file = section.text("file")
    if file is None:
        section.refuse("file", "is missing: name the .gq file that declares the query")
    query = NamedQuery(
        name, section.file.parent / file, section.flag("expose", default=True), section.text("tool_name")
    )
    section.end()
    return query
