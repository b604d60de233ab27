"""The base class of all rules. A rule is a class; a finding holds an instance of it, whose fields are the message's arguments."""

from __future__ import annotations

import ast
import dataclasses
import functools
import inspect
import re
import string
import textwrap
import typing
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from typing_extensions import dataclass_transform

from . import rule_history
from .display import shortened
from .level import Level
from .rule_history import HistoryEvent, State

CHAPTERS = {
    "0": "internal",
    "1": "capture",
    "2": "passes",
    "3": "dispatch",
    "4": "build",
    "5": "serialize",
    "6": "verify",
    "7": "memory",
}
"""First digit of a rule's id to the stage that reports the rule."""

_ID = re.compile(r"OXP[0-7]\d{3}")
_FIELD_TYPES = (str, int, float, bool, tuple[str, ...])
_SECTIONS = ("What happened", "Why it matters", "How to fix it", "Example")
_EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_LIST_LIMIT = 5
_ARGUMENT_LIMIT = 2_000
"""Entries of a list, and characters of a text, that a message shows of an argument."""
_NUMBER = re.compile(r"\{(\d{1,3})\}")


@dataclasses.dataclass(frozen=True, slots=True)
class Page:
    """The page of a rule, in markdown. `onnxplain explain` prints it and SARIF logs contain it. The rule's docstring is its source.

    Attributes:
        summary: The first line: what the rule finds, in one sentence.
        what: What happened.
        why: Why it matters.
        fix: How to fix it.
        remark: A remark about the example; usually empty.
        failing: A complete program that has exactly this finding, at the line marked with the rule's id.
        clean: The same program, fixed: it exports without findings.
    """

    summary: str
    what: str
    why: str
    fix: str
    remark: str
    failing: str
    clean: str

    @property
    def first_way(self) -> str:
        """The first way to fix it, on one line."""
        ways = re.split(r"^\d+\. ", self.fix, flags=re.MULTILINE)
        return " ".join((ways[1] if len(ways) > 1 else self.fix).split())

    @property
    def markdown(self) -> str:
        """The page as one markdown text, without a title."""
        return (
            f"{self.summary}\n\n## What happened\n\n{self.what}\n\n## Why it matters\n\n{self.why}\n\n"
            f"## How to fix it\n\n{self.fix}\n\n## Example\n\n{f'{self.remark} ' if self.remark else ''}This program has the finding:\n\n"
            f"```python\n{self.failing}```\n\nThis one does not:\n\n```python\n{self.clean}```\n"
        )

    @classmethod
    def parse(cls, docstring: str) -> Page:
        """Reads a rule's docstring. Raises `ValueError` if a part is missing, with the name of that part."""
        text = inspect.cleandoc(docstring)
        summary, *rest = re.split(rf"^({'|'.join(_SECTIONS)}):\s*$", text, flags=re.MULTILINE)
        if tuple(rest[::2]) != _SECTIONS:
            raise ValueError(f"the docstring needs the sections {', '.join(_SECTIONS)}, in this order; it has {rest[::2]}")
        what, why, fix, example = (inspect.cleandoc(body.strip("\n")) for body in rest[1::2])
        programs = _EXAMPLE.findall(example)
        if len(programs) != 2:
            raise ValueError(f"the section Example needs two ```python blocks, it has {len(programs)}")
        for program in programs:
            ast.parse(program)
        return cls(" ".join(summary.split()), what, why, fix, example.partition("```python")[0].strip(), *programs)


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Rule:
    """The base class of a rule. `onnxplain.rules` has examples.

    Fields are `str`, `int`, `float`, `bool` or `tuple[str, ...]`.

    Raises:
        TypeError: The class statement has an id that is taken or malformed, a `message` with a name that is not a field, a docstring that
            is not a complete page, or a history that does not lead to the present state.
    """

    id: ClassVar[str]
    level: ClassVar[Level]
    history: ClassVar[tuple[HistoryEvent, ...]]
    page: ClassVar[Page]
    message: ClassVar[str]
    """The template of the message: a sentence that names each field, in quotes, as `'{field}'`."""
    everywhere: ClassVar[bool] = False
    """True folds all findings with equal arguments into one; False only those at the same place."""
    volatile: ClassVar[tuple[str, ...]] = ()
    """Arguments that do not identify a finding: measured numbers, advice, generated names. The fingerprint omits them."""
    precision: ClassVar[str] = "high"
    """Precision for GitHub code scanning: very-high, high, medium or low."""

    _book: ClassVar[dict[str, type[Rule]]] = {}

    def __init_subclass__(cls, *, id: str, level: Level, history: Sequence[HistoryEvent], **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.id, cls.level, cls.history = id, level, tuple(history)
        # NOTE: before `dataclass`, which writes a docstring where there is none.
        docstring = cls.__doc__ or _written_docstring(cls)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        try:
            cls.page = Page.parse(docstring)
            cls._check()
        except (ValueError, SyntaxError) as error:
            raise TypeError(f"rule {cls.__name__} ({id}): {error}") from error
        Rule._book[id] = cls

    @classmethod
    def _check(cls) -> None:
        if not isinstance(cls.level, Level):
            raise ValueError(f"the level must be a Level, not {cls.level!r}")
        if not isinstance(getattr(cls, "message", None), str):
            raise ValueError("it has no message")
        if not _ID.fullmatch(cls.id):
            raise ValueError("the id must be OXP and four digits, the first of them a chapter's")
        if cls.id in Rule._book:
            raise ValueError(f"the id is taken by {Rule._book[cls.id].__name__}")
        hints = typing.get_type_hints(cls)
        for name in cls.fields():
            if hints[name] not in _FIELD_TYPES:
                raise ValueError(f"field {name} has type {hints[name]}; expected one of {_FIELD_TYPES}")
        unknown = [name for name in cls.arguments() if name not in cls.fields()]
        if unknown:
            raise ValueError(f"the message names {unknown}, which are not fields")
        unknown = [name for name in cls.volatile if name not in cls.arguments()]
        if unknown:
            raise ValueError(f"volatile names {unknown}, which are not arguments of the message")
        if any(brace in cls.message for brace in ("{{", "}}")):
            raise ValueError("the message must use braces only for fields: SARIF readers disagree on how to escape them")
        if not cls.message.endswith("."):
            raise ValueError("the message must end with a period")
        rule_history.check(cls.history, cls.state())

    @classmethod
    def title(cls) -> str:
        """The rule's name."""
        return cls.__name__

    @classmethod
    def fields(cls) -> tuple[str, ...]:
        """The names of the rule's fields, in order of definition."""
        return tuple(field.name for field in dataclasses.fields(cls))  # type: ignore[arg-type]  # __init_subclass__ makes each rule a dataclass

    @classmethod
    def arguments(cls) -> tuple[str, ...]:
        """The names of the fields in the message, in order of their first use."""
        return _named(cls.message)

    @classmethod
    def chapter(cls) -> str:
        """The stage that the id's first digit stands for."""
        return CHAPTERS[cls.id[3]]

    @classmethod
    def revision(cls) -> int:
        """1, plus 1 for each change of the arguments or the meaning."""
        return 1 + sum(isinstance(event, rule_history.ArgumentsChanged | rule_history.MeaningChanged) for event in cls.history)

    @classmethod
    def state(cls) -> State:
        """The present state, as a release table records it."""
        return State(cls.__name__, cls.level, cls.fields(), cls.revision())

    @classmethod
    def state_at(cls, version: str) -> State | None:
        """The state in release `version`; `None` if the rule did not exist then."""
        return rule_history.state_at(version, cls.history, cls.state())

    @classmethod
    def numbered_message(cls) -> str:
        """The template as SARIF writes it, with `{0}`, `{1}` for the arguments (2.1.0, section 3.11.5)."""
        numbers = {name: f"{{{number}}}" for number, name in enumerate(cls.arguments())}
        return cls.message.format_map(numbers)

    def argument_texts(self) -> tuple[str, ...]:
        """The arguments as text, in the order of `arguments()`."""
        return tuple(_text(getattr(self, name)) for name in self.arguments())

    def identity(self) -> tuple[object, ...]:
        """The arguments that tell this finding from others of the same rule: those that are not volatile."""
        return tuple(getattr(self, name) for name in self.arguments() if name not in self.volatile)

    def __str__(self) -> str:
        return self.message.format_map(dict(zip(self.arguments(), self.argument_texts(), strict=True)))

    @staticmethod
    def all() -> Iterator[type[Rule]]:
        """Every rule that is defined so far, by id. Import `onnxplain.rules` first to get the whole book."""
        return iter(rule for _, rule in sorted(Rule._book.items()))

    @staticmethod
    def find(id: str) -> type[Rule] | None:
        """The rule with that id, if there is one."""
        return Rule._book.get(id)


@dataclasses.dataclass(frozen=True, slots=True)
class Recorded:
    """A rule's instance as a log recorded it. The present book may lack the rule or have changed it. Sinks show it as they show a `Rule`.

    Attributes:
        id: The rule's id.
        name: Its name.
        template: Its message with `{0}`, `{1}` for the arguments.
        names: Names of the arguments.
        values: The arguments as text.
        everywhere: As in `Rule`.
    """

    id: str
    name: str
    template: str
    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    everywhere: bool = False

    def title(self) -> str:
        """The rule's name."""
        return self.name

    def numbered_message(self) -> str:
        """As in `Rule`."""
        return self.template

    def arguments(self) -> tuple[str, ...]:
        """As in `Rule`."""
        return self.names

    def argument_texts(self) -> tuple[str, ...]:
        """As in `Rule`."""
        return self.values

    def __str__(self) -> str:
        return _NUMBER.sub(lambda found: self.values[int(found[1])] if int(found[1]) < len(self.values) else found[0], self.template)


@functools.cache
def _named(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name, _, _ in string.Formatter().parse(template) if name is not None))


def _text(value: str | int | float | bool | tuple[str, ...]) -> str:
    if isinstance(value, tuple):
        shown = ", ".join(_text(each) for each in value[:_LIST_LIMIT])
        return shown if len(value) <= _LIST_LIMIT else f"{shown} and {len(value) - _LIST_LIMIT} more"
    if isinstance(value, float):
        return f"{value:.4g}"
    # NOTE: tables and terminals show messages, and text from a model may hold anything: it becomes one line without control characters.
    text = shortened(str(value), _ARGUMENT_LIMIT)
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _written_docstring(rule: type[Rule]) -> str:
    """The docstring of a rule in its source file: `python -OO` loads none. Empty if there is no source."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(rule))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return ""
    return ast.get_docstring(definition) or "" if isinstance(definition, ast.ClassDef) else ""
