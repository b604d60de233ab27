"""Mutated logs: no command stops with a bug, writes a file that is not its own, or prints what it should not.

`cd tests && TMPDIR=/dev/shm ../.venv/bin/python -m adversary.test_logs SEED NUMBER` tries many and prints the figures. In memory,
50,000 logs take 20 minutes; on a disk, the commands wait for it.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import json
import os
import pathlib
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import pytest
from click.testing import CliRunner
from full_log import full_log
from log_victim import SOURCE, Victim

from onnxplain.cli import main

COMMANDS = (("fix",), ("fix", "--unsafe", "--diff"), ("report",), ("gate",))
STEERING = frozenset("\x1b\x07\u202e")
"""Characters that would steer a terminal, or turn its text around."""


def values(victim: Victim) -> list[Any]:
    """What is put into a log."""
    outside = [f"file://{victim.secret}", str(victim.secret), "../outside/secret.py", "/dev/zero"]
    files = [*outside, "innocent.py", "linked/secret.py", "pipe.py"]
    numbers = [0, -1, 1, 2, 10**9, 10**30, 1.5, float("nan"), float("inf")]
    texts = ["", "x", "net.py", "sub/../net.py", "SRCROOT", "t", "\n", "token", "\x1b[31m", "\u202e", "\ud800", "%00", "OXP1001", "safe"]
    return [None, True, False, *numbers, *texts, *files, "A" * 100_000, [], {}, [[]], [None], {"uri": "x"}, {"text": None}]


def ways(content: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """How each part of a document is reached."""
    yield way
    parts = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, part in parts:
        yield from ways(part, (*way, key))


def mutated(document: Any, chance: random.Random, replacements: list[Any]) -> Any:
    """A copy of `document` with one to four changes, most of them in what names files and places."""
    changed = copy.deepcopy(document)
    everywhere = [way for way in ways(document) if way]
    telling = [way for way in everywhere if {"fixes", "originalUriBaseIds", "locations"} & set(way)]
    for _ in range(chance.randint(1, 4)):
        *outer, key = chance.choice(telling if chance.random() < 0.7 else everywhere)
        # NOTE: an earlier change may have removed the place.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            place = changed
            for each in outer:
                place = place[each]
            kind = chance.random()
            if kind < 0.2:
                del place[key]
            elif kind < 0.3:
                place[key] = [copy.deepcopy(place[key])] * 2
            else:
                place[key] = copy.deepcopy(chance.choice(replacements))
    return changed


def restore(path: pathlib.Path, text: str) -> None:
    """Makes `text` the content of a file that a command may have changed."""
    if path.is_symlink() or not path.is_file() or path.read_bytes() != text.encode():
        # NOTE: a file system may wait for the disk when a file is emptied and written again, but not for a new file.
        path.unlink(missing_ok=True)
        path.write_text(text, encoding="utf-8")


def attack(victim: Victim, seed: int, number: int) -> tuple[collections.Counter[tuple[str, int]], list[float], list[str]]:
    """Runs all commands on mutated logs: how often each exit code came, the seconds of each run, and what went wrong."""
    (victim.root / "innocent.py").symlink_to(victim.secret)
    (victim.root / "linked").symlink_to(victim.outside)
    os.mkfifo(victim.root / "pipe.py")
    chance, codes, seconds, wrong = random.Random(seed), collections.Counter[tuple[str, int]](), list[float](), list[str]()
    replacements, before = values(victim), victim.files()
    for index in range(number):
        text = json.dumps(mutated(victim.document, chance, replacements))
        for command, *options in COMMANDS:
            restore(victim.log, text)
            began = time.perf_counter()
            told = CliRunner().invoke(main, [command, str(victim.log), *options])
            seconds.append(time.perf_counter() - began)
            codes[command, told.exit_code] += 1
            after = victim.files()
            edited = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
            own = {str(victim.source)} if command == "fix" and not options else set()
            problems = {
                f"exit code {told.exit_code}": told.exit_code not in (0, 1, 2),
                "a bug": "unexpected" in told.output,
                f"it changed {edited - own}": bool(edited - own),
                "it told a secret": "hunter2" in told.output,
                "it steers the terminal": bool(STEERING & set(told.output)),
            }
            wrong += [f"log {index} of seed {seed}, {command}: {problem}" for problem, happened in problems.items() if happened]
            if edited:
                restore(victim.source, SOURCE)
                before = victim.files()
    return codes, seconds, wrong


@pytest.mark.slow
def test_mutated_logs_do_no_harm(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim = Victim(tmp_path)
    monkeypatch.chdir(victim.root)
    codes, _, wrong = attack(victim, 1, 250)
    assert wrong == []
    # NOTE: a run in which every log is refused at once would show nothing.
    assert codes["fix", 0] > 50
    assert codes["report", 0] > 20


ODD = (None, True, -1, 1.5, float("nan"), 10**30, "x", "2020-01-01", "0001-01-01T00:00:00Z", "\ud800", [], [None], ["x"], {}, {"a": 1})


def kinds(document: Any) -> list[tuple[Any, ...]]:
    """How one part of each kind is reached: items of an array are of one kind."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for way in ways(document):
        found.setdefault(tuple("" if isinstance(key, int) else key for key in way), way)
    return [way for way in found.values() if way]


@pytest.mark.slow
def test_each_part_of_a_log_may_be_anything(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    honest, document = json.dumps(full_log()), full_log()
    log, known, accepted = (tmp_path / name for name in ("log.sarif", "known.sarif", "accepted.sarif"))
    commands = (
        ("report", "log.sarif"),
        ("fix", "log.sarif", "--unsafe", "--diff"),
        ("gate", "log.sarif", "--baseline", "known.sarif"),
        ("gate", "known.sarif", "--baseline", "log.sarif"),
        ("baseline", "accept", "log.sarif", "--baseline", "accepted.sarif"),
    )
    codes, wrong = collections.Counter[int](), []
    for number, (*outer, key) in enumerate(kinds(document)):
        changed = copy.deepcopy(document)
        place: Any = changed
        for each in outer:
            place = place[each]
        place[key] = ODD[number % len(ODD)]
        text = json.dumps(changed)
        for command in commands:
            restore(log, text)
            restore(known, honest)
            accepted.unlink(missing_ok=True)
            told = CliRunner().invoke(main, command)
            codes[told.exit_code] += 1
            if told.exit_code not in (0, 1, 2) or "unexpected" in told.output:
                wrong.append((command, (*outer, key), place[key]))
    assert wrong == []
    assert min(codes.values()) > 50


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        made = Victim(pathlib.Path(folder))
        os.chdir(made.root)
        found, times, faults = attack(made, int(sys.argv[1]), int(sys.argv[2]))
    print(dict(sorted(found.items())))  # noqa: T201  figures for whoever runs it
    median, decile, worst = statistics.median(times), statistics.quantiles(times, n=10)[-1], max(times)
    print(f"median {median:.4f} s, p90 {decile:.4f} s, worst {worst:.4f} s; {len(faults)} faults")  # noqa: T201  likewise
    print(*faults[:20], sep="\n")  # noqa: T201  likewise
