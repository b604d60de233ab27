"""`onnxplain export`: exports a model and shows the findings."""

from __future__ import annotations

import dataclasses
import logging
import os
import pathlib
from typing import TYPE_CHECKING, Literal

import click

import onnxplain
from onnxplain.diagnostics import SARIF_PROFILES, DiagnosticOptions, InvalidArgument, Level, Log, OnnxExporterError, SarifProfile, visible
from onnxplain.signals import Terminated

from . import rule_ids
from .nearest import Choice

if TYPE_CHECKING:
    from onnxplain.program import ONNXProgram

_STRATEGIES = ("non-strict", "strict", "draft")


@click.command(
    "export",
    epilog="""\b
    Exit codes:
      0    onnxplain exported the model
      1    findings failed the export, or a file could not be written
      2    wrong usage: the target cannot be loaded or is not a model, or an option has a wrong value
      130  interrupted; 143 and 129 after the signals SIGTERM and SIGHUP""",
)
@click.argument("target", required=False)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The ONNX file.  [default: MODEL.onnx]")
@click.option("--sarif", type=click.Path(dir_okay=False, path_type=pathlib.Path), help="The SARIF log.  [default: .sarif/MODEL.sarif]")
@click.option(
    "--sarif-profile",
    type=Choice(SARIF_PROFILES),
    default="full",
    show_default=True,
    help="What the log holds: everything, or what GitHub code scanning accepts.",
)
@click.option("--report", metavar="[PATH]", is_flag=False, flag_value="", help="Also write a markdown report.  [default: OUTPUT with .md]")
@click.option(
    "--repro",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    help="If the export fails, write a script that fails in the same way, for an issue.  [default: OUTPUT with .repro.py]",
)
@click.option("--name", metavar="MODEL", help="The name of the model in the log; gates tell models apart by it.  [default: its class]")
@click.option("--opset", type=int, metavar="N", help="The ONNX opset version.  [default: 20]")
@click.option(
    "--strategy",
    "strategies",
    type=Choice(_STRATEGIES),
    default=_STRATEGIES,
    multiple=True,
    help="How to capture the model. Repeat the option to try several; the first that works counts.",
)
@click.option("--no-optimize", is_flag=True, help="Do not optimize the ONNX graph.")
@click.option(
    "--external-data/--no-external-data",
    default=None,
    help="Write the weights to a file beside the model.  [default: over 2 GiB]",
)
@click.option("--verify", is_flag=True, help="Compare ONNX Runtime's outputs with PyTorch's.")
@click.option(
    "--no-try-fixes",
    is_flag=True,
    help="If the export fails, do not run the model again to explain it and to try fixes; rewrite nothing.",
)
@click.option(
    "--control-flow",
    type=Choice(("rewrite", "libraries", "report")),
    default="rewrite",
    show_default=True,
    help="Where loops over sizes and branches on data that stop the export are rewritten, in a copy: everywhere, in libraries or nowhere.",
)
@click.option("--profile", is_flag=True, help="List in the report where the time went; implies --report.")
@click.option(
    "--select",
    metavar="RULE[,RULE]",
    callback=rule_ids.prefixes,
    shell_complete=rule_ids.complete_prefixes,
    multiple=True,
    help="Report only these rules; OXP1 is a whole chapter.",
)
@click.option(
    "--ignore",
    metavar="RULE[,RULE]",
    callback=rule_ids.prefixes,
    shell_complete=rule_ids.complete_prefixes,
    multiple=True,
    help="Do not report these rules.",
)
@click.option(
    "--level",
    "levels",
    metavar="RULE=LEVEL",
    callback=rule_ids.levels,
    shell_complete=rule_ids.complete_levels,
    multiple=True,
    help="Report RULE as error, warning or note.",
)
@click.option("--warnings-as-errors", is_flag=True, help="Report warnings as errors; they fail the export.")
@click.option(
    "--verbosity",
    type=Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="How much to record.",
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
    control_flow: Literal["rewrite", "libraries", "report"],
    profile: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    levels: dict[str, Level],
    warnings_as_errors: bool,
    verbosity: str,
) -> None:
    """Export TARGET to ONNX and print the findings.

    TARGET is path/to/file.py:NAME or package.module:NAME. NAME is a function without parameters that returns a model or (model, args,
    kwargs, dynamic_shapes), of which only the model is required; or it is a model whose forward takes no arguments. Files without a given
    name are named after MODEL: the class or function of the model, or the value of --name.
    """
    ctx.meta["onnxplain.debug"] = verbosity == "debug"
    if target is None and report:
        # `--report TARGET`: the parser cannot know that --report has no value here.
        target, report = report, ""
    if target is None and repro:
        target, repro = repro, ""
    source, attribute = _parts(target or "")
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

    from .progress import StageLine
    from .target import load

    stages = StageLine()
    loaded = load(source, attribute)
    from onnxplain.api import subject_of

    model = subject_of(loaded.model) if name is None else name
    files = _Files.of(model, output, sarif, "" if profile and report is None else report, repro)
    files.check_other_than(source)
    program = None
    try:
        with stages.active():
            program = onnxplain.export(
                loaded.model,
                loaded.args,
                f=files.output,
                kwargs=loaded.kwargs,
                dynamic_shapes=loaded.dynamic_shapes,
                opset_version=opset,
                external_data=external_data,
                optimize=not no_optimize,
                verify=verify,
                try_fixes=not no_try_fixes,
                control_flow=control_flow,
                profile=profile,
                sarif=files.sarif,
                sarif_profile=sarif_profile,
                name=name,
                report=files.report or False,
                repro=files.repro or False,
                diagnostic_options=options,
                strategies=strategies,
                _caller=loaded.definition,
                _command_line=ctx.meta["onnxplain.command_line"],
                _on_stage=stages.show,
            )
        log = program.diagnostics
    except onnxplain.ExportFailed as failure:
        log = failure.log
    except (KeyboardInterrupt, Terminated):
        click.echo(visible(f"The log {files.sarif} names the line that was running."), err=True)
        raise
    except InvalidArgument as error:
        raise click.UsageError(str(error)) from error
    except OnnxExporterError as error:
        raise click.ClickException(str(error)) from error
    _show(log, files, program)
    ctx.exit(log.exit_code)


@dataclasses.dataclass(frozen=True)
class _Files:
    """The files that the command writes; None for those that it does not."""

    output: pathlib.Path
    sarif: pathlib.Path
    report: pathlib.Path | None
    repro: pathlib.Path | None

    @classmethod
    def of(cls, model: str, output: pathlib.Path | None, sarif: pathlib.Path | None, report: str | None, repro: str | None) -> _Files:
        """Names the files that have no name yet after `model`. An empty `report` or `repro` is one without a name."""
        output = output or pathlib.Path(f"{model}.onnx")
        return cls(
            output,
            sarif or pathlib.Path(".sarif", f"{model}.sarif"),
            None if report is None else pathlib.Path(report or output.with_suffix(".md")),
            None if repro is None else pathlib.Path(repro or output.with_suffix(".repro.py")),
        )

    def check_other_than(self, source: str) -> None:
        """Raises `UsageError` if a file is that of the target."""
        for field in dataclasses.fields(self):
            path = getattr(self, field.name)
            if path is not None and os.path.realpath(path) == os.path.realpath(source):
                raise click.UsageError(f"--{field.name}: expected a file other than the target's, got {str(path)!r}")


def _parts(target: str) -> tuple[str, str]:
    """The two parts of TARGET."""
    source, _, attribute = target.rpartition(":")
    if not source or not attribute:
        raise click.UsageError("Expected a TARGET such as path/to/file.py:NAME or package.module:NAME.")
    return source, attribute


def _show(log: Log, files: _Files, program: ONNXProgram | None) -> None:
    """Prints the findings, what was exported, and the files."""
    from onnxplain.diagnostics.console import make_console, render

    from .exported import details

    written = {"log": files.sarif, **({"report": files.report} if files.report else {})}
    render(log, make_console(), written, () if program is None else details(program))
    for event in log.events:
        if event.stage in ("repro", "sarif") and event.level >= logging.WARNING:
            click.echo(visible(event.text))
    if not log.succeeded and files.output.exists():
        click.echo(f"{visible(str(files.output))} is still the model of an earlier export.")
