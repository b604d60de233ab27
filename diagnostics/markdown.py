"""The log as a markdown report, to be read where GitHub renders it: in an issue, a comment, a job summary."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import os
import pathlib
import re
from collections.abc import Mapping, Sequence

import jinja2

from .fix import Edit
from .level import Level
from .location import Location
from .log import PROFILE, Event, Log
from .options import DiagnosticOptions
from .rule import Rule
from .text import caret, change, describe, shown_path, summary, verdict, visible

# A comment on GitHub holds 65,536 characters.
_CAUSE_LIMIT = 8_000
_EVENT_LIMIT = 100
_PLACE_LIMIT = 10

_ARGUMENT = re.compile(r"('\{\w+\}'|\{\w+\})")
_CODE_SPAN = re.compile(r"(?<!`)(`[^`]+`)(?!`)")
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&#]|(?<!\w)_|_(?!\w)")
_BACKTICKS = re.compile(r"`+")


class Markdown(str):
    """Text that is markdown already. The template escapes all other text."""

    __slots__ = ()


def to_markdown(log: Log) -> str:
    """The report on `log`."""
    suppressed = [finding for finding in log.findings if finding not in log.active]
    return _template().render(
        log=log, verdict=verdict(log), summary=summary(log), suppressed=suppressed, place_limit=_PLACE_LIMIT, profile_name=PROFILE
    )


def write(log: Log, path: pathlib.Path) -> None:
    """Writes the report on `log` to `path` in one step: no reader sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        draft.write_text(to_markdown(log), encoding="utf-8", newline="\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markdown) else prose(str(value)),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (code, fence, times, shown, rule_name, message, place, diff, excerpt, stack, steps, setting, middle)
    environment.filters.update({function.__name__: function for function in filters})
    return environment.from_string(importlib.resources.files(__package__).joinpath("report.md.j2").read_text(encoding="utf-8"))


def prose(text: str) -> Markdown:
    """`text` as a part of a paragraph. Backticks in pairs stay code, as in the sentences of rules; all else stands for itself."""
    parts = _CODE_SPAN.split(visible(text))
    return Markdown("".join(part if index % 2 else _SPECIAL.sub(r"\\\g<0>", part) for index, part in enumerate(parts)))


def code(text: str) -> Markdown:
    """`text` as code within a line."""
    if not text:
        return prose("''")
    text = visible(text)
    ticks = "`" * (_longest_run(text) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return Markdown(f"{ticks}{padding}{text}{padding}{ticks}")


def fence(text: str, language: str = "text") -> Markdown:
    """`text` as a block of code."""
    ticks = "`" * max(3, _longest_run(text) + 1)
    return Markdown("\n".join([f"{ticks}{language}", *(visible(line) for line in text.splitlines()), ticks]))


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def shown(path: pathlib.Path | str) -> str:
    """`path` as a reader in the current folder would write it."""
    return shown_path(str(path))


def rule_name(rule: Rule) -> str:
    """The name of the class of `rule`."""
    return type(rule).__name__


def message(rule: Rule) -> Markdown:
    """The message of `rule`, its quoted arguments as code."""
    arguments = dict(zip(rule.arguments(), rule.argument_texts(), strict=True))
    parts = _ARGUMENT.split(rule.message)
    for index, part in enumerate(parts):
        value = arguments.get(part.strip("'{}"), "")
        parts[index] = prose(part) if index % 2 == 0 else code(value) if part.startswith("'") else prose(value)
    return Markdown("".join(parts))


def place(place: Location) -> Markdown:
    """`place` and what it has to do with the finding."""
    return Markdown(f"{prose(place.message)}: {code(describe(place))}") if place.message else code(describe(place))


def diff(edit: Edit) -> str:
    """What `edit` does, in the way of `diff`."""
    before, after = change(edit)
    return "\n".join([*(f"-{line}" for line in before), *(f"+{line}" for line in after)])


def excerpt(place: Location) -> str:
    """The source line of `place`, underlined; empty where the source is not at hand."""
    text, underline = caret(place)
    number = str(place.line)
    return f"{number} | {text}\n{' ' * len(number)} | {underline}" if text else ""


def stack(frames: Sequence[Location]) -> str:
    """`frames` and their source lines, as in a traceback of Python's."""
    return "\n".join(f"{describe(frame)}\n    {frame.snippet}".rstrip() for frame in frames)


def times(log: Log) -> list[tuple[str, str, str, str]]:
    """The stages of `log`, what is between and around them, and the whole: name, seconds, share of the whole, and a remark."""
    whole = (log.ended - log.started).total_seconds()
    rows = [(stage.name, stage.seconds, "" if stage.completed else "failed") for stage in log.stages]
    rows += [("rest", max(0.0, whole - sum(stage.seconds for stage in log.stages)), ""), ("whole", whole, "")]
    return [(name, f"{seconds:.3f}", f"{seconds / whole if whole else 0:.0%}", remark) for name, seconds, remark in rows]


def steps(events: Sequence[Event]) -> str:
    """The last of `events`, a line each."""
    told = [f"{event.stage or 'export'}: {event.text}" for event in events[-_EVENT_LIMIT:]]
    left_out = len(events) - len(told)
    return "\n".join([f"[{left_out} earlier steps are left out here]", *told] if left_out else told)


def setting(log: Log) -> str:
    """The versions and options that the export depended on, a line each."""
    versions = [f"{name} {version}" for name, version in {log.tool.name: log.tool.version, **dict(log.environment)}.items()]
    values = [(field.name, getattr(log.options, field.name)) for field in dataclasses.fields(log.options)]
    options = [f"{name}={_option(value)}" for name, value in values if value != getattr(DiagnosticOptions(), name)]
    return "\n".join([*versions, *options])


def _option(value: int | bool | Mapping[str, Level] | tuple[str, ...]) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{rule}:{level.value}" for rule, level in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def middle(text: str) -> str:
    """`text` without its middle if it is long."""
    left_out = len(text) - _CAUSE_LIMIT
    half = _CAUSE_LIMIT // 2
    return text if left_out <= 0 else f"{text[:half]}\n[{left_out} characters are left out here]\n{text[-half:]}"
