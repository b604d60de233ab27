"""The command line: `python -m benchmarks.coverage`, from the folder of the tests."""

from __future__ import annotations

import dataclasses
import functools
import json
import pathlib
from collections.abc import Iterator, Sequence

import click
from rich.console import Console
from rich.progress import track

from . import pool, tables
from .cases import Pair, module_pairs, pairs
from .comparison import Outcome
from .outcomes import Result, Selection, measure

_Path = click.Path(path_type=pathlib.Path)


@click.command()
@click.argument("operators", nargs=-1)
@click.option("--samples", default=2, show_default=True, help="Samples of each operator and dtype.")
@click.option("--seed", type=int, help="Take random samples instead of the first ones.")
@click.option("--every", default=1, show_default=True, help="Take every n-th operator only.")
@click.option("--modules", is_flag=True, help="Export the modules of torch.nn, by default all of them, instead of operators.")
@click.option("--dynamic", is_flag=True, help="Make the dims of the first input dynamic, and compare at other sizes as well.")
@click.option("--dtype", "dtypes", multiple=True, help="Take this dtype only.")
@click.option("--results", type=_Path, help="JSON lines. Pairs that the file has are not run again.")
@click.option("--theirs", type=_Path, help="JSON lines of torch.onnx.export, which runs as well.")
@click.option("--table", type=_Path, help="Write the table of supported operators as markdown.")
@click.option("--workers", default=2, show_default=True)
@click.option("--seconds", default=60, show_default=True, help="The time limit of a sample.")
@click.option("--verbose", is_flag=True, help="Print every sample that fails.")
def main(
    operators: Sequence[str],
    samples: int,
    seed: int | None,
    every: int,
    modules: bool,
    dynamic: bool,
    dtypes: Sequence[str],
    results: pathlib.Path | None,
    theirs: pathlib.Path | None,
    table: pathlib.Path | None,
    workers: int,
    seconds: int,
    verbose: bool,
) -> None:
    """Exports OPERATORS of op_db, by default all of them, and prints what became of them and why."""
    known = module_pairs() if modules else pairs()
    names = list(dict.fromkeys(each.operator for each in known))
    chosen = set(operators or names[::every])
    wanted = [each for each in known if each.operator in chosen and (not dtypes or each.dtype in dtypes)]
    console = Console(highlight=False, soft_wrap=True)
    selection = Selection(samples, seed, seconds, dynamic)
    found = dict(_measured(console, wanted, results, selection, workers))
    console.print(tables.summary(found), markup=False)
    if verbose:
        console.print(tables.failures(found), markup=False)
    if theirs:
        others = dict(_measured(console, wanted, theirs, dataclasses.replace(selection, theirs=True), workers))
        console.print(tables.comparison(found, others), markup=False)
    if table:
        table.write_text(tables.supported(found), encoding="utf-8")


def _measured(
    console: Console, wanted: Sequence[Pair], file: pathlib.Path | None, selection: Selection, workers: int
) -> Iterator[tuple[Pair, list[Result]]]:
    """The results of all pairs: those that the file has, and the others, which the file gets."""
    known = dict(_read(file)) if file else {}
    yield from ((pair, known[pair]) for pair in wanted if pair in known)
    missing = [pair for pair in wanted if pair not in known]
    made = pool.run(functools.partial(measure, selection=selection), missing, workers)
    for pair, results in track(
        made, total=len(missing), console=Console(stderr=True), description="theirs" if selection.theirs else "ours"
    ):
        found = [Result(Outcome.CRASHED.value)] if results is None else results
        if file:
            line = {"operator": pair.operator, "dtype": pair.dtype, "results": [vars(each) for each in found]}
            with file.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(line) + "\n")
        yield pair, found


def _read(file: pathlib.Path) -> Iterator[tuple[Pair, list[Result]]]:
    for text in file.read_text(encoding="utf-8").splitlines() if file.exists() else ():
        line = json.loads(text)
        yield Pair(line["operator"], line["dtype"]), [Result(**each) for each in line["results"]]


if __name__ == "__main__":
    main()
