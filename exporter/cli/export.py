"""`onnxplain export`: exports a model and shows what is to be known about it."""

from __future__ import annotations

import logging
import pathlib

import click

import onnxplain.rules
from onnxplain.diagnostics import SARIF_PROFILES, DiagnosticOptions, InvalidArgument, Level, LogNotSaved, SarifProfile

_STRATEGIES = ("non-strict", "strict", "draft")


def _rules(_ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(rule.strip().upper() for value in values for rule in value.split(","))


def _levels(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Level]:
    levels = {}
    for value in values:
        rule, _, level = value.partition("=")
        try:
            levels[rule.strip().upper()] = Level(level.strip().lower())
        except ValueError:
            known = ", ".join(level.value for level in Level)
            raise click.BadParameter(f"{value!r} is not RULE=LEVEL, LEVEL one of {known}.", ctx, param) from None
    return levels


@click.command(
    "export",
    epilog="""\b
    Exit codes:
      0    the model was exported
      1    findings failed the export, or the log could not be written
      2    bad usage: the target cannot be loaded or is no model, or an option's value is wrong
      130  interrupted""",
)
@click.argument("target", required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The ONNX file.  [default: MODEL.onnx]")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The SARIF log.  [default: .sarif/MODEL.sarif]")
@click.option(
    "--sarif-profile",
    type=click.Choice(SARIF_PROFILES),
    default="full",
    show_default=True,
    help="What the log has: all, or what GitHub code scanning accepts.",
)
@click.option("--report", metavar="[PATH]", is_flag=False, flag_value="", help="Write a markdown report, too.  [default: OUTPUT with .md]")
@click.option(
    "--repro",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    help="If the export fails, write a script that fails alike, for an issue.  [default: OUTPUT with .repro.py]",
)
@click.option("--name", metavar="MODEL", help="What the log calls the model; gates tell models apart by it.  [default: its class]")
@click.option("--opset", type=int, metavar="N", help="The ONNX opset version to write.  [default: 20]")
@click.option(
    "--strategy",
    "strategies",
    type=click.Choice(_STRATEGIES),
    default=_STRATEGIES,
    multiple=True,
    help="How to capture; the first that works counts.",
)
@click.option("--no-optimize", is_flag=True, help="Leave the ONNX graph as it was built.")
@click.option("--external-data/--no-external-data", default=None, help="Weights in a file beside the model.  [default: if too large]")
@click.option("--verify", is_flag=True, help="Compare ONNX Runtime's outputs with PyTorch's.")
@click.option("--no-try-fixes", is_flag=True, help="If the export fails, do not run the model again to explain it and to try fixes.")
@click.option("--profile", is_flag=True, help="Say in the report where the time went; implies --report.")
@click.option("--select", metavar="RULE[,RULE]", callback=_rules, multiple=True, help="Report these rules only; OXP1 stands for a chapter.")
@click.option("--ignore", metavar="RULE[,RULE]", callback=_rules, multiple=True, help="Do not report these rules.")
@click.option("--level", "levels", metavar="RULE=LEVEL", callback=_levels, multiple=True, help="Report RULE as error, warning or note.")
@click.option("--warnings-as-errors", is_flag=True, help="Report warnings as errors, which fail the export.")
@click.option(
    "--verbosity", type=click.Choice(("debug", "info", "warning", "error")), default="info", show_default=True, help="How much to record."
)
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    output: pathlib.Path | None,
    sarif: pathlib.Path | None,
    sarif_profile: SarifProfile,
    report: str | None,
    repro: str | None,
    name: str | None,
    opset: int | None,
    strategies: tuple[str, ...],
    no_optimize: bool,
    external_data: bool | None,
    verify: bool,
    no_try_fixes: bool,
    profile: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    levels: dict[str, Level],
    warnings_as_errors: bool,
    verbosity: str,
) -> None:
    """Export TARGET to ONNX and print the findings.

    TARGET is path/to/file.py:NAME or package.module:NAME. NAME is a function without parameters that returns (model, args, kwargs,
    dynamic_shapes), of which all but the model may be left out, or a model whose forward takes no arguments. Files that are not named
    are called after MODEL, the model's class or function, or what --name says.
    """
    ctx.meta["onnxplain.debug"] = verbosity == "debug"
    if target is None and report:
        # `--report TARGET`: the parser cannot know that the value is none.
        target, report = report, ""
    if target is None and repro:
        target, repro = repro, ""
    source, colon, attribute = (target or "").rpartition(":")
    if not colon or not source or not attribute:
        raise click.UsageError("Expected a TARGET such as path/to/file.py:NAME or package.module:NAME.")
    if profile and report is None:
        report = ""
    try:
        options = DiagnosticOptions(
            verbosity_level=getattr(logging, verbosity.upper()),
            warnings_as_errors=warnings_as_errors,
            levels=levels,
            select=select,
            ignore=ignore,
        )
        options.check_known()
    except ValueError as error:
        raise click.UsageError(str(error)) from error

    from onnxplain.diagnostics.console import make_console, render
    from onnxplain.diagnostics.text import visible

    from .progress import StageLine
    from .target import load

    stages = StageLine()
    loaded = load(source, attribute)
    from onnxplain.api import subject_of

    model = subject_of(loaded.model) if name is None else name
    output = output or pathlib.Path(f"{model}.onnx")
    sarif = sarif or pathlib.Path(".sarif", f"{model}.sarif")
    markdown = None if report is None else pathlib.Path(report) if report else output.with_suffix(".md")
    script = None if repro is None else pathlib.Path(repro) if repro else output.with_suffix(".repro.py")
    for option, path in (("--output", output), ("--sarif", sarif), ("--report", markdown), ("--repro", script)):
        if path is not None and path.absolute() == pathlib.Path(source).absolute():
            raise click.UsageError(f"{option}: expected another file than the target's, got {str(path)!r}")
    try:
        with stages.active():
            log = onnxplain.export(
                loaded.model,
                loaded.args,
                f=output,
                kwargs=loaded.kwargs,
                dynamic_shapes=loaded.dynamic_shapes,
                opset_version=opset,
                external_data=external_data,
                optimize=not no_optimize,
                verify=verify,
                try_fixes=not no_try_fixes,
                profile=profile,
                sarif=sarif,
                sarif_profile=sarif_profile,
                name=name,
                report=markdown or False,
                repro=script or False,
                diagnostic_options=options,
                strategies=strategies,
                _caller=loaded.definition,
                _command_line=ctx.meta["onnxplain.command_line"],
                _on_stage=stages.show,
            ).diagnostics
    except onnxplain.ExportFailed as failure:
        log = failure.log
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except LogNotSaved as error:
        raise click.ClickException(str(error)) from error
    render(log, make_console(), {"log": sarif, **({"report": markdown} if markdown else {})})
    for event in log.events:
        if event.stage in ("repro", "sarif") and event.level >= logging.WARNING:
            click.echo(visible(event.text))
    if not log.succeeded and output.exists():
        click.echo(f"{output} is still that of an earlier export.")
    ctx.exit(log.exit_code)
