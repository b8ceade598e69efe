"""The reference page of the command line, rendered from the commands themselves."""

from collections.abc import Iterator

import click

from omnigraph.cli.main import COMMANDS, DEPRECATED, DEPRECATED_PAIRS, omnigraph

WIDTH = 90
HEAD = """\
# Command line

Generated from the commands; `pytest tests/surfaces/docs --accept` rewrites it. The rules that all commands
share are in [surfaces, section 1](../spec/surfaces.md).

| Exit code | When |
|---|---|
| 0 | success, warnings, unsupported plans and mutations that match nothing included |
| 1 | any failure: an unreadable file, wrong data, a wrong schema or query, a conflict, no graph |
| 2 | usage: an unknown or missing command or flag, two addresses, an unreadable value, `-` twice |
| 4 | a lost precondition: `--if-commit`, and only that |
| 130 | interrupted |

Results go to standard output, everything else to standard error. With `--json` a failure (exit code 1 or 4)
also prints a document to standard output: `error`, `code` where there is one, and at most one detail such as
`precondition_failure`. `python -m omnigraph` is the same program.
"""

_OLD_FLAGS = [
    "| `query --name NAME`, `mutate --name NAME` | `query NAME`, `mutate NAME` | The name needs no flag. |",
    "| `export --jsonl` | `export` | NDJSON is what an export prints. |",
    "| `embed --reembed_all` | `embed --reembed-all` | Also recompute existing vectors. |",
]
_OLD_DEFAULTS = "`ingest` differs from `load` in its defaults: `--branch main --from main --mode merge`.\n"


def render() -> str:
    """Return the whole page."""
    settings = {**omnigraph.context_settings, "max_content_width": WIDTH, "terminal_width": WIDTH}
    root = click.Context(omnigraph, info_name="omnigraph", **settings)
    sections = [HEAD, *_sections(root, omnigraph), _old_names()]
    return "\n".join(sections)


def _sections(context: click.Context, command: click.Command) -> Iterator[str]:
    """Yield the help of a command, and then of those below it."""
    yield f"## {context.command_path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None, name
            yield from _sections(click.Context(below, parent=context, info_name=name), below)


def _old_names() -> str:
    old_names = DEPRECATED | {" ".join(old): new for old, new in DEPRECATED_PAIRS.items()}
    rows = [f"| `{old}` | `{new}` | {COMMANDS[new].help} |" for old, new in sorted(old_names.items())]
    table = "\n".join(["| Old name | Use | |", "|---|---|---|", *rows, *_OLD_FLAGS])
    says = "They work as ever, with one warning on standard error."
    return f"## Old names\n\n{says}\n\n{table}\n\n{_OLD_DEFAULTS}"
