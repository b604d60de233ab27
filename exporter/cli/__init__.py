"""The command line: `onnxplain COMMAND`. Each command is a module of this folder, which is imported when it is needed."""

from __future__ import annotations

import contextlib
import errno
import importlib
import io
import os
import pathlib
import shlex
import sys
from typing import Any

import click
from click.core import ParameterSource
from typing_extensions import override

from onnxplain.diagnostics import UnreadableLog, described_error, visible, visible_lines
from onnxplain.signals import Terminated, terminations_as_exceptions

from .nearest import Group

COMMANDS = ("baseline", "config", "explain", "export", "fix", "gate", "memory", "profile", "report", "rules", "show", "triage")

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in a shell: 128 plus the number of SIGINT."""

NEEDS_NO_FOLDER = ("explain", "rules")
"""Commands that read and write no files. torch and all other commands need a current folder."""

JUDGES = ("baseline", "gate")
"""Commands whose exit codes 0 and 1 are a verdict. Without a verdict they exit with 2."""


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
"""A full disk, or a full quota."""


class Undecided(click.ClickException):
    """An error that keeps a gate from a verdict."""

    exit_code = 2


class Commands(Group):
    """Imports a command when it is needed, and turns exceptions that escape it into exit codes."""

    @override
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    @override
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        ctx.meta["onnxplain.command"] = cmd_name
        command: click.Command = importlib.import_module(f".{cmd_name}", __name__).command
        return command

    @override
    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name not in NEEDS_NO_FOLDER and not {"-h", "--help"} & set(rest):
            try:
                pathlib.Path.cwd()
            except OSError as error:
                raise click.UsageError(
                    f"The current folder cannot be used ({error.strerror}): change to another one first.", ctx
                ) from error
        return name, command, rest

    @override
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta["onnxplain.command_line"] = shlex.join(["onnxplain", *args])
        return super().parse_args(ctx, args)

    @override
    def main(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().main(*args, **kwargs)
        except OSError:
            # NOTE: the error message could not be written. Python would exit with 1, which is a verdict.
            _hush()
            sys.exit(Undecided.exit_code)

    @override
    def invoke(self, ctx: click.Context) -> Any:
        try:
            return self._invoke(ctx)
        except (click.ClickException, click.Abort, SystemExit, BrokenPipeError) as error:
            if ctx.meta.get("onnxplain.command") not in JUDGES or isinstance(error, click.UsageError):
                raise
            if isinstance(error, click.ClickException):
                raise Undecided(error.format_message()) from error
            _hush()
            ctx.exit(Undecided.exit_code)

    def _invoke(self, ctx: click.Context) -> Any:
        try:
            with terminations_as_exceptions():
                return super().invoke(ctx)
        except click.ClickException as error:
            if isinstance(error, click.BadParameter) and (variable := _variable(error)):
                error.message = f"{variable}: {error.message}"  # type: ignore[misc]  # as below
            if isinstance(error, click.NoSuchOption) and error.possibilities:
                error.possibilities = error.possibilities[:1]  # type: ignore[misc]  # click sorts them by name, the nearest may be last
            # NOTE: a message may quote an exception of the model, or a log of somebody else.
            error.message = visible_lines(error.message)  # type: ignore[misc]  # click shows it with the usage of each command
            raise
        except (click.Abort, click.exceptions.Exit, BrokenPipeError):
            raise
        except UnreadableLog as error:
            raise click.UsageError(visible(str(error))) from error
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            ctx.exit(Undecided.exit_code if ctx.meta.get("onnxplain.command") in JUDGES else INTERRUPTED)
        except Terminated as ended:
            click.echo(f"Interrupted by {ended.signal.name}.", err=True)
            ctx.exit(Undecided.exit_code if ctx.meta.get("onnxplain.command") in JUDGES else 128 + ended.signal)
        except BaseException as error:
            # NOTE: click itself ends by raising Exit. A SystemExit comes from other code, and its exit code is not that of this command.
            # Users see one line, and no traceback unless they ask for it.
            if ctx.meta.get("onnxplain.debug") and isinstance(error, Exception):
                raise
            raise click.ClickException(_told(error)) from error


def _variable(error: click.BadParameter) -> str | None:
    """The variable of the environment that has the wrong value, if it is one."""
    if error.ctx is None or error.param is None or error.param.name is None:
        return None
    if error.ctx.get_parameter_source(error.param.name) is not ParameterSource.ENVIRONMENT:
        return None
    return f"{error.ctx.auto_envvar_prefix}_{error.param.name.upper()}"


def _told(error: BaseException) -> str:
    """What users see of an exception that nothing expected."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return f"The output cannot be written: {error.strerror}."
    return (
        f"onnxplain stopped with an unexpected {visible_lines(described_error(error))}\n"
        "This is a bug in onnxplain. Please report it at https://github.com/onnxplain/onnxplain/issues, with the command and its "
        "files. `onnxplain export --verbosity debug` shows the traceback of an export."
    )


def _hush() -> None:
    """Keeps Python from flushing to a closed pipe when it ends, since a failure there would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# NOTE: ONNXPLAIN_VERSION may be anybody's name for a version to install.
@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "ONNXPLAIN"})
@click.version_option(package_name="onnxplain", allow_from_autoenv=False)
def main() -> None:
    """Export PyTorch models to ONNX, and explain every export."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # The encoding of a pipe may lack characters of the user's source.
            stream.reconfigure(errors="backslashreplace")
