"""The command line: `onnxplain COMMAND`. Each command is a module of this folder, loaded when it is asked for."""

from __future__ import annotations

import importlib
import io
import shlex
import sys
from typing import Any

import click
from typing_extensions import override

from onnxplain.diagnostics import UnreadableLog

COMMANDS = ("explain", "export", "fix", "report", "rules")

INTERRUPTED = 130
"""Exit code after Ctrl-C, as of a shell (128 and the number of SIGINT)."""


class Commands(click.Group):
    """Loads a command when it is asked for, and turns what escapes it into an exit code."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f".{cmd_name}", __name__).command
        return command

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["onnxplain.command_line"] = shlex.join(["onnxplain", *args])
        return super().parse_args(ctx, args)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except UnreadableLog as error:
            raise click.UsageError(str(error)) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(INTERRUPTED)
        except Exception as error:
            if ctx.meta.get("onnxplain.debug"):
                raise
            raise click.ClickException(
                f"onnxplain stopped with an unexpected {type(error).__name__}: {error}\n"
                "This is a bug of onnxplain. Please report it, with the traceback that `onnxplain export --verbosity debug` shows."
            ) from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="onnxplain")
def main() -> None:
    """Exports PyTorch models to ONNX and explains every export."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A pipe may have an encoding that lacks characters of the user's sources.
            stream.reconfigure(errors="backslashreplace")
