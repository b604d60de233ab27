"""`onnxplain triage`: exports many models, and tells which fixes unblock the most of them."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import click

from onnxplain.diagnostics import (
    REPRO,
    SARIF_PROFILES,
    Attachment,
    DiagnosticOptions,
    Log,
    Span,
    shown_path,
    visible,
    visible_lines,
    write_file,
)
from onnxplain.triage import (
    Cluster,
    Engine,
    Limits,
    Loaded,
    Options,
    Target,
    Triage,
    Triaged,
    TriageError,
    Verdict,
    Workers,
    cores,
    memory,
    models,
    names_in,
    run_here,
    run_on_ray,
    size,
    to_lines,
    to_markdown,
)
from onnxplain.triage import targets as found_targets

from . import origins, rule_ids, settings
from .export import complete_files, complete_targets
from .nearest import Choice

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[KMGT]?)i?B?", re.IGNORECASE)
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def _size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """Bytes."""
    if value is None:
        return None
    found = _SIZE.fullmatch(value.strip())
    if found is None:
        raise click.BadParameter(f"expected a size such as 4GB or 500MB, got {value!r}.", ctx, param)
    if memory() is None:
        raise click.BadParameter("this system does not tell how much memory a process uses.", ctx, param)
    return int(float(found["number"]) * _UNITS[found["unit"].upper()])


@click.command(
    "triage",
    short_help="Export many models, and rank what blocks them.",
    epilog="""\b
    Exit codes:
      0    every model was exported
      1    some models were not exported, or a file could not be written
      2    wrong usage: a target stands for no model, or the folder cannot be used
      130  interrupted; 143 and 129 after the signals SIGTERM and SIGHUP. The same command goes on where this one ended.""",
)
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True, shell_complete=complete_targets)
@click.option(
    "-o",
    "--output",
    "folder",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=pathlib.Path),
    default="triage",
    show_default=True,
    shell_complete=complete_files,
    help="The folder for logs, summary and database.",
)
@click.option("--jobs", type=click.IntRange(min=1), show_default="the number of cores", help="Export so many models at a time.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=300, show_default=True, help="Seconds for each model.")
@click.option(
    "--memory-limit",
    metavar="SIZE",
    callback=_size,
    show_default="that of the machine, divided by --jobs",
    help="Memory for each model, such as 4GB.",
)
@click.option("--dynamic", "with_dynamic", is_flag=True, help="Export each model a second time, with every dim dynamic.")
@click.option("--one-per-family", is_flag=True, help="Of patterns of libraries, export one small model of each family of architectures.")
@click.option("--again", is_flag=True, help="Also export models that have not changed. Findings that differ then are flaky.")
@click.option(
    "--repro/--no-repro",
    # NOTE: the setting `repro` in files is that of `onnxplain export`.
    "scripts",
    default=False,
    help="For each of the first ten causes, also write a script that fails in the same way, as short as possible.",
)
@click.option(
    "--engine", type=Choice(("local", "ray")), default="local", show_default=True, help="Where to export: on this machine, or on Ray."
)
@click.option("--address", show_default="RAY_ADDRESS, or a new cluster on this machine", help="With ray: the address of the cluster.")
@click.option("--cpus", type=click.FloatRange(min=0, min_open=True), default=1, show_default=True, help="With ray: cores for each model.")
@click.option("--memory", metavar="SIZE", callback=_size, show_default="not reserved", help="With ray: memory for each model, such as 4GB.")
@click.option("--gpus", type=click.FloatRange(min=0), default=0, show_default=True, help="With ray: GPUs for each model.")
@click.option("--retries", type=click.IntRange(min=0), default=3, show_default=True, help="With ray: how often to retry on lost nodes.")
@click.option("--opset", type=int, metavar="N", show_default="20", help="The ONNX opset version.")
@click.option(
    "--strategy",
    "strategies",
    type=Choice(Options.strategies),
    default=Options.strategies,
    multiple=True,
    help="How to capture the models, as in `onnxplain export`.",
)
@click.option("--verify/--no-verify", default=False, help="Compare ONNX Runtime's outputs with PyTorch's.")
@click.option("--optimize/--no-optimize", default=True, show_default=True, help="Optimize the ONNX graph.")
@click.option("--try-fixes/--no-try-fixes", default=True, show_default=True, help="Run failing models again to try fixes.")
@click.option(
    "--control-flow",
    type=Choice(("rewrite", "libraries", "report")),
    default="rewrite",
    show_default=True,
    help="Where loops and branches that stop the export are rewritten, as in `onnxplain export`.",
)
@click.option(
    "--sarif-profile", type=Choice(SARIF_PROFILES), default="full", show_default=True, help="What the logs hold, as in `onnxplain export`."
)
@click.option("--select", metavar="RULE[,RULE]", callback=rule_ids.prefixes, multiple=True, help="Report only these rules.")
@click.option("--ignore", metavar="RULE[,RULE]", callback=rule_ids.prefixes, multiple=True, help="Do not report these rules.")
@click.option("--level", "levels", metavar="RULE=LEVEL", callback=rule_ids.levels, multiple=True, help="Report RULE at this level.")
@click.option("--warnings-as-errors/--no-warnings-as-errors", default=False, help="Report warnings as errors; they fail the export.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    targets: tuple[str, ...],
    folder: pathlib.Path,
    jobs: int | None,
    time_limit: float,
    memory_limit: int | None,
    with_dynamic: bool,
    one_per_family: bool,
    again: bool,
    scripts: bool,
    **_: Any,
) -> None:
    """Export every model of each TARGET, and tell which fixes unblock the most of them.

    TARGET is a file, a folder or a glob (its functions build*, or those that :NAME names, with * as well), package.module:NAME, a list of
    models (.toml or .yaml), or a pattern of a library: timm:resnet*, torchvision:resnet18, hf:LlamaConfig. Models of libraries get random
    weights, those of hf small sizes.

    Each model has its own process: whatever it does, the others go on. A model that has not changed since an earlier run is not exported
    again. FOLDER holds a log and the output of each model (logs/), all logs together (triage-1.sarif, ...), and summary.md, the summary
    for a job. `onnxplain gate FOLDER` and `onnxplain baseline accept FOLDER` take it as their LOG.
    """
    workers = cores() if jobs is None else jobs
    limits = Limits(time_limit, memory_limit or _share(ctx.params, workers))
    command_line = ctx.meta["onnxplain.command_line"]
    try:
        names = functools.partial(names_in, one_per_family=one_per_family)
        chosen = models(found_targets(targets, names), functools.partial(_options, ctx), dynamic=with_dynamic)
        engine = _engine(ctx.params, Workers(workers, _load, command_line), folder)
        show = _Progress(len(chosen)).show
        triaged = Triage(chosen, folder, limits, engine, command_line, again, scripts).run(show)
        _finish(triaged, folder)
    except TriageError as error:
        raise click.UsageError(str(error)) from error
    except OSError as error:
        raise click.ClickException(f"{visible(str(error.filename))} cannot be written: {error.strerror}") from error
    ctx.exit(0 if triaged.succeeded else 1)


def _share(params: Mapping[str, Any], workers: int) -> int | None:
    """Bytes of memory for each model, unless --memory-limit says it."""
    if params["engine"] == "ray":
        reserved: int | None = params["memory"]
        return reserved
    whole = memory()
    return None if whole is None else whole // workers


def _engine(params: Mapping[str, Any], workers: Workers, folder: pathlib.Path) -> Engine:
    """What runs the exports. Raises `UsageError` for options of the other engine."""
    if params["engine"] == "ray":
        cluster = Cluster(params["address"], params["cpus"], params["memory"], params["gpus"], params["retries"])
        threads = dataclasses.replace(workers, threads=max(1, int(cluster.cpus)), start="spawn")
        return functools.partial(run_on_ray, workers=threads, cluster=cluster, left_out=[str(folder)])
    if params["address"] is not None:
        raise click.UsageError(f"--address: expected --engine ray with it, got {params['address']!r} without.")
    return functools.partial(run_here, workers=workers)


def _options(ctx: click.Context, target: Target) -> Options:
    """The options for a target: those of the command, and those of the settings around its file, or around the current folder."""
    of_file = settings.for_export(target.source)
    found = settings.settled(ctx, of_file)
    try:
        diagnostics = DiagnosticOptions(
            warnings_as_errors=found["warnings_as_errors"], levels=found["levels"], select=found["select"], ignore=found["ignore"]
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    names = ("opset", "strategies", "optimize", "verify", "try_fixes", "control_flow", "sarif_profile")
    told = tuple(origins.told(ctx, of_file, found))
    return Options(**{name: found[name] for name in names}, diagnostics=diagnostics, settings=told)


def _load(source: str, attribute: str, arguments: Mapping[str, Any]) -> Loaded:
    """Loads a model, in the process that exports it."""
    from .target import load

    return load(source, attribute, arguments=arguments)


class _Progress:
    """A line for each model that comes to its end. Models that have not changed have none, and count in the last line."""

    def __init__(self, models: int) -> None:
        from onnxplain.diagnostics import make_console

        self._console = make_console()
        self._numbers = itertools.count(1)
        self._models = models

    def show(self, verdict: Verdict) -> None:
        """Prints the verdict on a model."""
        from onnxplain.diagnostics import show_lines

        show_lines([[*self._spans(verdict)]], self._console)

    def _spans(self, verdict: Verdict) -> Iterator[Span]:
        yield f"{next(self._numbers):>{len(str(self._models))}}/{self._models}  ", "faint"
        yield f"{verdict.outcome:<14}", "label" if verdict.outcome == "exported" else "error"
        yield visible(f"{verdict.name}  {verdict.seconds:.1f} s"), ""
        failing = [finding for finding in verdict.findings if finding.fails]
        if failing:
            more = f" and {len(failing) - 1} more" if len(failing) > 1 else ""
            yield visible(f"  {failing[0].rule}: {failing[0].message}{more}"), "faint"


def _with_script(scripts: Mapping[str, pathlib.Path], log: Log) -> Log:
    """A log with the script that fails alike, if its model has one."""
    if log.subject not in scripts:
        return log
    text = scripts[log.subject].read_text(encoding="utf-8", errors="replace")
    return dataclasses.replace(log, attachments=(*log.attachments, Attachment(REPRO, text)))


def _finish(triaged: Triaged, folder: pathlib.Path) -> None:
    """Writes the summary and the page on all models, and prints the summary with the files."""
    from onnxplain.diagnostics import make_console, read_logs, show_lines, to_html

    write_file(folder / "summary.md", to_markdown(triaged))
    logs = map(functools.partial(_with_script, triaged.scripts), read_logs([verdict.log for verdict in triaged.verdicts]))
    sizes = {verdict.name: place for place, verdict in enumerate(sorted(triaged.verdicts, key=size))}
    write_file(folder / "report.html", to_html(logs, sizes=sizes))
    console = make_console()
    show_lines([[], *to_lines(triaged)], console)
    files = [("report", folder / "report.html"), ("summary", folder / "summary.md"), ("logs", folder / "logs")]
    show_lines(([(f"  {what:<8}", "label"), (visible(shown_path(str(path))), "place")] for what, path in files), console)
    several = "" if len(triaged.merged) < 2 else f" to {triaged.merged[-1].name}: GitHub takes 20 runs and 25,000 results in a file"
    for path in triaged.merged[:1]:
        show_lines([[("  sarif   ", "label"), (visible_lines(shown_path(str(path)) + several), "place")]], console)
