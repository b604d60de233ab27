"""A memory estimate as a picture."""

from __future__ import annotations

import pathlib

from onnxplain.diagnostics import OnnxExporterError

from .records import MemoryEstimate, readable

_MIB = 2**20
_LABELS = 5
"""The most tensors that are listed."""


def plot(found: MemoryEstimate, path: pathlib.Path, title: str) -> None:
    """Writes the timeline as a picture, in the format that the suffix of `path` names, such as `.svg` or `.png`.

    Raises:
        OnnxExporterError: matplotlib is not installed, or does not write the format.
        OSError: The file cannot be written.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise OnnxExporterError("A plot needs matplotlib, which is not installed: pip install 'onnxplain[plot]'") from error
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    live = [step.live / _MIB for step in found.steps]
    axes.fill_between(range(1, len(live) + 1), live, step="mid", color="#4c78a8", alpha=0.6, linewidth=0)
    axes.set_xlim(0.5, max(1, len(live)) + 0.5)
    axes.set_ylim(0, 1.5 * max(1e-3, found.peak / _MIB))
    axes.set_xlabel("node, in the order of execution")
    axes.set_ylabel("activations in MiB")
    # NOTE: names come from the model. As mathematics, a dollar in them would be an error.
    axes.set_title(title, parse_math=False)
    if found.steps:
        axes.plot([found.at + 1], [found.peak / _MIB], "o", color="#cf222e")
        tensors = [f"{readable(each.size)}  {each.shape} {each.origin.place}" for each in found.tensors[:_LABELS]]
        place = found.steps[found.at].origin.place
        text = "\n".join([f"peak {readable(found.peak)}: {place}", *tensors])
        left = found.at > len(found.steps) / 2
        axes.text(
            0.01 if left else 0.99,
            0.98,
            text,
            transform=axes.transAxes,
            va="top",
            ha="left" if left else "right",
            fontsize=8,
            parse_math=False,
        )
    try:
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    except ValueError as error:
        raise OnnxExporterError(f"matplotlib cannot write {path.name}: {error}") from error
