"""The base class of rules: refused definitions, histories, and arguments as text."""

from __future__ import annotations

import re
import types
from typing import Any

import pytest
from rule_classes import PAGE, make

from onnxplain.diagnostics import (
    Added,
    ArgumentsChanged,
    Deprecated,
    Level,
    LevelChanged,
    MeaningChanged,
    Page,
    Recorded,
    Renamed,
    Retired,
    Rule,
    State,
)
from onnxplain.rules import TrainingMode

HISTORY = (
    Added("1.0"),
    LevelChanged("1.1", Level.WARNING, Level.ERROR),
    ArgumentsChanged("1.2", ("item",), ("thing",)),
    MeaningChanged("1.3", "it finds more"),
    Renamed("1.10", "Strange", "Odd"),
    Deprecated("1.11", "OXP7902"),
    Retired("2.0"),
)


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("version", "state"),
    [
        ("0.9", None),
        ("1.0", State("Strange", Level.WARNING, ("item",), 1)),
        ("1.1", State("Strange", Level.ERROR, ("item",), 1)),
        ("1.2", State("Strange", Level.ERROR, ("thing",), 2)),
        ("1.3", State("Strange", Level.ERROR, ("thing",), 3)),
        ("1.9", State("Strange", Level.ERROR, ("thing",), 3)),
        ("1.10", State("Odd", Level.ERROR, ("thing",), 3)),
        ("1.11", State("Odd", Level.ERROR, ("thing",), 3)),
        ("2.0", State("Odd", Level.ERROR, ("thing",), 3)),
    ],
)
def test_history_replays_to_any_version(version: str, state: State | None) -> None:
    assert make(history=HISTORY).state_at(version) == state


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"id": "ABC7001"}, "must be OXP and four digits"),
        ({"id": "OXP9001"}, "must be OXP and four digits"),
        ({"id": "OXP79011"}, "must be OXP and four digits"),
        ({"id": TrainingMode.id}, f"taken by {TrainingMode.__name__}"),
        ({"message": "The '{thing}' and the '{other}' are odd."}, "other"),
        ({"message": "The '{thing.name}' is odd."}, "thing.name"),
        ({"message": "The '{}' is odd."}, "are not fields"),
        ({"message": "The '{thing' is odd."}, "OXP7901"),
        ({"message": "The '{thing}' is odd"}, "period"),
        ({"volatile": ("other",)}, "volatile names ['other']"),
        ({"volatile": "thing"}, "volatile names"),
        ({"doc": ""}, "needs the sections"),
        ({"doc": PAGE.replace("Why it matters:", "")}, "needs the sections"),
        ({"doc": PAGE.replace("What happened", "Why").replace("Why it matters", "What happened")}, "needs the sections"),
        ({"doc": PAGE.replace("```python\n    x = 2\n    ```", "")}, "two ```python blocks, it has 1"),
        ({"doc": PAGE.replace("x = 2", "x = = 2")}, "invalid syntax"),
        ({"fields": {"thing": list[str]}}, "field thing has type"),
        ({"fields": {"thing": dict}}, "field thing has type"),
        ({"history": []}, "must begin with Added"),
        ({"history": [LevelChanged("1.0", Level.WARNING, Level.ERROR)]}, "must begin with Added"),
        ({"history": [Added("1.0"), Added("1.1")]}, "only the first event"),
        ({"history": [Added("1.0"), Retired("1.1"), Deprecated("1.2", "OXP7902")]}, "only the last event"),
        ({"history": [Added("1.1"), Deprecated("1.0", "OXP7902")]}, "order of their versions"),
        ({"history": [Added("one")]}, "one"),
        ({"history": [Added("1.0"), LevelChanged("1.1", Level.ERROR, Level.WARNING)]}, "leads to level"),
        ({"history": [Added("1.0"), ArgumentsChanged("1.1", (), ("item",))]}, "leads to arguments"),
        ({"history": [Added("1.0"), Renamed("1.1", "Odd", "Even")]}, "leads to name"),
    ],
)
def test_bad_rule_is_refused(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError, match=re.escape(reason)):
        make(**change)
    assert Rule.find("OXP7901") is None


def test_a_class_statement_with_an_unknown_keyword_is_refused() -> None:
    given: dict[str, Any] = {"id": "OXP7901", "level": Level.ERROR, "history": [Added("1.0")], "colour": "red"}
    with pytest.raises(TypeError):
        types.new_class("Odd", (Rule,), given, lambda namespace: namespace.update({"__doc__": PAGE, "message": "It is odd."}))
    assert Rule.find("OXP7901") is None


@pytest.mark.usefixtures("scratch")
def test_finding_without_an_argument_is_refused() -> None:
    rule: Any = make()
    assert str(rule(thing="x")) == "The 'x' is odd."
    with pytest.raises(TypeError, match="thing"):
        rule()


@pytest.mark.usefixtures("scratch")
@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int, 3, "3"),
        (float, 0.5, "0.5"),
        (str, "two\n  lines", "two lines"),
        (tuple[str, ...], ("a", "b"), "a, b"),
        (tuple[str, ...], tuple("abcdefg"), "a, b, c, d, e and 2 more"),
    ],
)
def test_argument_as_text(kind: object, value: object, text: str) -> None:
    rule: Any = make(fields={"thing": kind})
    assert rule(thing=value).argument_texts() == (text,)


@pytest.mark.usefixtures("scratch")
def test_what_a_rule_tells_of_itself() -> None:
    rule: Any = make(
        message="The '{thing}' is '{size}', not '{thing}'.",
        fields={"size": float, "thing": str, "unused": int},
        volatile=("size",),
        history=[Added("1.0"), MeaningChanged("1.1", "more"), ArgumentsChanged("1.2", (), ("size", "thing", "unused"))],
    )
    assert (rule.title(), rule.chapter(), rule.revision()) == ("Odd", "memory", 3)
    assert (rule.fields(), rule.arguments()) == (("size", "thing", "unused"), ("thing", "size"))
    assert rule.numbered_message() == "The '{0}' is '{1}', not '{0}'."
    made = rule(size=1 / 3, thing="a", unused=1)
    assert made.argument_texts() == ("a", "0.3333")
    assert made.identity() == ("a",)
    assert str(made) == "The 'a' is '0.3333', not 'a'."
    assert next(each.id for each in Rule.all() if each.id >= "OXP7901") == "OXP7901"
    assert [each.id for each in Rule.all()] == sorted(each.id for each in Rule.all())


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("The '{0}' and the '{1}'.", "The 'a' and the 'b'."),
        ("The '{1}', the '{0}' and the '{2}'.", "The 'b', the 'a' and the '{2}'."),
        ("The '{0000}'.", "The '{0000}'."),
    ],
)
def test_the_message_of_a_recorded_rule(template: str, text: str) -> None:
    assert str(Recorded("OXP7901", "Odd", template, ("one", "other"), ("a", "b"))) == text


@pytest.mark.parametrize(
    ("fix", "first"),
    [
        ("Do it\n    now.", "Do it now."),
        ("1. Do it\n       now.\n    2. Or that.", "Do it now."),
        ("Either:\n\n    1. This.\n    2. That.", "This."),
    ],
)
def test_the_first_way_to_fix(fix: str, first: str) -> None:
    page = Page.parse(PAGE.replace("Fix it.", fix))
    assert page.first_way == first
    assert (page.failing, page.clean, page.remark) == ("x = 1  # OXP7901\n", "x = 2\n", "")


def test_the_parts_of_a_page_are_in_order() -> None:
    page = Page.parse(PAGE.replace("Example:\n", "Example:\n    Beware.\n\n"))
    assert page.remark == "Beware."
    parts = [page.summary, page.what, page.why, page.fix, page.remark, page.failing, page.clean]
    at = [page.markdown.index(part) for part in parts]
    assert at == sorted(at)
