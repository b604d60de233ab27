"""`onnxplain export`: exports models and shows the findings."""

from __future__ import annotations

import ast
import itertools
import os
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import click
from click.shell_completion import CompletionItem

from onnxplain.diagnostics import SARIF_PROFILES, Span, visible, visible_lines
from onnxplain.triage import LIBRARIES, names_without_import

from . import inputs, job, origins, rule_ids, settings
from .imports import imports_beside
from .nearest import Choice

_STRATEGIES = ("non-strict", "strict", "draft")
_TARGET = re.compile(rf".+\.py:[\w.]+|({'|'.join(LIBRARIES)}):[\w./]+")


def _file_or_folder(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A file that is no folder, or a folder that ends with a slash."""
    if value is not None and not job.is_folder(value) and pathlib.Path(value).is_dir():
        raise click.BadParameter(f"{value!r} is a folder. For a file in it that is named after the model, write '{value}/'.", ctx, param)
    return value


def _path_or_flag(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str | None:
    """A path; "" for the default path. The environment and files say true and false."""
    return {"true": "", "1": "", "false": None, "0": None}.get(str(value).lower(), value)


def complete_files(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Lets the shell complete a path."""
    return [CompletionItem(incomplete, type="file")]


def complete_targets(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes a path or a library, and after the colon the names in it."""
    # NOTE: for bash, a colon is a word: `net.py:name` arrives as `net.py`, `:` and `name`, and only the last of them is replaced.
    given = ctx.params.get("targets") or ctx.params.get("target") or ()
    before = [given] if isinstance(given, str) else [*given][-2:]
    if incomplete == ":" and before:
        file, name, start = before[-1], "", ""
    elif before[1:] == [":"]:
        file, name, start = before[0], incomplete, ""
    else:
        file, colon, name = incomplete.rpartition(":")
        start = file + colon
    if file in LIBRARIES:
        return [CompletionItem(start + each) for each in names_without_import(file) if each.startswith(name)]
    if not file.endswith(".py"):
        libraries = [f"{library}:" for library in LIBRARIES if library.startswith(incomplete)] if incomplete else []
        return [*map(CompletionItem, libraries), CompletionItem(incomplete, type="file")]
    return [CompletionItem(start + each) for each in _defined(file) if each.startswith(name)]


def _defined(file: str) -> list[str]:
    """The public names at the top of a file, which is not run."""
    try:
        statements = ast.parse(pathlib.Path(file).read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []
    names = []
    for statement in statements:
        match statement:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.append(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.append(name)
    return [name for name in dict.fromkeys(names) if not name.startswith("_")]


@click.command(
    "export",
    epilog="""\b
    Exit codes:
      0    onnxplain exported the model
      1    findings failed the export, or a file could not be written
      2    wrong usage: the target cannot be loaded or is not a model, or an option has a wrong value
      130  interrupted; 143 and 129 after the signals SIGTERM and SIGHUP
    With several targets, the highest code counts.""",
)
@click.argument("targets", metavar="TARGET...", nargs=-1, shell_complete=complete_targets)
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    callback=_file_or_folder,
    shell_complete=complete_files,
    show_default="MODEL.onnx",
    help="The ONNX file, or with a / at its end a folder for model and log.",
)
@click.option(
    "--sarif",
    metavar="PATH",
    callback=_file_or_folder,
    shell_complete=complete_files,
    show_default=".sarif/MODEL.sarif",
    help="The SARIF log, or with a / at its end a folder for it.",
)
@click.option(
    "--sarif-profile",
    type=Choice(SARIF_PROFILES),
    default="full",
    show_default=True,
    help="What the log holds: everything, or what GitHub code scanning accepts.",
)
@click.option(
    "--report",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    callback=_path_or_flag,
    help="Also write a report: a page for browsers if its name ends with .html, else markdown.  [default: OUTPUT with .md]",
)
@click.option(
    "--repro",
    metavar="[PATH]",
    is_flag=False,
    flag_value="",
    callback=_path_or_flag,
    help="If the export fails, write a script that fails in the same way, for an issue.  [default: OUTPUT with .repro.py]",
)
@click.option(
    "--artifacts",
    metavar="DIR",
    help="A folder for what the log attaches: the profile, and with --verbosity debug the graph. DIR/, with a slash, gets a folder named "
    "after MODEL.",
)
@click.option(
    "--name",
    metavar="MODEL",
    show_default="the model's class",
    help="The name of the model in the log; gates tell models apart by it.",
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME=DTYPE[SIZE,...]",
    multiple=True,
    callback=inputs.inputs,
    help="An example input, such as x=f32[batch,3,224,224], in place of those of TARGET. A name makes a dim dynamic; batch=4 also gives "
    "its size in the example. Repeat the option for each input.",
)
@click.option(
    "--dynamic",
    metavar="NAME[,NAME]",
    multiple=True,
    callback=inputs.names,
    help="Of the dims that --input names, keep only these dynamic. 'all' makes every dim dynamic, 'none' makes none.",
)
@click.option("--input-names", metavar="NAME[,NAME]", multiple=True, callback=inputs.names, help="Names for the inputs of the graph.")
@click.option("--output-names", metavar="NAME[,NAME]", multiple=True, callback=inputs.names, help="Names for the outputs of the graph.")
@click.option("--opset", type=int, metavar="N", show_default="20", help="The ONNX opset version.")
@click.option(
    "--strategy",
    "strategies",
    type=Choice(_STRATEGIES),
    default=_STRATEGIES,
    multiple=True,
    help="How to capture the model. Repeat the option to try several; the first that works counts.",
)
@click.option("--optimize/--no-optimize", default=True, show_default=True, help="Optimize the ONNX graph.")
@click.option(
    "--optimize-memory/--no-optimize-memory",
    default=False,
    help="Compute large tensors that a reduction soon collapses in chunks; implies --optimize.",
)
@click.option(
    "--external-data/--no-external-data",
    default=None,
    show_default="over 2 GiB",
    help="Write the weights to a file beside the model.",
)
@click.option("--verify/--no-verify", default=False, help="Compare ONNX Runtime's outputs with PyTorch's.")
@click.option(
    "--verify-sizes",
    metavar="N|NAME=SIZE[,...]",
    multiple=True,
    callback=inputs.verify_sizes,
    default=("2",),
    show_default="2",
    help="With how many sizes of dynamic dims --verify compares beside the example's; or with which ones. Repeat the option for several.",
)
@click.option(
    "--try-fixes/--no-try-fixes",
    default=True,
    show_default=True,
    help="If the export fails, run the model again to explain it and to try fixes. Without, nothing is rewritten.",
)
@click.option(
    "--control-flow",
    type=Choice(("rewrite", "libraries", "report")),
    default="rewrite",
    show_default=True,
    help="Where loops over sizes and branches on data that stop the export are rewritten, in a copy: everywhere, in libraries or nowhere.",
)
@click.option(
    "--functions",
    type=Choice(("none", "modules")),
    default="none",
    show_default=True,
    help="Make each call of a module a call of an ONNX function, which viewers show as a box that opens.",
)
@click.option("--profile/--no-profile", default=False, help="List in the report where the time went; implies --report.")
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
@click.option("--warnings-as-errors/--no-warnings-as-errors", default=False, help="Report warnings as errors; they fail the export.")
@click.option(
    "--verbosity",
    type=Choice(("debug", "info", "warning", "error")),
    default="info",
    show_default=True,
    help="How much to record.",
)
@click.option("--watch", is_flag=True, help="Export again whenever a source that the model uses changes, until Ctrl-C.")
@click.pass_context
def command(ctx: click.Context, /, targets: tuple[str, ...], watch: bool, **given: Any) -> None:
    """Export each TARGET to ONNX and print the findings.

    TARGET is path/to/file.py:NAME, package.module:NAME or a model of an installed library, as for `onnxplain triage`: timm:resnet18,
    torchvision:resnet18, hf:LlamaConfig. NAME is a function without parameters that returns a model or (model, args,
    kwargs, dynamic_shapes), of which only the model is required; or it is a model, or its class. A model whose forward takes arguments
    needs example inputs, from such a function or from --input. With --input, NAME may also be a function of tensors. Files without a given
    name are named after MODEL: the class or function of the model, or the value of --name.

    The section [tool.onnxplain] of pyproject.toml and variables such as ONNXPLAIN_EXPORT_OPSET also set options; see `onnxplain config`.
    """
    targets = (*_taken_as_paths(ctx, targets, given), *targets) or ("",)
    if len(targets) > 1:
        _check_for_several(given)
    if watch:
        from .watch import repeat

        repeat(lambda files: _shown(ctx, targets, files), [_source(target) for target in targets])
    ctx.exit(_export(ctx, targets, set()))


def _export(ctx: click.Context, targets: Sequence[str], files: set[str]) -> int:
    """Exports the targets, and returns the exit code. Adds the files of all modules that they imported to `files`."""
    done = _Run(ctx, several=len(targets) > 1)
    for folder, beside in itertools.groupby(targets, lambda target: _source(target).parent):
        with imports_beside(folder, files):
            for target in beside:
                done.export(target)
    done.show_summary()
    return done.exit_code


def _shown(ctx: click.Context, targets: Sequence[str], files: set[str]) -> int:
    """As `_export`, but an error in the user's files is shown and ends nothing."""
    try:
        return _export(ctx, targets, files)
    except click.UsageError:
        raise
    except click.ClickException as error:
        click.echo(f"Error: {visible_lines(error.format_message())}", err=True)
        return error.exit_code


class _Run:
    """The exports of one command."""

    def __init__(self, ctx: click.Context, *, several: bool) -> None:
        self.exit_code = 0
        self._ctx = ctx
        self._several = several
        self._taken: dict[str, str] = {}
        self._summary: list[list[Span]] = []

    def export(self, target: str) -> None:
        """Exports a target. Of several, one that is no model keeps none of the others from it."""
        if self._several:
            click.echo(visible(f"== {target}"))
        try:
            found = settings.for_export(job.parts(target)[0])
            settled = settings.settled(self._ctx, found)
            options = job.as_options(settled)
            self._ctx.meta["onnxplain.debug"] = options.verbosity == "debug"
            called = job.Called(self._ctx.meta["onnxplain.command_line"], tuple(origins.told(self._ctx, found, settled)))
            done = job.run(target, options, called, self._taken)
        except click.ClickException as error:
            if not self._several:
                raise
            message = visible_lines(error.format_message())
            click.echo(f"Error: {message}" if target in message else f"Error: {visible(target)}: {message}", err=True)
            self.exit_code = max(self.exit_code, error.exit_code)
            self._summary.append([("error     ", "error"), (f"{visible(target)}  {message.splitlines()[0]}", "")])
            return
        self._taken |= {os.path.realpath(path): target for path in done.files.named().values()}
        self.exit_code = max(self.exit_code, done.log.exit_code)
        succeeded = done.log.exit_code == 0
        outcome = ("exported  ", "label") if succeeded else ("failed    ", "error")
        written = done.files.output if succeeded else done.files.sarif
        self._summary.append([outcome, (visible(f"{target}  {written}"), "")])

    def show_summary(self) -> None:
        """Prints a line for each of several targets."""
        from onnxplain.diagnostics import make_console, show_lines

        if self._several:
            show_lines([[], *self._summary], make_console())


def _taken_as_paths(ctx: click.Context, targets: Sequence[str], given: dict[str, Any]) -> Iterator[str]:
    """The targets in `--report TARGET` and `--repro TARGET`: the parser cannot know that the option has no value there."""
    for name in ("report", "repro"):
        if given[name] and (not targets or _TARGET.fullmatch(given[name])):
            yield given[name]
            ctx.params[name] = given[name] = ""
            targets = (*targets, "")


def _check_for_several(given: dict[str, Any]) -> None:
    """Raises `UsageError` if an option is for one target only."""
    for name in ("output", "sarif", "report", "repro", "artifacts"):
        if given[name] and not job.is_folder(given[name]):
            raise click.UsageError(f"--{name}: expected a folder, which ends with /, for several targets, got {given[name]!r}")
    if given["name"] is not None:
        raise click.UsageError("--name: expected one target, since it names one model")


def _source(target: str) -> pathlib.Path:
    """The file of a target, or one of this name in the current folder for a module."""
    source = target.rpartition(":")[0]
    return pathlib.Path(source).absolute() if source.endswith(".py") else pathlib.Path.cwd() / source
