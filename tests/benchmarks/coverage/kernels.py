"""Writes exporter/recording/kernels.py: `python -m benchmarks.coverage.kernels`, from the folder of the tests."""

from __future__ import annotations

import pathlib
from collections import defaultdict
from typing import Any

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state

_FILE = pathlib.Path(__file__).parents[3] / "exporter/recording/kernels.py"
_DTYPES = ("BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "DOUBLE")
"""The dtypes of PyTorch. ONNX Runtime itself computes in FLOAT where it has no kernel for FLOAT16."""
_OLDEST = 18

Lacks = dict[str, tuple[str, ...]]
"""The dtypes without a kernel, by the name of the type constraint."""

_HEAD = '''"""The dtypes that ONNX allows for an operator but for which ONNX Runtime has no kernel on the CPU (read in version {version}).

`make kernels` writes this file. FLOAT16 is not in it: ONNX Runtime itself computes in FLOAT where it has no kernel for FLOAT16.
"""

from __future__ import annotations

from collections.abc import Mapping

LACKING: Mapping[str, Mapping[int, Mapping[str, tuple[str, ...]]]] = {{
'''
_FOOT = '''}
"""By operator, by the opset since when it is so, and by type constraint."""
'''


def lacking() -> dict[str, dict[int, Lacks]]:
    """What the installed ONNX Runtime lacks, by operator and by the opset since when it is so."""
    kernels = _kernels()
    found: dict[str, dict[int, Lacks]] = defaultdict(dict)
    for schema in _schemas():
        if known := kernels.get((schema.name, schema.since_version)):
            lacks = _lacks(schema, known)
            before = list(found[schema.name].values())
            if lacks != (before[-1] if before else {}):
                found[schema.name][schema.since_version] = lacks
    return {name: by_opset for name, by_opset in sorted(found.items()) if by_opset}


def _schemas() -> list[Any]:
    """The schemas of all operators from opset 18 on, those of an operator in the order of their versions."""
    every = [each for each in onnx.defs.get_all_schemas_with_history() if not each.domain and not each.deprecated]
    return [
        each
        for each in sorted(every, key=lambda each: each.since_version)
        if each.since_version > _OLDEST
        or (onnx.defs.has(each.name, _OLDEST, "") and onnx.defs.get_schema(each.name, _OLDEST, "").since_version == each.since_version)
    ]


def _kernels() -> dict[tuple[str, int], list[dict[str, list[str]]]]:
    """The dtypes of each kernel by operator and version. An operator without kernels is a function of others."""
    made: dict[tuple[str, int], list[dict[str, list[str]]]] = defaultdict(list)
    for kernel in onnxruntime_pybind11_state.get_all_opkernel_def():
        if not kernel.domain and kernel.provider == "CPUExecutionProvider":
            first, last = kernel.version_range
            for version in range(first, min(last, onnx.defs.onnx_opset_version()) + 1):
                made[kernel.op_name, version].append(kernel.type_constraints)
    return made


def _lacks(schema: Any, kernels: list[dict[str, list[str]]]) -> Lacks:
    lacks: Lacks = {}
    for constraint in schema.type_constraints:
        name = constraint.type_param_str
        if any(name not in kernel for kernel in kernels):
            continue
        has = {text for kernel in kernels for text in kernel[name]}
        texts = {dtype: f"tensor({dtype.lower()})" for dtype in _DTYPES}
        missing = tuple(dtype for dtype, text in texts.items() if text in constraint.allowed_type_strs and text not in has)
        if missing:
            lacks[name] = missing
    return lacks


def main() -> None:
    """Writes the file."""
    lines = [f'    "{name}": {{{_by_opset(by_opset)}}},\n' for name, by_opset in lacking().items()]
    text = _HEAD.format(version=onnxruntime.__version__) + "".join(lines) + _FOOT
    _FILE.write_text(text.replace("'", '"'), encoding="utf-8")


def _by_opset(by_opset: dict[int, Lacks]) -> str:
    return ", ".join(f"{opset}: {lacks}" for opset, lacks in by_opset.items())


if __name__ == "__main__":
    main()
