"""What it costs to find a wrong operator in a large model: `python -m benchmarks.differences`, from the folder of the tests.

A Llama with about 1,000 ONNX nodes exports with verification, once with right translations, and once with one that is wrong at its last
call. Each export has a process of its own.
"""

from __future__ import annotations

import json
import subprocess
import sys

import click

_PROGRAM = """
import json, pathlib, re, sys, time
import torch
from onnxscript import opset20 as op
import onnxplain
from benchmarks import models

def resident(name):
    return int(re.search(f"{name}:\\\\s+(\\\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1000

layers, is_wrong = int(sys.argv[1]), sys.argv[2] == "wrong"
calls = []

def silu(x):
    calls.append(x)
    result = op.Mul(x, op.Sigmoid(x))
    return op.Mul(result, op.Constant(value_float=1.05)) if is_wrong and len(calls) == layers else result

subject = models.llama_of(layers)
small = torch.nn.LSTM(4, 4)
onnxplain.export(small, (torch.ones(2, 1, 4),), verify=True)
import onnx.reference
model = sum(each.nbytes for each in subject.model.parameters()) / 1e6
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = resident("VmRSS")
table = {torch.ops.aten.silu.default: silu}
try:
    program = onnxplain.export(
        subject.model, subject.inputs.args, kwargs=dict(subject.inputs.kwargs), custom_translation_table=table, verify=True
    )
    log, nodes = program.diagnostics, sum(1 for _ in program.model.graph.all_nodes())
except onnxplain.ExportFailed as failed:
    log, nodes = failed.log, 0
(seconds,) = (each.seconds for each in log.stages if each.name == "verify")
print(json.dumps({
    "nodes": nodes, "seconds": seconds, "peak": resident("VmHWM") - before, "model": model,
    "found": [(each.rule.id, each.location.module) for each in log.findings if each.fails],
}))
"""


def measure(layers: int, kind: str) -> dict[str, object]:
    """One export: ONNX nodes, seconds of the verification, peak in MB above the process with the model, the model in MB, what was found."""
    shown = subprocess.run([sys.executable, "-c", _PROGRAM, str(layers), kind], stdout=subprocess.PIPE, check=True, text=True).stdout
    return dict(json.loads(shown.splitlines()[-1]))


def main(layers: int) -> None:
    """Prints the cost of both exports, and their ratio."""
    right, wrong = (measure(layers, kind) for kind in ("right", "wrong"))
    for name, each in (("right", right), ("wrong", wrong)):
        click.echo(f"{name}: verification {each['seconds']:.2f} s, peak {each['peak']:.0f} MB above the model of {each['model']:.0f} MB")
    click.echo(f"{right['nodes']} ONNX nodes; found: {wrong['found']}")
    once, twice = float(str(right["seconds"])), float(str(wrong["seconds"]))
    click.echo(f"the search takes {(twice - once) / once:.1f} verifications (target: less than 10)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 19)
