"""The life of a rule as typed events. Rewound from the present state, they give the rule's state in any release."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from .level import Level


@dataclasses.dataclass(frozen=True, slots=True)
class Added:
    """This version introduced the rule. The first event of every history, and only the first."""

    version: str


@dataclasses.dataclass(frozen=True, slots=True)
class LevelChanged:
    """The default level changed."""

    version: str
    before: Level
    after: Level


@dataclasses.dataclass(frozen=True, slots=True)
class ArgumentsChanged:
    """The message's arguments changed. Programs that read them from logs must know."""

    version: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class MeaningChanged:
    """The rule finds something else than before. This makes a new revision."""

    version: str
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class Renamed:
    """The rule's name changed. Its id never does."""

    version: str
    before: str
    after: str


@dataclasses.dataclass(frozen=True, slots=True)
class Deprecated:
    """The rule is still reported, but a later version will retire it."""

    version: str
    replacement: str


@dataclasses.dataclass(frozen=True, slots=True)
class Retired:
    """The rule is no longer reported. No other rule may take its id. Always the last event."""

    version: str


HistoryEvent = Added | LevelChanged | ArgumentsChanged | MeaningChanged | Renamed | Deprecated | Retired


@dataclasses.dataclass(frozen=True, slots=True)
class State:
    """What a release table records about a rule."""

    name: str
    level: Level
    arguments: tuple[str, ...]
    revision: int


def version_key(version: str) -> tuple[int, ...]:
    """Makes versions comparable: `"0.10.1"` becomes `(0, 10, 1)`, and `"1.0"` equals `"1.0.0"`.

    Raises:
        ValueError: `version` has anything but numbers and dots.
    """
    parts = [int(part) for part in version.split(".")]
    while parts and parts[-1] == 0:
        parts.pop()
    return tuple(parts)


def check(history: Sequence[HistoryEvent], present: State) -> None:
    """Raises `ValueError` unless `history` is in order and leads to `present`."""
    if not history or not isinstance(history[0], Added):
        raise ValueError("the history must begin with Added(version)")
    if any(isinstance(event, Added) for event in history[1:]):
        raise ValueError("only the first event may be Added")
    if any(isinstance(event, Retired) for event in history[:-1]):
        raise ValueError("only the last event may be Retired")
    versions = [version_key(event.version) for event in history]
    if versions != sorted(versions):
        raise ValueError("the events must be in the order of their versions")
    _rewind(present, history)


def state_at(version: str, history: Sequence[HistoryEvent], present: State) -> State | None:
    """The rule's state in release `version`; `None` if it did not exist then."""
    at = version_key(version)
    if version_key(history[0].version) > at:
        return None
    return _rewind(present, [event for event in history if version_key(event.version) > at])


def described(event: HistoryEvent) -> str:
    """Describes `event` in words: `0.2.0: the level changed from note to warning.`."""
    match event:
        case Added():
            what = "added"
        case LevelChanged(_, before, after):
            what = f"the level changed from {before.value} to {after.value}"
        case ArgumentsChanged(_, earlier, later):
            what = f"the arguments changed from ({', '.join(earlier)}) to ({', '.join(later)})"
        case MeaningChanged(_, reason):
            what = f"the meaning changed: {reason.rstrip('.')}"
        case Renamed(_, old, new):
            what = f"renamed from {old} to {new}"
        case Deprecated(_, replacement):
            what = f"deprecated, replaced by {replacement}"
        case Retired():
            what = "retired"
    return f"{event.version}: {what}."


def _rewind(state: State, events: Sequence[HistoryEvent]) -> State:
    """The state before `events`, given the state after them."""
    for event in reversed(events):
        match event:
            case LevelChanged(_, before, after):
                _agree("level", state.level, after)
                state = dataclasses.replace(state, level=before)
            case ArgumentsChanged(_, before, after):
                _agree("arguments", state.arguments, after)
                state = dataclasses.replace(state, arguments=before, revision=state.revision - 1)
            case Renamed(_, before, after):
                _agree("name", state.name, after)
                state = dataclasses.replace(state, name=before)
            case MeaningChanged():
                state = dataclasses.replace(state, revision=state.revision - 1)
            case Added() | Deprecated() | Retired():
                pass
    return state


def _agree(what: str, present: object, recorded: object) -> None:
    if present != recorded:
        raise ValueError(f"the history leads to {what} {recorded!r}, but the rule has {present!r}")
