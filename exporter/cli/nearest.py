"""The name that a mistyped one was meant to be."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # generic since click 8.4


def hint(text: str, names: Iterable[str]) -> str:
    """A sentence that offers the nearest of `names`, with a blank before it; empty if none is near."""
    near = difflib.get_close_matches(text, [*names], n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


class Choice(_Choice):
    """A choice that offers the nearest value for a mistyped one."""

    @override
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.BadParameter(error.message + hint(str(value), self.choices), ctx, param) from None


class Group(click.Group):
    """A group that offers the nearest command for a mistyped one."""

    # NOTE: click does so since 8.4, but only for commands that a group has imported.

    @override
    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            # NOTE: if the first argument looks like an option, the error is about that option.
            if args[0].startswith("-"):
                raise
            known = self.list_commands(ctx)
            told = hint(args[0], known) or f" The commands are {', '.join(known)}."
            raise click.UsageError(f"No such command {args[0]!r}.{told}", ctx) from error
