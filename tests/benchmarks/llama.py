"""Exports a Llama with 70 B parameters in a fresh process that never has its weights."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

_PROGRAM = """
import json, pathlib, re, sys, time
import torch
import onnxplain
from transformers import AutoModelForCausalLM, LlamaConfig

def row(what, started):
    # NOTE: the peak of `getrusage` begins with that of the parent process.
    peak = int(re.search("VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) / 1024
    print(what, time.perf_counter() - started[0], time.process_time() - started[1], peak, sep=",", flush=True)

def now():
    return time.perf_counter(), time.process_time()

onnxplain.export
row("imports", (time.perf_counter() - time.process_time(), 0))
config = LlamaConfig(
    vocab_size=128256, hidden_size=8192, intermediate_size=28672, num_hidden_layers=int(sys.argv[1]), num_attention_heads=64,
    num_key_value_heads=8, max_position_embeddings=8192, rope_parameters={"rope_type": "default", "rope_theta": 500000.0},
)
started = now()
with onnxplain.enable_fake_mode():
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
row(f"{sum(each.numel() for each in model.parameters()) / 1e9:.1f} B parameters", started)
started = now()
example = {"input_ids": torch.ones(2, 16, dtype=torch.int64), "use_cache": False}
shapes = {"input_ids": {0: "batch", 1: "length"}, "use_cache": None}
program = onnxplain.export(model, kwargs=example, dynamic_shapes=shapes)
row(f"{sum(1 for _ in program.model.graph.all_nodes())} ONNX nodes", started)
started = now()
program.save("llama.onnx", include_initializers=False, keep_initializers_as_inputs=True)
row(f"{pathlib.Path('llama.onnx').stat().st_size / 2**20:.1f} MiB saved, weights as inputs", started)
# A checkpoint of the real size, which takes no space: its zeros are a hole in the file.
header, end = {}, 0
for name, tensor in model.state_dict().items():
    header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [end, end + tensor.nbytes]}
    end += tensor.nbytes
text = json.dumps(header).encode()
with open("llama.safetensors", "wb") as file:
    file.write(len(text).to_bytes(8, "little") + text)
    file.truncate(8 + len(text) + end)
started = now()
program.apply_weights("llama.safetensors")
program.save("referring.onnx", weights="reference")
row(f"{end / 1e9:.1f} GB of weights referred to", started)
"""


def export(folder: pathlib.Path, layers: int = 80) -> dict[str, tuple[float, float, float]]:
    """Exports a Llama with 70 B parameters to `folder`. For each step: seconds, processor seconds, and the peak memory so far in MiB."""
    command = [sys.executable, "-c", _PROGRAM, str(layers)]
    shown = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=True, text=True).stdout
    rows = [line.rsplit(",", 3) for line in shown.splitlines()]
    return {step: (float(seconds), float(processor), float(peak)) for step, seconds, processor, peak in rows}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        for name, (elapsed, processor, peak) in export(pathlib.Path(made)).items():
            print(f"{name}: {elapsed:.1f} s, {processor:.1f} s of the processor, {peak:.0f} MiB at most so far")  # noqa: T201  the result
