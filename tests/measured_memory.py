"""The peak of ONNX Runtime's memory for activations, measured in a separate process.

`python measured.py model.onnx inputs.npz` prints the bytes. ONNX Runtime gets its memory from the system and returns it at once (no arena,
and glibc maps each tensor), so the resident set is what is allocated. A run with small inputs comes first, which loads code and weights.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Mapping

import numpy as np

_CLEAR = pathlib.Path("/proc/self/clear_refs")
IS_POSSIBLE = _CLEAR.exists()


def peak_of(
    model: pathlib.Path, inputs: Mapping[str, np.ndarray], small: Mapping[str, np.ndarray] | None = None, *, optimized: bool = True
) -> int:
    """The bytes that a run takes beyond what the process holds before, without inputs.

    Args:
        model: The model.
        inputs: The inputs, by name.
        small: Inputs for a run before; `inputs` by default, whose memory is returned before the measurement.
        optimized: Whether ONNX Runtime optimizes the graph.
    """
    files = []
    for name, arrays in (("inputs", inputs), ("small", small or inputs)):
        files.append(model.with_suffix(f".{name}.npz"))
        np.savez(files[-1], **arrays)
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "16384", "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0"}
    done = subprocess.run(
        [sys.executable, __file__, model, *files, str(optimized)], env=environment, capture_output=True, text=True, check=True
    )
    return int(json.loads(done.stdout))


def _resident(key: str) -> int:
    found = re.search(rf"{key}:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


def _main(model: str, inputs: str, small: str, optimized: str) -> None:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.intra_op_num_threads = 1
    if optimized == "False":
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options)
    feeds = {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in np.load(inputs).items()}
    session.run_with_ort_values(None, {name: ort.OrtValue.ortvalue_from_numpy(array) for name, array in np.load(small).items()})
    before = _resident("VmRSS")
    _CLEAR.write_text("5")
    outputs = session.run_with_ort_values(None, feeds)
    print(_resident("VmHWM") - before)  # noqa: T201
    del outputs


if __name__ == "__main__":
    _main(*sys.argv[1:])
