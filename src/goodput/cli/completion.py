"""`goodput completion`: the script that teaches a shell our commands."""

import click

from goodput.cli.options import json_option
from goodput.cli.output import emit
from goodput.cli.registry import COMPLETION_VARIABLE


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def completion(ctx: click.Context, shell: str, *, as_json: bool) -> None:
    r"""Print the completion script of a SHELL.

    \b
      bash:  goodput completion bash > ~/.local/share/bash-completion/completions/goodput
      zsh:   goodput completion zsh > "${fpath[1]}/_goodput"
      fish:  goodput completion fish > ~/.config/fish/completions/goodput.fish
    """
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None, shell
    script = kind(ctx.find_root().command, {}, "goodput", COMPLETION_VARIABLE).source()
    if as_json:
        import json

        script = json.dumps({"shell": shell, "script": script})
    emit(script)
