"""`omnigraph branch`: parallel histories of one graph."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from omnigraph.cli.commands.branch_merge import merge
from omnigraph.cli.commands.diff import diff
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import (
    GraphCommand,
    ReadCommand,
    actor_option,
    graph_and_word,
    json_option,
    master_option,
    message_option,
    rows_engine_option,
    yes_option,
)
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.target import (
    Addressed,
    address_options,
    require_consent,
    uri_argument,
)

if TYPE_CHECKING:
    from omnigraph.operations.engine import Engine


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def branch() -> None:
    """Create, list, merge, upgrade and delete the branches of a graph."""


branch.add_command(diff)
branch.add_command(merge)


@branch.command("create", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] NAME")
@click.option("--from", "from_", metavar="NAME", help="The branch to start from; main if not given.")
@actor_option
@address_options
@json_option
def create(
    *,
    words: Sequence[str],
    from_: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Create the branch NAME in the graph at URI; no data is copied."""
    positional, name = graph_and_word(words, "branch create takes the name of a branch")
    target = addressed.resolve(positional)
    author = addressed.author(target, actor)
    from omnigraph.cli.access import reach_for_writing

    addressed.announce("branch create", target)
    with reach_for_writing(target) as graph:
        made = graph.create_branch(name, from_, actor=author)
    if as_json:
        print_document(made)
    else:
        say(f"created branch {made['name']} from {made['from']}")


@branch.command("list", cls=ReadCommand)
@uri_argument
@address_options
@json_option
def list_branches(*, addressed: Addressed, as_json: bool) -> None:
    """List the branches of the graph at URI, one name per line."""
    target = addressed.resolve()
    from omnigraph.cli.access import reach_for_reading

    with reach_for_reading(target) as graph:
        listed = graph.branches()
    if as_json:
        print_document(listed)
    else:
        say("\n".join(listed["branches"]))


@branch.command("upgrade", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] NAME")
@click.option(
    "--allow-data-loss",
    is_flag=True,
    help="Let what main dropped leave all files of the branch, and its past.",
)
@click.option("--no-index", is_flag=True, help="Do not build the indexes that are missing afterwards.")
@rows_engine_option
@master_option
@message_option
@actor_option
@address_options
@json_option
def upgrade(
    *,
    words: Sequence[str],
    allow_data_loss: bool,
    no_index: bool,
    engine: "Engine",
    master: str | None,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Bring the changes of main's schema to the branch NAME of the graph at URI; its rows stay."""
    positional, name = graph_and_word(words, "branch upgrade takes the name of a branch")
    target = addressed.resolve(positional)
    author = addressed.author(target, actor)
    from omnigraph.cli.access import reach_for_writing
    from omnigraph.cli.lean_imports import let_pandas_in
    from omnigraph.cli.render.maintenance import table_progress
    from omnigraph.cli.schema_result import print_schema_result
    from omnigraph.client.access import UpgradeCall

    call = UpgradeCall(
        name,
        allow_data_loss=allow_data_loss,
        message=message,
        index=not no_index,
        engine=engine,
        master=master,
    )
    addressed.announce("branch upgrade", target)
    with (
        reach_for_writing(target) as graph,
        table_progress(quiet=addressed.quiet, as_json=as_json) as progress,
    ):
        let_pandas_in()  # for Spark
        upgraded = graph.upgrade_branch(call, actor=author, progress=progress)
    commit = upgraded["commit"]
    told = f"branch {name.strip()} has the schema of main"
    told += " already" if commit is None else f", as commit {commit['graph_commit_id']}"
    print_schema_result(upgraded, told, as_json=as_json)


@branch.command("delete", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] NAME")
@actor_option
@address_options
@yes_option
@json_option
def delete(
    *, words: Sequence[str], actor: str | None, addressed: Addressed, yes: bool, as_json: bool
) -> None:
    """Delete the branch NAME of the graph at URI and the commits only it has."""
    positional, name = graph_and_word(words, "branch delete takes the name of a branch")
    target = addressed.resolve(positional)
    author = addressed.author(target, actor)
    require_consent("branch delete deletes a branch", target, yes=yes, may_ask=not as_json)
    from omnigraph.cli.access import reach_for_writing

    addressed.announce("branch delete", target)
    with reach_for_writing(target) as graph:
        gone = graph.delete_branch(name, actor=author)
    if as_json:
        print_document(gone)
    else:
        say(f"deleted branch {gone['name']}")
