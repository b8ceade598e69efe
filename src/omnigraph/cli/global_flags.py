"""The flags that may be given before a command as well as after it."""

import click

SWITCHES = frozenset({"--yes", "--quiet", "--json", "--no-warm"})
WITH_VALUE = frozenset(
    {
        "--store",
        "--uri",
        "--server",
        "--graph",
        "--cluster",
        "--profile",
        "--target",
        "--config",
        "--as",
        "--policy",
    }
)


class ForwardingGroup(click.Group):
    """A group that passes global flags given before a command on to that command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move the leading global flags to right after the name of the command."""
        count = _leading(args)
        if count < len(args) and not args[count].startswith("-"):
            args = [args[count], *args[:count], *args[count + 1 :]]
        return super().parse_args(ctx, args)


def _leading(args: list[str]) -> int:
    """Return how many words at the front are global flags and their values."""
    count = 0
    while count < len(args):
        name, has_value, _ = args[count].partition("=")
        if args[count] in SWITCHES or (name in WITH_VALUE and has_value):
            count += 1
        elif name in WITH_VALUE and count + 1 < len(args):
            count += 2
        else:
            break
    return count
