"""What `onnxplain triage` costs beyond the exports: its processor time beside that of the same exports one after the other in one process.

`cd tests && python -m benchmarks.fleet [--models N] [--jobs N] [--repeat N]` prints the rounds and the least of each. Linux and macOS only.

Both sides are whole processes, with their imports, and write the log of each model. The exports of the one process are warm: it has
exported a model of each kind before, as the host of a triage has.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import resource
import subprocess
import sys
import tempfile

import click

CONFIGS = (
    *("AlbertConfig", "ASTConfig", "BartConfig", "BeitConfig", "BertConfig", "BigBirdConfig", "BloomConfig", "CamembertConfig"),
    *("ConvNextConfig", "CTRLConfig", "Data2VecTextConfig", "DeiTConfig", "Dinov2Config", "DistilBertConfig", "ElectraConfig"),
    *("ErnieConfig", "FalconConfig", "Gemma2Config", "GPT2Config", "GPTNeoConfig", "GPTNeoXConfig", "GPTJConfig", "HubertConfig"),
    *("IJepaConfig", "LlamaConfig", "MarianConfig", "MistralConfig", "MobileBertConfig", "MobileNetV2Config", "MPNetConfig"),
    *("OPTConfig", "PegasusConfig", "PhiConfig", "Qwen2Config", "Qwen3Config", "RegNetConfig", "ResNetConfig", "RobertaConfig"),
    *("SegformerConfig", "SqueezeBertConfig", "StableLmConfig", "T5Config", "ViTConfig", "WhisperConfig", "XLMRobertaConfig"),
)
"""Real architectures of many kinds, in small sizes."""

_ONE_PROCESS = """
import pathlib, sys, torch, onnxplain
from onnxplain.triage import libraries, local

torch.set_num_threads(1)
local.prepare({"hf"}, warm=True)
for name in sys.argv[2:]:
    try:
        built = libraries.build("hf", name, {})
        onnxplain.export(built.model, built.args, kwargs=built.kwargs, sarif=pathlib.Path(sys.argv[1], f"{name}.sarif"), name=name)
    except Exception as error:
        print(name, type(error).__name__)
"""


@dataclasses.dataclass(frozen=True)
class Cost:
    """The processor seconds of a command with all processes that it began, as the program and as the system."""

    user: float
    system: float

    @property
    def total(self) -> float:
        """Both."""
        return self.user + self.system


def cost(*command: str) -> Cost:
    """What a command of Python costs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=False, stdout=subprocess.DEVNULL, env={**os.environ, "OMP_NUM_THREADS": "1"})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Cost(after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime)


@click.command()
@click.option("--models", default=len(CONFIGS), show_default=True, type=click.IntRange(1, len(CONFIGS)), help="How many models.")
@click.option("--jobs", default=1, show_default=True, help="The workers of the triage.")
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(min=1), help="Rounds, in which both take turns.")
def main(models: int, jobs: int, repeat: int) -> None:
    """Prints what a triage costs beside its exports alone."""
    chosen, rounds = CONFIGS[:models], []
    for _ in range(repeat):
        with tempfile.TemporaryDirectory() as folder:
            alone = cost("-c", _ONE_PROCESS, folder, *chosen)
            targets = [f"hf:{name}" for name in chosen]
            triage = cost("-m", "onnxplain", "triage", *targets, "--jobs", str(jobs), "-o", str(pathlib.Path(folder, "triage")))
        rounds.append((alone, triage))
        click.echo(f"one process {_told(alone)}; triage {_told(triage)}; {triage.total / alone.total - 1:+.1%}")
    least = [min(side, key=lambda each: each.total) for side in zip(*rounds, strict=True)]
    click.echo(f"{models} models, the least: {_told(least[0])}; {_told(least[1])}; {least[1].total / least[0].total - 1:+.1%}")


def _told(each: Cost) -> str:
    return f"{each.total:.1f} s ({each.system:.1f} s in the system)"


if __name__ == "__main__":
    main()
