"""Takes out of a script what its failure does not need: delta debugging, as long as a budget lasts."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
import re
import time
from collections.abc import Callable, Iterator, Sequence

from onnxplain.process import Budget

from . import trial_host
from .constructed import constructed
from .cuts import Cut, Cuts, Parsed
from .removable import Part, Removable, cuts_of
from .trial_host import Failure
from .trials import Trials, Unable, trials
from .undefined import undefined

RUNS = 200
"""How often scripts may be run."""
SECONDS = 20.0
"""How many seconds of processor time all runs may take, or as many as are left for trials of fixes if those are more."""
_PATIENCE = 3.0
"""How many times longer than its processor time a run may take, and than the first script a shorter one."""
_SPARE = 2.0
"""Seconds that each run may take."""
_ROUNDS = 4
"""How often all that is left is looked through at most."""


class _Spent(Exception):
    """The budget is spent."""


@dataclasses.dataclass(frozen=True)
class Minimised:
    """A script and what became of it.

    Attributes:
        text: The script.
        remark: Why it is not as short as it could be: a sentence, or nothing.
        runs: How many scripts were run.
    """

    text: str
    remark: str
    runs: int


def minimised(script: str, rule: str, budget: Budget) -> Minimised:
    """Takes out of a script what it does not need to fail with the same rule, for the same reason, at the same statement.

    Args:
        script: The script.
        rule: The id of the rule with which it should fail. A script that does not is returned unchanged.
        budget: How long the model may be run; what the runs take is taken out of it.
    """
    try:
        with trials() as runs:
            search = _Search(script, runs, budget)
            if not search.begin(rule):
                return Minimised(script, "", search.runs)
            with contextlib.suppress(_Spent):
                search.search()
            search.tidy()
            told = f"after {search.runs} runs and {search.seconds:.0f} s the budget was spent"
            return Minimised(search.text, f"This script may be longer than it has to be: {told}." if search.is_spent else "", search.runs)
    except Unable as error:
        return Minimised(script, f"This script was not made shorter: {error}.", 0)


class _Search:
    """The shortest script so far."""

    def __init__(self, script: str, runs: Trials, budget: Budget) -> None:
        self.runs = 0
        self.seconds = 0.0
        self.is_spent = False
        self._trials = runs
        self._budget = budget
        self._limit = max(SECONDS, budget.seconds)
        self._began = time.monotonic()
        self._longest = self._limit
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

    def begin(self, rule: str) -> bool:
        """Whether the script fails with a rule. Its failure is the one that all others have to have."""
        found = self._run(self.text, try_fixes=True)
        if found is None or found.rule != rule:
            return False
        self._wanted = found
        self._longest = _PATIENCE * self.seconds * _PATIENCE + _SPARE
        # NOTE: most scripts fail alike without trials of fixes, which take most of the time. With them, a rewritten loop may export.
        with contextlib.suppress(_Spent):
            if self._run(self.text, try_fixes=False) == found:
                self._modes = (False, True)
        if found.file == trial_host.SCRIPT:
            self._blamed = self._parsed.first_of_line(found.line)
        return True

    def search(self) -> None:
        """Makes the script shorter, step by step, until nothing more can be taken out. Raises `_Spent`."""
        self._try_each(lambda each: constructed(each.parsed))
        for _ in range(_ROUNDS):
            before = self.text
            self._reduce(Removable.unmentioned)
            for depth in itertools.count():
                if not self._removable().statements(depth):
                    break
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

    def tidy(self) -> None:
        """Leaves no gaps where something was taken out."""
        text = re.sub(r"^# [^\n]*\.py\n(?=\n|torch\.manual_seed)", "", re.sub(r"\n{4,}", "\n\n\n", self.text), flags=re.MULTILINE)
        text = re.sub(r"(:\n)\n+(?= )", r"\1", re.sub(r"\n{4,}", "\n\n\n", text))
        self._parsed = Parsed(text.strip("\n") + "\n")

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
        left = min(self._limit - self.seconds, self._limit - (time.monotonic() - self._began) / _PATIENCE)
        if self.runs >= RUNS or left <= 0:
            self.is_spent = True
            raise _Spent
        answer = self._trials.run(text, min(self._longest, _PATIENCE * left), try_fixes=try_fixes)
        self.runs += 1
        self.seconds += answer.seconds
        self._budget.seconds -= answer.seconds
        return answer.failure
