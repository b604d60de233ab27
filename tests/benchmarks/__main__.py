"""The command line: `python -m benchmarks`, from the folder of the tests."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import platform
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import click
from rich.console import Console

import onnxplain

from . import architectures, contenders, functions, graphs, memory, models, sample, show, studies, verdict
from .measure import measure

_PACKAGES = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "transformers", "diffusers", "monai")
_Path = click.Path(path_type=pathlib.Path)


@click.command()
@click.argument("names", metavar="[MODEL]...", nargs=-1, type=click.Choice(list(models.MODELS)))
@click.option("--repeat", default=4, show_default=True, type=click.IntRange(min=1), help="Rounds; the tables show medians.")
@click.option("--threads", default=1, show_default=True, help="Threads of one operator in ONNX Runtime.")
@click.option("--save", is_flag=True, help="Write files, with the weights beside the model.")
@click.option("--no-latency", is_flag=True, help="Do not run the models in ONNX Runtime.")
@click.option("--no-memory", is_flag=True, help="Do not measure peak memory, which needs fresh processes.")
@click.option("--picture", type=_Path, help="Save a picture of the times, or of the memory (PNG).")
@click.option("--json", "json_path", type=_Path, help="Save all measurements.")
@click.option("--profile", type=click.Choice(show.STAGES), help="Only: the functions that take the time of one of our stages.")
@click.option("--scaling", is_flag=True, help="Only: how the time after capture grows with the number of layers.")
@click.option("--functions", "with_functions", is_flag=True, help="Only: nodes and latency with functions, beside the flat model.")
@click.option("--log-cost", is_flag=True, help="Only: the cost of writing the log as SARIF.")
@click.option("--large-log", is_flag=True, help="Only: the cost of a log of 10,000 findings.")
@click.option("--sample", "sampled", is_flag=True, help="Only: first and later exports of a sample of architectures, over bare capture.")
@click.option("--family", "families", multiple=True, type=click.Choice(list(architectures.FAMILIES)), help="The part of the sample.")
@click.option("--graphs", "compared", is_flag=True, help="Only: nodes, latency and memory over the sample, beside theirs.")
@click.option("--cold", is_flag=True, help="Only: the time from the start of a process to a saved small model.")
@click.option("--fake", is_flag=True, help="Only: the cost of exporting a Llama with 70 B parameters in fake mode.")
@click.option(
    "--highresnet", is_flag=True, help="Only: memory over time in the example of PyTorch's documentation; takes minutes and 4 GB."
)
def main(
    names: tuple[str, ...],
    repeat: int,
    threads: int,
    save: bool,
    no_latency: bool,
    no_memory: bool,
    picture: pathlib.Path | None,
    json_path: pathlib.Path | None,
    profile: str | None,
    scaling: bool,
    with_functions: bool,
    log_cost: bool,
    large_log: bool,
    sampled: bool,
    families: tuple[str, ...],
    compared: bool,
    cold: bool,
    fake: bool,
    highresnet: bool,
) -> None:
    """Measures exports of MODELs, or of all, beside bare capture and torch.onnx.export."""
    contenders.hush()
    chosen = names or tuple(models.MODELS)
    console = Console(width=None if Console().is_terminal else 220)
    if profile:
        studies.profile(chosen, profile)
    if scaling:
        studies.scaling(console, repeat)
    if with_functions:
        functions.compare(console)
    if log_cost:
        studies.log_cost(console, chosen, repeat)
    if large_log:
        studies.large_log(console, repeat)
    if compared:
        graphs.compare(console, families or tuple(architectures.FAMILIES))
    elif sampled or families:
        sample.compare(console, families or tuple(architectures.FAMILIES), repeat)
    if cold:
        studies.cold(console, repeat)
    if fake:
        studies.fake(console)
    if highresnet:
        _highresnet(console, picture, json_path)
    if profile or scaling or with_functions or log_cost or large_log or sampled or families or compared or cold or fake or highresnet:
        return
    settings = {"repeat": repeat, "save": save, "latency": not no_latency, "memory": not no_memory, "threads": threads}
    _compare(console, chosen, settings, picture, json_path)


def _compare(
    console: Console,
    chosen: Sequence[str],
    settings: Mapping[str, Any],
    picture: pathlib.Path | None,
    json_path: pathlib.Path | None,
) -> None:
    console.print(f"{_machine()}; load {os.getloadavg()[0]:.1f} before")
    results = []
    failures = {}
    for name in chosen:
        console.print(f"{name} ...", style="dim")
        try:
            results.append(measure(name, **settings))
        except onnxplain.ExportFailed as failed:
            failures[name] = str(failed)
    console.print(f"load {os.getloadavg()[0]:.1f} after")
    verdicts = verdict.verdicts(results, failures)
    show.everything(console, results, failures, verdicts)
    if picture and results:
        show.picture(results, picture)
    if json_path:
        document = {
            "machine": _machine(),
            "results": [dataclasses.asdict(result) for result in results],
            "failures": failures,
            "verdicts": [dataclasses.asdict(each) for each in verdicts],
        }
        json_path.write_text(json.dumps(document, indent=1), encoding="utf-8")


def _highresnet(console: Console, picture: pathlib.Path | None, json_path: pathlib.Path | None) -> None:
    console.print(f"{_machine()}; load {os.getloadavg()[0]:.1f} before")
    usages = []
    for contender in memory.CONTENDERS:
        console.print(f"{contender} ...", style="dim")
        usages.append(memory.measure(contender))
    memory.show(console, usages)
    reached = memory.verdicts(usages)
    for each in reached:
        show.verdict(console, each)
    if picture:
        memory.picture(usages, picture)
    if json_path:
        document = {
            "machine": _machine(),
            "usages": [dataclasses.asdict(usage) for usage in usages],
            "verdicts": [dataclasses.asdict(each) for each in reached],
        }
        json_path.write_text(json.dumps(document), encoding="utf-8")


def _machine() -> str:
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in _PACKAGES)
    return f"{os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, {versions}"


if __name__ == "__main__":
    main()
