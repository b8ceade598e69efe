"""`omnigraph config`: what the files of configuration come to."""

from dataclasses import asdict

import click

from omnigraph.cli.exit_codes import EXIT_FAILURE
from omnigraph.cli.global_flags import ForwardingGroup
from omnigraph.cli.options import json_option
from omnigraph.cli.printing import print_document, print_lines, say
from omnigraph.cli.settings import settings

_config_option = click.option(
    "--config", metavar="PATH", help="The project file or its folder; ./omnigraph.yaml if not given."
)


@click.group(cls=ForwardingGroup, no_args_is_help=True)
def config() -> None:
    """Show which settings apply and where they come from, or check the files."""


@config.command()
@_config_option
@json_option
def show(*, config: str | None, as_json: bool) -> None:
    """Print every setting that has a value, with the file that it comes from; no token is shown."""
    from omnigraph.cli.render.columns import columns
    from omnigraph.config.effective import effective_settings

    found = effective_settings(settings(config))
    if as_json:
        print_document({"settings": [asdict(setting) for setting in found]})
        return
    rows = [[setting.name, setting.value, setting.source] for setting in found]
    print_lines([columns(["setting", "value", "source"], rows) if rows else "nothing is set"])


@config.command()
@_config_option
@json_option
def check(*, config: str | None, as_json: bool) -> None:
    """Read the files of configuration, and say what is wrong in them; warnings are not a failure."""
    configuration = settings(config)
    files = [str(file.path) for file in (configuration.operator, configuration.project) if file is not None]
    problems = [
        found.problem
        for found in ({} if configuration.operator is None else configuration.operator.profiles).values()
        if found.problem is not None
    ]
    if as_json:
        print_document(
            {
                "ok": not problems,
                "files": files,
                "problems": problems,
                "warnings": list(configuration.warnings),
            }
        )
    else:
        say("\n".join([*(f"read {file}" for file in files), *problems]) if files else "there is no file")
    if problems:
        click.get_current_context().exit(EXIT_FAILURE)
