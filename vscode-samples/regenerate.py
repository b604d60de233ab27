"""Exports every sample, and writes their logs and the pictures of the terminal anew: `make samples` in the folder above.

What is written is the same on every machine: it names no folder and no time.
"""

from __future__ import annotations

import io
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Any

from rich.console import Console
from rich.terminal_theme import MONOKAI

from onnxplain.diagnostics import read_log, show_log

SAMPLES = ("training_mode", "data_dependent", "frozen_batch", "stream_state", "no_translation", "wrong_numbers", "several_problems")
"""From simple to hard."""
_OPTIONS = {"data_dependent": ("--control-flow", "report")}
"""Further options of a sample."""

_HERE = pathlib.Path(__file__).parent
_TIMES = {"startTimeUtc": "2026-01-01T00:00:00.000Z", "timeUtc": "2026-01-01T00:00:00.000Z", "endTimeUtc": "2026-01-01T00:00:01.000Z"}
_OF_A_MACHINE = ("artifacts", "versionControlProvenance", "workingDirectory")
"""Properties that are left out: weights are random, so each model is another file."""
_WIDTH = 100
"""Characters of a picture, at least."""
_PICTURE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">
<style>.{unique_id}-matrix {{ font: {char_height}px/{line_height}px Menlo, Consolas, "DejaVu Sans Mono", monospace }} {styles}</style>
<defs>{lines}</defs>
<rect width="{width}" height="{height}" rx="8" fill="#0c0c0c" />
<g transform="translate({terminal_x}, 20)">{backgrounds}<g class="{unique_id}-matrix">{matrix}</g></g>
</svg>
"""


def main(folder: pathlib.Path) -> None:
    """Writes `.sarif` and `pictures/*.svg` into `folder`."""
    logs, pictures = folder / ".sarif", folder / "pictures"
    with tempfile.TemporaryDirectory() as scratch:
        for path in _HERE.glob("*.py"):
            shutil.copy(path, scratch)
        (pathlib.Path(scratch) / "out").mkdir()
        for name in SAMPLES:
            _export(name, pathlib.Path(scratch))
        shutil.rmtree(logs, ignore_errors=True)
        shutil.copytree(pathlib.Path(scratch) / ".sarif", logs)
    pictures.mkdir(exist_ok=True)
    for name in SAMPLES:
        (pictures / f"{name}.svg").write_text(_picture(logs / f"{name}.sarif"), encoding="utf-8")


def _export(name: str, scratch: pathlib.Path) -> None:
    log = scratch / ".sarif" / f"{name}.sarif"
    options = ["-o", f"out/{name}.onnx", "--sarif", f".sarif/{name}.sarif", "--verify", *_OPTIONS.get(name, ())]
    subprocess.run([sys.executable, "-m", "onnxplain", "export", f"{name}.py:build", *options], cwd=scratch, check=False)
    content = _portable(json.loads(log.read_text(encoding="utf-8")), scratch)
    log.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _picture(log: pathlib.Path) -> str:
    """What the export printed, as SVG."""
    console = Console(record=True, file=io.StringIO(), width=1000)
    show_log(read_log(log), console)
    console.width = max(_WIDTH, *map(len, console.export_text(clear=False).splitlines()))
    return console.export_svg(title="", code_format=_PICTURE, theme=MONOKAI, unique_id=log.stem)


def _portable(value: Any, scratch: pathlib.Path, name: str = "") -> Any:
    """`value`, the value of the property `name` in a log, without what another machine would have otherwise."""
    match value:
        case str():
            return _TIMES.get(name, value.replace(f"{scratch.as_uri()}/", "").replace(f"{scratch}/", ""))
        case list():
            return [_portable(each, scratch) for each in value]
        case dict() if name == "originalUriBaseIds":
            # A reader takes files to be in the folder that it has open.
            return {base: {"description": {"text": "The folder of the samples."}} for base in value}
        case dict() if name == "onnxplain/environment":
            return {package: re.match(r"\d+\.\d+", value[package])[0] for package in ("python", "torch")}  # type: ignore[index]
        case dict():
            return {name: _portable(each, scratch, name) for name, each in value.items() if name not in _OF_A_MACHINE}
        case float() if name == "seconds":
            return 0.0
    return value


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if sys.argv[1:] else _HERE)
