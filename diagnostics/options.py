"""What a user can set about findings."""

from __future__ import annotations

import dataclasses
import logging
import re
from collections.abc import Mapping, Sequence, Set
from typing import Literal, get_args

from .errors import InvalidArgument
from .level import Level
from .rule import Rule

SarifProfile = Literal["full", "github"]
"""What a SARIF log holds: everything that is known, or only what GitHub code scanning accepts."""
SARIF_PROFILES: tuple[SarifProfile, ...] = get_args(SarifProfile)

_PREFIX = re.compile(r"OXP\d{0,4}")


@dataclasses.dataclass(frozen=True)
class DiagnosticOptions:
    """How much an export records, and which findings count.

    Attributes:
        verbosity_level: A level of `logging`. It sets how much the log records beside the findings; at `logging.DEBUG` that includes
            a graph and what each stage did. It never drops a finding.
        warnings_as_errors: Raises warnings to errors, also in the log. The export fails on them.
        levels: Rule id to level: overrides the rule's default level.
        select: The rules to report, as ids or prefixes of ids (`OXP1` is a whole chapter); empty means all.
        ignore: The rules not to report, as ids or prefixes of ids. Of `select` and `ignore` the longer match wins, as in ruff.

    A finding that stops the export is always reported as an error, whatever these options say: a failed export never has an empty log.

    Raises:
        InvalidArgument: An option has the wrong type, or a value does not look like the id of a rule (a TypeError and a ValueError).
    """

    verbosity_level: int = logging.INFO
    warnings_as_errors: bool = False
    levels: Mapping[str, Level] = dataclasses.field(default_factory=dict)
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.verbosity_level, int):
            raise InvalidArgument(f"verbosity_level: expected a level of logging (int), got {self.verbosity_level!r}")
        if not isinstance(self.warnings_as_errors, bool):
            raise InvalidArgument(f"warnings_as_errors: expected a bool, got {self.warnings_as_errors!r}")
        if not isinstance(self.levels, Mapping):
            raise InvalidArgument(f"levels: expected a mapping of rule ids to levels, got {self.levels!r}")
        for name, level in self.levels.items():
            if not isinstance(level, Level):
                raise InvalidArgument(f"levels[{name!r}]: expected a Level, got {level!r}")
        for option in ("select", "ignore"):
            value = getattr(self, option)
            if not isinstance(value, Sequence | Set) or isinstance(value, str | bytes):
                raise InvalidArgument(f"{option}: expected a sequence of rule ids, got {value!r}")
            object.__setattr__(self, option, tuple(value))
        for option in ("levels", "select", "ignore"):
            for prefix in getattr(self, option):
                if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
                    raise InvalidArgument(f"{option}: expected a rule id such as OXP1001 or a prefix of one, got {prefix!r}")

    def changed(self) -> dict[str, int | bool | Mapping[str, Level] | tuple[str, ...]]:
        """The options that differ from their defaults, by name."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: value for name, value in values.items() if value != getattr(DiagnosticOptions(), name)}

    def check_known(self) -> None:
        """Raises `InvalidArgument` if an option names no rule of the book. Import `onnxplain.rules` first."""
        ids = [rule.id for rule in Rule.all()]
        for option in ("levels", "select", "ignore"):
            for prefix in getattr(self, option):
                if not any(id.startswith(prefix) for id in ids):
                    raise InvalidArgument(f"{option}: there is no rule {prefix}; `onnxplain rules` lists the rules")

    def level_of(self, rule: type[Rule]) -> Level | None:
        """The level at which findings of `rule` are reported; `None` if they are not reported."""
        selected = _longest_match(rule.id, self.select) if self.select else 0
        if selected is None:
            return None
        ignored = _longest_match(rule.id, self.ignore)
        if ignored is not None and ignored >= selected:
            return None
        override = _longest_match(rule.id, self.levels)
        level = rule.level if override is None else self.levels[rule.id[:override]]
        return Level.ERROR if self.warnings_as_errors and level is Level.WARNING else level


def _longest_match(id: str, prefixes: Mapping[str, Level] | tuple[str, ...]) -> int | None:
    """The length of the longest of `prefixes` that `id` starts with."""
    return max((len(prefix) for prefix in prefixes if id.startswith(prefix)), default=None)
