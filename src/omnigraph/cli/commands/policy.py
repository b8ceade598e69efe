"""`omnigraph policy`: a policy file checked, tested, asked and compiled; no graph is opened."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import Decorated, GraphCommand, with_options
from omnigraph.cli.printing import say
from omnigraph.cli.settings import settings
from omnigraph.cli.steering import on_one_line
from omnigraph.core.errors import BadRequest
from omnigraph.policy.request import Action

if TYPE_CHECKING:
    from omnigraph.policy.model import Policy

_FILE = (
    click.option(
        "--policy", "file", type=click.Path(path_type=Path), metavar="FILE", help="The policy file."
    ),
    click.option(
        "--config", metavar="PATH", help="The project file or its folder; ./omnigraph.yaml if not given."
    ),
    click.option("--target", metavar="NAME", help="The graph of the project file whose policy is meant."),
)


def _file_options(command: Decorated) -> Decorated:
    return with_options(command, _FILE)


@click.group(cls=ForwardingGroup)
def policy() -> None:
    """Check a policy file, test it, and say what it decides.

    The file is that of --policy, else the one that the project file names for the graph --target, or for all.
    """


@policy.command(cls=GraphCommand)
@_file_options
def validate(*, file: Path | None, config: str | None, target: str | None) -> None:
    """Read a policy file and report the first mistake."""
    found = _policy(file, config, target)
    say(f"policy valid: {found.name} [{len(found.actors)} actors]")


@policy.command(cls=GraphCommand)
@_file_options
@click.option(
    "--tests",
    "tests",
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Cases: who wants what, and whether it is to be allowed.",
)
@click.pass_context
def test(
    ctx: click.Context, *, file: Path | None, config: str | None, target: str | None, tests: Path
) -> None:
    """Compare what a policy decides with the cases of a file; exits with 1 if one differs."""
    from omnigraph.policy.cases import mismatches, read_cases

    found, cases = _policy(file, config, target), read_cases(tests)
    different = mismatches(found, cases)
    if not different:
        say(f"policy tests passed: {len(cases)} cases")
        return
    for mismatch in different:
        say(str(mismatch))
    ctx.exit(EXIT_FAILURE)


@policy.command(cls=GraphCommand)
@_file_options
@click.option("--actor", metavar="ACTOR", help="Who wants it.")
@click.option(
    "--action", required=True, type=click.Choice([action.value for action in Action]), help="What they want."
)
@click.option("--branch", metavar="NAME", help="The branch; of a create or merge, the one it comes from.")
@click.option(
    "--target-branch", metavar="NAME", help="The branch that is made, deleted, changed or merged into."
)
def explain(
    *,
    file: Path | None,
    config: str | None,
    target: str | None,
    actor: str | None,
    action: str,
    branch: str | None,
    target_branch: str | None,
) -> None:
    """Say what a policy decides about one request, and by which rule."""
    from omnigraph.policy.cedar import CedarRules
    from omnigraph.policy.gate import decide
    from omnigraph.policy.request import AccessRequest

    request = AccessRequest(actor, Action(action), branch, target_branch)
    decision = decide(CedarRules.of(_policy(file, config, target)), request)
    lines = {
        "decision": "allow" if decision.is_allowed else "deny",
        "actor": request.actor or "(none)",
        "action": request.action.value,
        "branch": request.branch,
        "target_branch": request.target_branch,
        "matched_rule": decision.rule_id,
        "message": decision.message,
    }
    for name, value in lines.items():
        if value is not None:
            say(f"{name}: {on_one_line(value)}")  # a name with a line of its own would pass for an answer


@policy.command("compile", cls=GraphCommand, refuses={})
@_file_options
@click.option("--graph", "graph_id", metavar="ID", help="The id of the graph; default if not given.")
def compile_(*, file: Path | None, config: str | None, target: str | None, graph_id: str | None) -> None:
    """Print the text of Cedar that a policy compiles to, which is the text that decides."""
    from omnigraph.core.graph_id import check_graph_id
    from omnigraph.policy.cedar import DEFAULT_GRAPH, compile_policy

    found = _policy(file, config, target)
    say(compile_policy(found, DEFAULT_GRAPH if graph_id is None else check_graph_id(graph_id)).rstrip())


def _policy(file: Path | None, config: str | None, target: str | None) -> "Policy":
    """Return the policy that is meant.

    Raises:
        click.UsageError: a file and a graph of the project are both named.
        BadRequest: none is named anywhere, or the file cannot be read or is no policy.
    """
    from omnigraph.policy.model import Policy

    if file is not None:
        if target is not None:
            raise click.UsageError("--policy and --target both name the policy: give one of them")
        return Policy.read(file)
    project = settings(config).project
    named = None
    if project is not None:
        own = None if target is None else project.graph_entry(target).policy_file
        named = own or project.policy_file
    if named is None:
        raise BadRequest(
            "no policy given: name its file with --policy, or in the project file as policy.file"
        )
    return Policy.read(named)
