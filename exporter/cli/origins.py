"""Where the options of a command come from, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click
from click.core import ParameterSource

from onnxplain.diagnostics import Level, visible

from .inputs import Input
from .settings import Settings


def told(ctx: click.Context, found: Settings, values: Mapping[str, Any]) -> Iterator[str]:
    """A sentence for each option that a file or a variable sets. The command line, which a log has anyway, tells the others.

    Args:
        ctx: The call of the command.
        found: The settings of the file.
        values: What holds.
    """
    for option in ctx.command.params:
        name = option.name or ""
        source = ctx.get_parameter_source(name)
        is_overridden = source is ParameterSource.COMMANDLINE and name != "levels"
        if isinstance(option, click.Option) and (name in found or source is ParameterSource.ENVIRONMENT) and not is_overridden:
            yield f"{name.replace('_', '-')} is {shown(values[name], option)}, from {origin(ctx, option, found)}."


def origin(ctx: click.Context, option: click.Option, found: Settings) -> str:
    """Where the value of an option comes from: a variable, a place in a file, or the default."""
    name = option.name or ""
    places = [visible(found[name].place)] if name in found else []
    if ctx.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
        variable = f"{ctx.auto_envvar_prefix}_{name.upper()}"
        return ", ".join([variable, *places]) if name == "levels" else variable
    return places[0] if places else "default"


def shown(value: Any, option: click.Option) -> str:
    """The value of an option, as a setting has it."""
    if value in (None, (), {}):
        return option.show_default if isinstance(option.show_default, str) else "none"
    match value:
        case bool():
            return str(value).lower()
        case Mapping():
            return ", ".join(f"{rule}={level.value if isinstance(level, Level) else level}" for rule, level in value.items())
        case tuple():
            return ", ".join(str(each) if isinstance(each, Input) else visible(str(each)) for each in value)
        case "" if option.name in ("report", "repro"):
            return "true"
    return visible(str(value))
