"""The command line: `python -m mutants`, from the folder of the tests."""

from __future__ import annotations

import os
import pathlib
import random
import time

import click

from . import rooms, running

_Path = click.Path(path_type=pathlib.Path)


@click.command()
@click.option("--room", "names", multiple=True, type=click.Choice(list(rooms.rooms())), help="Rooms to sample; all of them by default.")
@click.option("--count", default=40, show_default=True, type=click.IntRange(min=1), help="Mutants of each room.")
@click.option("--seed", default=1, show_default=True, help="Another seed, other mutants.")
@click.option("--processes", default=max(1, (os.cpu_count() or 2) // 2), show_default="half the cores", type=click.IntRange(min=1))
@click.option("--caught", "list_caught", is_flag=True, help="List the caught mutants as well, each with the test that failed.")
@click.option("--executing", is_flag=True, help="Run only the tests that execute the changed lines: faster, but more mutants pass.")
def main(names: tuple[str, ...], count: int, seed: int, processes: int, list_caught: bool, executing: bool) -> None:
    """Puts small faults into rooms of the installed package, one at a time, and tells which of them the rooms' tests miss."""
    known = rooms.equivalents()
    total = caught = 0
    for name in names or rooms.rooms():
        room = rooms.rooms()[name]
        drawn = random.Random(seed).sample(found := room.mutants(), min(count, len(found)))
        sample = [mutant for mutant in drawn if not any(each.matches(mutant) for each in known)]
        began, missed = time.monotonic(), 0
        for result in running.run(room, sample, processes, executing=executing):
            missed += result.caught is None
            if result.caught is None or list_caught:
                unseen = "" if result.executed else " no test executes it, as far as coverage sees"
                by = unseen if result.caught is None else f" caught: {result.caught}"
                click.echo("\n".join([f"{result.mutant.path.relative_to(rooms.ROOT)}:{result.mutant.line}{by}", *result.mutant.diff()]))
        total, caught = total + len(sample), caught + len(sample) - missed
        click.echo(
            f"{name}: {len(sample) - missed} of {len(sample)} caught ({_percent(len(sample) - missed, len(sample))}), "
            f"{len(drawn) - len(sample)} equivalent, {len(found)} mutants in all; {time.monotonic() - began:.0f} s"
        )
    if len(names) != 1:
        click.echo(f"All: {caught} of {total} caught ({_percent(caught, total)})")


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


if __name__ == "__main__":
    main()
