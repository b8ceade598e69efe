"""`omnigraph import`: a whole export, in place of what the graph holds of its types."""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import click

from omnigraph.cli.loading import (
    LoadPlace,
    engine_option,
    from_option,
    index_option,
    load_here,
    load_there,
    one_ndjson,
    refuse_for_server,
)
from omnigraph.cli.options import (
    GraphCommand,
    actor_option,
    branch_option,
    json_option,
    master_option,
    message_option,
    yes_option,
)
from omnigraph.cli.sources import STDIN
from omnigraph.cli.target import Addressed, address_options, require_consent, uri_argument

if TYPE_CHECKING:
    from omnigraph.catalog.model import Catalog
    from omnigraph.operations.engine import Engine
    from omnigraph.operations.load.load import LoadInput
    from omnigraph.operations.load.model import SentKeywords

_REFUSED = {
    "--mode": "does not apply to import, which replaces the types of the export: omnigraph load has modes",
    "--mapping": "does not apply to import, which takes what export prints: omnigraph load takes mappings",
}


@click.command("import", cls=GraphCommand, refuses=_REFUSED)
@uri_argument
@click.option(
    "--data", "name", required=True, metavar="FILE", help="What export printed; - for standard input."
)
@branch_option
@from_option
@engine_option
@master_option
@index_option
@message_option
@actor_option
@address_options
@yes_option
@json_option
def import_(
    *,
    name: str,
    branch: str | None,
    from_: str | None,
    engine: str,
    master: str | None,
    no_index: bool,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    yes: bool,
    as_json: bool,
) -> None:
    """Load a whole export into the graph at URI, in place of what it holds of these types, as one commit.

    The file is refused if the records of a type differ in which properties they have: an export lists all
    of them.
    """
    target = addressed.resolve()
    may_ask = not as_json and name != STDIN
    require_consent("import replaces data", target, yes=yes, may_ask=may_ask)

    author, where = addressed.author(target, actor), LoadPlace(addressed, target, as_json=as_json)
    common: SentKeywords = {
        "branch": addressed.on_branch(branch),
        "from_": from_,
        "message": message,
        "index": not no_index,
    }
    if target.is_served:
        refuse_for_server(**{"--engine": None if engine == "auto" else engine, "--master": master})
        load_there("import", lambda: _whole(name), "overwrite", where, **common)
        return

    def inputs(catalog: "Catalog") -> "Iterator[LoadInput]":
        from omnigraph.operations.load.whole_export import whole_export

        yield whole_export(name, catalog, sys.stdin.buffer)

    load_here(
        "import",
        inputs,
        "overwrite",
        where,
        actor=author,
        engine=cast("Engine", engine),
        master=master,
        **common,
    )


def _whole(name: str) -> bytes:
    """Return a whole export, as it is sent."""
    from omnigraph.operations.load.whole_export import require_one_shape

    data = one_ndjson([name])
    require_one_shape([(1, data)])
    return data
