"""`onnxplain explain`: a rule's page."""

from __future__ import annotations

import click

from onnxplain.diagnostics import Rule

from . import rule_ids


@click.command("explain")
@click.argument("ids", metavar="RULE...", nargs=-1, required=True, shell_complete=rule_ids.complete_rules)
def command(ids: tuple[str, ...]) -> None:
    """Explain each RULE and how to fix its findings.

    RULE is an id such as OXP1001 or a name such as DataDependentBranch. `onnxplain rules` lists all rules.
    """
    pages = "\n".join(_page(_find(id)) for id in ids)

    from onnxplain.diagnostics import make_console

    console = make_console()
    if not console.is_terminal:
        click.echo(pages, nl=False)
        return

    from rich.markdown import Markdown
    from rich.theme import Theme

    with console.use_theme(Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold"})):
        console.print(Markdown(pages, code_theme="ansi_dark"))


def _find(id: str) -> type[Rule]:
    try:
        return rule_ids.find(id)
    except ValueError as error:
        raise click.UsageError(str(error)) from error


def _page(rule: type[Rule]) -> str:
    facts = {"Level": rule.level.value, "Chapter": rule.chapter(), "Since": rule.history[0].version, "Message": rule.message}
    told = "\n".join(f"- {name}: {fact}" for name, fact in facts.items())
    return f"# {rule.id}: {rule.__name__}\n\n{told}\n\n{rule.page.markdown}"
