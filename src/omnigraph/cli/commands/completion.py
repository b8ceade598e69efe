"""`omnigraph completion`: what a shell needs to complete the command line."""

import click

_SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(ctx: click.Context, *, shell: str) -> None:
    """Print what SHELL runs to complete commands, flags, and the branches and types of a graph on this disk.

    Put it where the shell looks when it starts:

    \b
      bash   eval "$(omnigraph completion bash)"      in ~/.bashrc (bash 4.4 or newer)
      zsh    eval "$(omnigraph completion zsh)"       in ~/.zshrc
      fish   omnigraph completion fish | source       in ~/.config/fish/config.fish
    """  # noqa: D301 - the character by which click keeps lines as they are
    from omnigraph.cli.completion import script

    click.echo(script(shell, ctx.find_root().command))
