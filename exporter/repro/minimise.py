"""Takes out of a script what its failure does not need: delta debugging, as long as a budget lasts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence

from onnxplain.diagnostics import Diagnostic
from onnxplain.process import Budget

from . import trial, trial_host
from .constructed import constructed
from .cuts import Cut, Cuts, Parsed
from .gaps import gaps
from .removable import Part, Removable, cuts_of
from .trial_host import Failure
from .trials import Trials, Unable, trials
from .undefined import undefined

RUNS = 200
"""How often scripts may be run."""
SECONDS = 20.0
"""How many seconds of processor time all runs may take, or as many as are left for trials of fixes if those are more.

On a busy machine, they may take `trial_host.BUSY` times as long.
"""
_LONGER = 3.0
"""How many times longer than the whole script a shorter one may run."""
_SPARE = 1.0
"""Seconds that each run may take besides."""
_ROUNDS = 4
"""How often all that is left is looked through at most."""


class _Spent(Exception):
    """The budget is spent."""


@dataclasses.dataclass(frozen=True)
class Minimised:
    """A script and what became of it.

    Attributes:
        text: The script.
        remark: Why it may be longer than it has to be: a sentence, or nothing.
        runs: How many scripts were run.
        is_proven: Whether a run has shown that it fails as it should.
    """

    text: str
    remark: str = ""
    runs: int = 0
    is_proven: bool = False


def minimised(script: str, finding: Diagnostic, budget: Budget) -> Minimised:
    """Takes out of a script what it does not need to fail with the same rule, for the same reason, at the same statement.

    Args:
        script: The script.
        finding: The finding with which it should fail. A script that does not is returned unchanged.
        budget: How long the model may be run; what the runs take is taken out of it.
    """
    try:
        with trials() as runs:
            search = _Search(script, runs, budget)
            if not search.begin(finding):
                return Minimised(script, runs=search.runs)
            with contextlib.suppress(_Spent):
                search.search()
            told = f"after {search.runs} runs and {search.seconds:.0f} s the budget was spent"
            remark = f"This script may be longer than it has to be: {told}." if search.is_spent else ""
            return Minimised(search.text, remark, search.runs, is_proven=True)
    except Unable as error:
        return Minimised(script, f"This script may be longer than it has to be: {error}.")


class _Search:
    """The shortest script so far."""

    def __init__(self, script: str, runs: Trials, budget: Budget) -> None:
        self.runs = 0
        self.seconds = 0.0
        self.is_spent = False
        self._trials = runs
        self._budget = budget
        self._limit = max(SECONDS, budget.seconds)
        self._most: float = RUNS
        self._began = time.monotonic()
        self._longest = self._limit / 2
        self._modes: tuple[bool, ...] = (True,)
        self._wanted: Failure | None = None
        self._parsed = Parsed(script)
        self._undefined = undefined(self._parsed.tree)
        self._blamed: int | None = None
        self._rejected: set[str] = set()

    @property
    def text(self) -> str:
        """The script."""
        return self._parsed.text

    def begin(self, finding: Diagnostic) -> bool:
        """Whether the script fails as it should. Its failure is the one that all others have to have."""
        found = self._run(self.text, try_fixes=True)
        if found is None or found.rule != finding.rule.id:
            return False
        if found.file == trial_host.SCRIPT:
            self._blamed = self._parsed.first_of_line(found.line)
            if not trial.is_line_of(self._parsed.rest_of_line(self._blamed), finding):
                return False
        self._wanted = found
        self._longest = _LONGER * self.seconds + _SPARE
        # NOTE: most scripts fail alike without trials of fixes, which take most of the time. With them, a rewritten loop may export.
        with contextlib.suppress(_Spent):
            if self._run(self.text, try_fixes=False) == found:
                self._modes = (False, True)
        return True

    def search(self) -> None:
        """Makes the script shorter, step by step, until nothing more can be taken out. Raises `_Spent`."""
        try:
            self._take_out()
        finally:
            # NOTE: a last run is not one too many.
            self._limit = self._most = math.inf
            self._try_each(gaps)

    def _take_out(self) -> None:
        self._try_each(lambda each: constructed(each.parsed))
        for _ in range(_ROUNDS):
            before = self.text
            self._reduce(Removable.unmentioned)
            for depth in range(self._removable().depths):
                self._reduce(functools.partial(Removable.statements, depth=depth))
            self._try_each(Removable.unwrapped)
            self._reduce(Removable.unmentioned)
            self._try_each(Removable.hoisted)
            self._try_each(Removable.inputs)
            self._reduce(Removable.items)
            self._try_each(Removable.fewer)
            if self.text == before:
                break
        self._try_each(lambda each: constructed(each.parsed))
        self._reduce(Removable.unmentioned)
        self._reduce(Removable.unused_imports)

    def _reduce(self, parts: Callable[[Removable], Sequence[Part]]) -> None:
        """Removes as many parts as possible: first all, then halves, quarters and so on, from the end."""
        left = parts(self._removable())
        size = len(left)
        while size:
            end = len(left)
            while end > 0:
                start = max(0, end - size)
                if self._accept(cuts_of(left[start:end])):
                    # NOTE: the offsets of all others have changed.
                    left = parts(self._removable())
                end = min(start, len(left))
            size = min(size, len(left)) // 2

    def _try_each(self, changes: Callable[[Removable], Iterator[list[Cut]]]) -> None:
        """Makes each change that leaves the failure as it is."""
        number = 0
        while number < len(found := list(changes(self._removable()))):
            number += not self._accept(found[number])

    def _removable(self) -> Removable:
        return Removable(self._parsed, self._blamed)

    def _accept(self, cuts: Sequence[Cut]) -> bool:
        """Makes cuts if the script fails alike without what they remove."""
        made = Cuts(cuts)
        text = made.applied(self.text)
        if text in self._rejected or not self._fails_alike(text, made):
            self._rejected.add(text)
            return False
        self._blamed = None if self._blamed is None else made.after(self._blamed)
        self._parsed = Parsed(text)
        return True

    def _fails_alike(self, text: str, made: Cuts) -> bool:
        try:
            parsed = Parsed(text)
        except (SyntaxError, ValueError):
            return False
        # NOTE: where a run does not come to, a name would do no harm, but the reader would miss it.
        if undefined(parsed.tree) - self._undefined:
            return False
        return all(self._is_wanted(self._run(text, try_fixes=try_fixes), parsed, made) for try_fixes in self._modes)

    def _is_wanted(self, found: Failure | None, parsed: Parsed, made: Cuts) -> bool:
        wanted = self._wanted
        assert wanted is not None
        if found is None or (found.rule, found.arguments, found.file) != (wanted.rule, wanted.arguments, wanted.file):
            return False
        # NOTE: without one of its settings, a library may make a larger model.
        if found.size > wanted.size:
            return False
        if self._blamed is None:
            return found.line == wanted.line
        start = parsed.first_of_line(found.line)
        return made.before(start) == self._blamed and parsed.rest_of_line(start) == self._parsed.rest_of_line(self._blamed)

    def _run(self, text: str, *, try_fixes: bool) -> Failure | None:
        """How a script fails. Raises `_Spent`."""
        left = min(self._limit - self.seconds, self._limit - (time.monotonic() - self._began) / trial_host.BUSY)
        if self.runs >= self._most or left <= 0:
            self.is_spent = True
            raise _Spent
        answer = self._trials.run(text, min(self._longest, left), try_fixes=try_fixes)
        self.runs += 1
        self.seconds += answer.seconds
        self._budget.seconds -= answer.seconds
        return answer.failure
