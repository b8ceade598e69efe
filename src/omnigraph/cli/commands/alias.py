"""`omnigraph alias`: a query by the short name that the project or the operator gave it."""

from collections.abc import Sequence

import click

from omnigraph.cli.call import prepare_alias
from omnigraph.cli.given_query import GivenParams, params_options
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.options import GraphCommand, json_option
from omnigraph.cli.running import (
    FORMATS,
    JSON,
    chosen_format,
    print_answer,
    print_change,
    run_mutation,
    run_read,
    run_stored,
)
from omnigraph.cli.target import Addressed
from omnigraph.client.answer import Document, ReadAnswer

_OWN_SCOPE = "does not apply: an alias has its own graph"
_REFUSED = dict.fromkeys(
    ("--store", "--uri", "--server", "--graph", "--cluster", "--profile", "--target"), _OWN_SCOPE
)


@click.command(cls=GraphCommand, refuses=_REFUSED)
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[ARGS...]")
@params_options
@click.option(
    "--format", "format_name", type=click.Choice(FORMATS), help="How the rows of a read are printed."
)
@click.option(
    "--config", metavar="PATH", help="The project file or its folder; ./omnigraph.yaml if not given."
)
@click.option("--quiet", is_flag=True, hidden=True)
@json_option
@click.pass_context
def alias(
    ctx: click.Context,
    *,
    name: str,
    words: Sequence[str],
    params_text: str | None,
    params_path: str | None,
    format_name: str | None,
    config: str | None,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run the query with the alias NAME: of the project file, else of the operator file.

    Each argument is read as JSON, or else taken as a text, and gets the name that the alias gives its place.
    """
    if as_json and format_name is not None:
        raise click.UsageError("--json and --format cannot be combined")
    given = GivenParams(params_text, params_path)
    given.check_usage()
    invocation = ctx.ensure_object(Invocation)
    invocation.is_json |= format_name == JSON
    addressed = Addressed(None, (), (), quiet, config=config, needs_storage=False, is_guarded=True)
    call = prepare_alias(name, words, given, addressed, None)
    configuration, on = addressed.settings, addressed.on_branch(call.branch)
    chosen = chosen_format(format_name, call.format, configuration, as_json=as_json)
    invocation.is_json |= chosen == JSON
    if call.kind == "read":
        answer: Document | ReadAnswer = run_read(call, branch=on, snapshot=None)
    elif call.kind == "mutation":
        author = addressed.author(call.target, None)
        answer = run_mutation(call, branch=on, actor=author)
    else:
        answer = run_stored(call, branch=call.branch)
    if isinstance(answer, ReadAnswer):
        print_answer(answer, chosen, configuration)
    else:
        print_change(answer, as_json=as_json)
