"""`onnxplain explain`: a rule's page."""

from __future__ import annotations

import difflib
import operator

import click

import onnxplain.rules  # noqa: F401  (defines the rules)
from onnxplain.diagnostics import Rule


@click.command("explain")
@click.argument("ids", metavar="RULE...", nargs=-1, required=True)
def command(ids: tuple[str, ...]) -> None:
    """Explain each RULE and how to fix its findings.

    RULE is an id such as OXP1001 or a name such as DataDependentBranch. `onnxplain rules` lists all rules.
    """
    pages = "\n".join(_page(_find(id)) for id in ids)

    from onnxplain.diagnostics.console import make_console

    console = make_console()
    if not console.is_terminal:
        click.echo(pages, nl=False)
        return

    from rich.markdown import Markdown
    from rich.theme import Theme

    with console.use_theme(Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold"})):
        console.print(Markdown(pages, code_theme="ansi_dark"))


def _find(id: str) -> type[Rule]:
    names = {name.lower(): rule for rule in Rule.all() for name in (rule.id, rule.__name__)}
    rule = names.get(id.lower())
    if rule is None:
        # NOTE: of equally similar ids, those that differ at the fewest positions come first.
        similar = difflib.get_close_matches(id.lower(), names, n=len(names))
        similar.sort(key=lambda name: sum(map(operator.ne, name, id.lower())))
        near = [f"{rule.id} ({rule.__name__})" for rule in map(names.__getitem__, similar[:3])]
        hint = f"The nearest are {', '.join(near)}." if near else "`onnxplain rules` lists all rules."
        raise click.UsageError(f"There is no rule {id}. {hint}")
    return rule


def _page(rule: type[Rule]) -> str:
    facts = {"Level": rule.level.value, "Chapter": rule.chapter(), "Since": rule.history[0].version, "Message": rule.message}
    told = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return f"# {rule.id}: {rule.__name__}\n\n{told}\n\n{rule.page.markdown}"
