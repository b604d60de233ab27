"""The command line: `python -m benchmarks.coverage.architectures`, from the folder of the tests."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import logging
import pathlib
import warnings
from collections.abc import Iterator, Sequence

import click
import torch
from rich.console import Console

import onnxplain
from benchmarks.architectures import COVERAGE
from benchmarks.architectures.torchvision_operators import import_torchvision
from benchmarks.coverage.comparison import Outcome

from . import tables
from .processes import results
from .trials import Result, Trial, trials

_Path = click.Path(path_type=pathlib.Path)
_PRELOADED = {
    "transformers": ("BertModel", "LlamaForCausalLM", "MixtralForCausalLM", "T5Model", "ViTModel", "CLIPModel", "Wav2Vec2Model"),
    "diffusers": ("UNet2DConditionModel", "AutoencoderKL", "FluxTransformer2DModel"),
    "monai.networks.nets": ("UNet",),
    "timm": ("create_model",),
}


@click.command()
@click.argument("names", nargs=-1)
@click.option("--family", "families", multiple=True, type=click.Choice(list(COVERAGE)), help="Take this family only.")
@click.option("--mode", type=click.Choice(["static", "dynamic"]), help="Take this mode only.")
@click.option("--every", default=1, show_default=True, help="Take every n-th architecture only.")
@click.option("--results", "file", type=_Path, help="JSON lines. Architectures that the file has are not run again.")
@click.option("--again", is_flag=True, help="Run those of the file again that are not equal.")
@click.option("--theirs", is_flag=True, help="Compare with torch.onnx.export, which runs as well.")
@click.option("--workers", default=1, show_default=True)
@click.option("--seconds", default=120, show_default=True, help="The limit of processor time of an architecture in one mode.")
@click.option("--verbose", is_flag=True, help="Print every architecture that is not equal.")
def main(
    names: Sequence[str],
    families: Sequence[str],
    mode: str | None,
    every: int,
    file: pathlib.Path | None,
    again: bool,
    theirs: bool,
    workers: int,
    seconds: int,
    verbose: bool,
) -> None:
    """Exports the architectures of NAMES, by default all of them, and prints what became of them and why."""
    console = Console(highlight=False, soft_wrap=True)
    wanted = [each for each in trials(families, names)[::every] if mode is None or each.dynamic is (mode == "dynamic")]
    if theirs:
        wanted += [dataclasses.replace(each, theirs=True) for each in wanted]
    known = dict(_read(file)) if file else {}
    if again:
        known = {trial: result for trial, result in known.items() if trial not in wanted or result.outcome == Outcome.OK.value}
    missing = [each for each in wanted if each not in known]
    _prepare()
    for trial, result in results(missing, workers, seconds):
        known[trial] = result
        if file:
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps({**dataclasses.asdict(trial), "result": dataclasses.asdict(result)}) + "\n")
    found = {each: known[each] for each in wanted}
    ours = {trial: result for trial, result in found.items() if not trial.theirs}
    console.print(tables.summary(ours), markup=False)
    if verbose:
        console.print(tables.failures(ours), markup=False)
    if theirs:
        console.print(tables.comparison(ours, {trial: result for trial, result in found.items() if trial.theirs}), markup=False)


def _read(file: pathlib.Path) -> Iterator[tuple[Trial, Result]]:
    """The results of the file. Of several of one trial, the last one counts."""
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        line = json.loads(text)
        result = Result(**line.pop("result"))
        yield Trial(**line), result


def _prepare() -> None:
    """Loads what most architectures need, once: each of them runs in a fork of this process."""
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    import_torchvision()
    for package, names in _PRELOADED.items():
        if importlib.util.find_spec(package.split(".")[0]):
            module = importlib.import_module(package)
            for name in names:
                getattr(module, name)
    onnxplain.export(torch.nn.LSTM(4, 4), (torch.randn(2, 3, 4),))


if __name__ == "__main__":
    main()
