"""`omnigraph branch`: parallel histories of one graph."""

from collections.abc import Sequence

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
    message_option,
)
from omnigraph.cli.printing import print_document, say
from omnigraph.cli.progress import working
from omnigraph.cli.target import Addressed, address_options, uri_argument


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
    from omnigraph.cli.access import open_for_writing
    from omnigraph.history.identity import branch_name

    addressed.announce("branch create", target)
    with open_for_writing(target) as graph:
        made = graph.create_branch(name, from_, actor=actor)
    source = branch_name(made.parent_branch)
    if as_json:
        print_document({"uri": target.uri, "from": source, "name": made.name})
    else:
        say(f"created branch {made.name} from {source}")


@branch.command("list", cls=ReadCommand)
@uri_argument
@address_options
@json_option
def list_branches(*, addressed: Addressed, as_json: bool) -> None:
    """List the branches of the graph at URI, one name per line."""
    target = addressed.resolve()
    from omnigraph.cli.access import open_for_reading

    with open_for_reading(target) as graph:
        names = graph.branches()
    if as_json:
        print_document({"branches": names})
    else:
        say("\n".join(names))


@branch.command("upgrade", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] NAME")
@click.option("--no-index", is_flag=True, help="Do not build the indexes that are missing afterwards.")
@message_option
@actor_option
@address_options
@json_option
def upgrade(
    *,
    words: Sequence[str],
    no_index: bool,
    message: str | None,
    actor: str | None,
    addressed: Addressed,
    as_json: bool,
) -> None:
    """Bring the changes of main's schema to the branch NAME of the graph at URI; its rows stay."""
    positional, name = graph_and_word(words, "branch upgrade takes the name of a branch")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import open_for_writing
    from omnigraph.cli.schema_result import print_schema_result

    addressed.announce("branch upgrade", target)
    with open_for_writing(target) as graph, working("changing the schema", quiet=addressed.quiet):
        result = graph.upgrade_branch(name, actor=actor, message=message, index=not no_index)
    told = f"branch {name.strip()} has the schema of main"
    told += " already" if result.commit is None else f", as commit {result.commit.graph_commit_id}"
    print_schema_result(result, told, uri=target.uri, as_json=as_json)


@branch.command("delete", cls=GraphCommand)
@click.argument("words", nargs=-1, metavar="[URI] NAME")
@actor_option
@address_options
@json_option
def delete(*, words: Sequence[str], actor: str | None, addressed: Addressed, as_json: bool) -> None:
    """Delete the branch NAME of the graph at URI and the commits only it has."""
    positional, name = graph_and_word(words, "branch delete takes the name of a branch")
    target = addressed.resolve(positional)
    from omnigraph.cli.access import open_for_writing

    addressed.announce("branch delete", target)
    with open_for_writing(target) as graph:
        graph.delete_branch(name, actor=actor)
    if as_json:
        print_document({"uri": target.uri, "name": name.strip()})
    else:
        say(f"deleted branch {name.strip()}")
