"""The operators by ONNX opset: `python -m benchmarks.coverage.opsets`, from the folder of the tests."""

from __future__ import annotations

import collections
import datetime
import functools
import pathlib
from collections.abc import Mapping, Sequence

import click
import onnx
import onnxruntime
import torch
from rich.console import Console
from rich.progress import track

from . import pool
from .cases import Pair, pairs
from .comparison import Outcome
from .outcomes import Selection, measure

_OLDEST = 11


@click.command()
@click.argument("operators", nargs=-1)
@click.option("--every", default=1, show_default=True, help="Take every n-th operator only.")
@click.option("--table", type=click.Path(path_type=pathlib.Path), help="Write the table as markdown.")
@click.option("--workers", default=2, show_default=True)
@click.option("--seconds", default=60, show_default=True, help="The time limit of an export.")
def main(operators: Sequence[str], every: int, table: pathlib.Path | None, workers: int, seconds: int) -> None:
    """Finds the oldest opset that each of the OPERATORS of op_db exports to, by default of all of them."""
    # NOTE: the dtypes of an operator come in one order, float32 first.
    known = {each.operator: each for each in reversed(pairs())}
    wanted = [known[name] for name in operators or sorted(known)[::every]]
    made = pool.run(functools.partial(oldest, seconds=seconds), wanted, workers)
    found = {pair.operator: opset for pair, opset in track(made, total=len(wanted), console=Console(stderr=True))}
    text = as_table(found)
    click.echo(text)
    if table:
        table.write_text(text, encoding="utf-8")


def oldest(pair: Pair, seconds: int) -> int | None:
    """The oldest opset to which the first sample of a pair exports with equal results; None if it does not export to the newest."""
    if not _is_right(pair, newest(), seconds):
        return None
    return next(opset for opset in range(_OLDEST, newest() + 1) if _is_right(pair, opset, seconds))


@functools.cache
def newest() -> int:
    """The newest opset that both onnx and ONNX Runtime know."""
    return next(opset for opset in range(onnx.defs.onnx_opset_version(), _OLDEST, -1) if _runs(opset))


def _runs(opset: int) -> bool:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> main (float[1] x) => (float[1] y) {{y = Neg(x)}}')
    try:
        onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    except Exception:  # noqa: BLE001  ONNX Runtime's errors have no common class
        return False
    return True


def _is_right(pair: Pair, opset: int, seconds: int) -> bool:
    return [each.outcome for each in measure(pair, Selection(count=1, seconds=seconds, opset=opset))] == [Outcome.OK.value]


def as_table(found: Mapping[str, int | None]) -> str:
    """The operators by their oldest opset as markdown."""
    by_opset: dict[int, list[str]] = collections.defaultdict(list)
    for name, opset in sorted(found.items()):
        if opset is not None:
            by_opset[opset].append(name)
    lines = [
        "# Operators by opset",
        "",
        "The oldest ONNX opset to which each operator of PyTorch's operator database exports, with results that equal those of eager",
        f"PyTorch in ONNX Runtime on the CPU. Each was tried at opset {newest()} as well; those that do not export to it are left out.",
        f"Written by `make operators` on {datetime.date.today().isoformat()}, torch {torch.__version__} and ONNX Runtime",
        f"{onnxruntime.__version__}, with one sample of each operator, in float32 if the operator has it.",
        "",
        "| opset | operators | with older ones |",
        "|---|---|---|",
    ]
    total = 0
    for opset in sorted(by_opset):
        total += len(by_opset[opset])
        lines.append(f"| {opset} | {len(by_opset[opset])} | {total} |")
    for opset in sorted(by_opset):
        lines += ["", f"## Opset {opset}", "", ", ".join(f"`{name}`" for name in by_opset[opset])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
