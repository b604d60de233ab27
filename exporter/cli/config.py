"""`onnxplain config`: the settings that hold, and where they come from."""

from __future__ import annotations

from collections.abc import Iterator

import click

from onnxplain.diagnostics import Span

from . import export, gate, settings
from .origins import origin, shown


@click.command("config", short_help="Show the settings, and where each comes from.", epilog="Exits with 2 if a setting is not valid.")
@click.argument("target", required=False, shell_complete=export.complete_files)
@click.pass_context
def command(ctx: click.Context, target: str | None) -> None:
    """Show the settings of `export` and `gate`, and where each comes from.

    A setting comes from a variable of the environment, from the section [tool.onnxplain] of pyproject.toml, or is the default. The file is
    the nearest one with such a section, from the folder of TARGET or else the current one upwards. Options of the command line count before
    all of these.
    """
    source = "" if target is None else target if target.endswith(".py") else target.rpartition(":")[0] or target
    found = {export.command: settings.for_export(source or "."), gate.command: settings.for_gate()}

    from onnxplain.diagnostics import make_console, show_lines

    console = make_console()
    for each, its in found.items():
        show_lines(_table(_context(each, ctx), its), console)


def _context(command: click.Command, ctx: click.Context) -> click.Context:
    """A call of a command without options."""
    made = click.Context(command, parent=ctx.parent, info_name=command.name)
    arguments = ["-"] if any(isinstance(param, click.Argument) and param.required for param in command.params) else []
    command.parse_args(made, arguments)
    return made


def _table(ctx: click.Context, found: settings.Settings) -> Iterator[list[Span]]:
    values = settings.settled(ctx, found)
    options = [param for param in ctx.command.params if isinstance(param, click.Option) and param.name in values]
    rows = [((each.name or "").replace("_", "-"), shown(values[each.name or ""], each), origin(ctx, each, found)) for each in options]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    yield [(ctx.command.name or "", "headline")]
    for name, value, place in rows:
        yield [(f"  {name:<{widths[0]}}  ", "label"), (f"{value:<{widths[1]}}  ", ""), (place, "")]
