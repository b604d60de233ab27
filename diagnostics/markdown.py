"""The log as a markdown report for GitHub: in an issue, a comment or a job summary."""

from __future__ import annotations

import dataclasses
import functools
import importlib.resources
import math
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import jinja2

from .atomic_files import replace_file
from .diagnostic import Diagnostic
from .differences import FLOOR, Difference, curve, differences_of, height, layers
from .disclosed import EVENT_LIMIT, Discloser
from .display import cause_and_hints, describe, shortened, shown_path, underlined, visible
from .fix import Edit
from .graph import LEFT_OUT, Graph, Node
from .level import Level
from .location import Location
from .log import CHART, DIFFERENCES, MEMORY, PROFILE, Event, Log
from .rule import Recorded, Rule

_LIMIT = 65_000
"""Size of a report in UTF-16 code units. A comment on GitHub holds 65,536 characters, however it counts them."""
_TABLE_ROOM = 5_000
_SUPPRESSED_ROOM = 5_000
_BRIEF_ROOM = 5_000
"""Room for the rows of a table, for suppressed findings, and the least room for findings with one line each."""
BLOCK_LIMIT = 8_000
_PROSE_LIMIT = 2_000
_CODE_LIMIT = 500
_CELL_LIMIT = 200
_LABEL_LIMIT = 60
"""Characters of a code block, a sentence, inline code, a table cell and a line of a picture's node."""
SHORTEST = 0.0005
"""The seconds that a stage has to take for a row in the table of times, unless it failed."""
_PLACE_LIMIT = 10
_CELL_PLACE_LIMIT = 5
_ID_LIMIT = 50

_TEXTS = {MEMORY: "Memory of the exported model", PROFILE: "Profile"}
"""The attachments that a report shows, with their titles."""

_ARGUMENT = re.compile(r"('\{\d+\}'|\{\d+\})")
_LIVE = r"""
    (?: [a-z][a-z0-9+.-]{0,20}:// | www\. | [\w.+/-]{0,60}@(?=[\w-]) ) [^\s`]*  # an address, a mention, user@commit
    | [\w./-]{0,60}\#(?=\d) \w*  # the number of an issue
    | gh-\d+
    | (?<![0-9a-z]) [0-9a-f]{7,40} (?![0-9a-z])  # a commit
"""
"""What GitHub turns into a link, even behind a backslash, unless it is code."""
_CODE = re.compile(rf"(?<!`)(`[^`]+`)(?!`) | ({_LIVE})", re.IGNORECASE | re.VERBOSE)
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&#]|(?<!\w)_|_(?!\w)")
_BACKTICKS = re.compile(r"`+")
_BAR = re.compile(r"(?<!\\)\|")
_NO_LABEL = re.compile(r"[^A-Za-z0-9_ .,()\[\]=]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")


class Markdown(str):
    """Text that is already markdown. The template escapes all other text."""

    __slots__ = ()


def to_markdown(log: Log) -> str:
    """The report on `log`, short enough for a comment on GitHub. It counts what it omits."""
    macros: Any = template("findings").module
    discloser = Discloser(log.folder)
    public, log = discloser.finding, discloser.log(log)
    active = log.active
    suppressed = [finding for finding in log.findings if finding.suppression is not None and not finding.blocking]
    frame = functools.partial(
        template("report").render,
        log=log,
        active=active,
        ids=_ids(active),
        verdict=log.verdict,
        summary=log.summary,
        tables=list(_tables(active, public)),
        suppressed=suppressed,
        accepted=fitting(map(macros.brief, map(public, suppressed)), _SUPPRESSED_ROOM),
        texts=_TEXTS,
        charts=[each.text for each in log.attachments if each.name == CHART],
        differences=differences_of(next((each.text for each in log.attachments if each.name == DIFFERENCES), "")),
    )
    room = _LIMIT - size(frame(sections=[], brief=[]))
    sections = list(_sections(map(public, active), macros.section, room - _BRIEF_ROOM))
    rest = map(public, active[len(sections) :])
    return frame(sections=sections, brief=fitting(map(macros.brief, rest), room - sum(map(size, sections))))


def finding_text(finding: Diagnostic) -> str:
    """A section on one finding, with no more of the machine than a report tells."""
    macros: Any = template("findings").module
    return str(macros.section(Discloser(None).finding(finding), folded=True, open=True)).strip() + "\n"


def _ids(findings: Sequence[Diagnostic]) -> str:
    """The ids of the rules of `findings`, in order, as many as a log of ours may have."""
    return " ".join(sorted({finding.rule.id for finding in findings})[:_ID_LIMIT])


def _sections(findings: Iterable[Diagnostic], section: Callable[..., str], room: int) -> Iterator[Markdown]:
    """The sections for the first findings, as many as fit into `room`. A section loses its folded parts if it does not fit with them."""
    for index, finding in enumerate(findings):
        forms = (section(finding, folded=folded, open=index == 0) for folded in (True, False))
        fitting = next((form for form in forms if size(form) <= room), None)
        if fitting is None:
            return
        room -= size(fitting)
        yield Markdown(fitting)


def fitting(texts: Iterable[str], room: int) -> list[Markdown]:
    """The first of `texts`, as many as fit into `room`."""
    found: list[Markdown] = []
    for text in texts:
        room -= size(text)
        if room < 0:
            break
        found.append(Markdown(text))
    return found


def size(text: str) -> int:
    """The size of `text` in UTF-16 code units."""
    return len(text.encode("utf-16-le", "replace")) // 2


@dataclasses.dataclass(frozen=True)
class Table:
    """The findings of one rule, one row each: arguments, number, places, one-line notes."""

    rule: Rule | Recorded
    head: Markdown
    rows: Sequence[Markdown]
    left_out: int


def _tables(active: Sequence[Diagnostic], public: Callable[[Diagnostic], Diagnostic]) -> Iterator[Table]:
    """A table for each rule whose findings fold across places, such as operators."""
    by_rule: dict[str, list[Diagnostic]] = {}
    for finding in active:
        if finding.rule.everywhere:
            by_rule.setdefault(finding.rule.id, []).append(finding)
    for _, findings in sorted(by_rule.items()):
        rule = findings[0].rule
        remarks = any(map(_remarks, findings))
        columns = [*(cell(name.capitalize(), prose) for name in rule.arguments()), "Times", "Places", *(["Remarks"] if remarks else [])]
        head = Markdown(f"{cells(columns)}\n|{'---|' * len(columns)}")
        rows = fitting((_row(public(finding), remarks=remarks) for finding in findings), _TABLE_ROOM)
        yield Table(rule, head, rows, len(findings) - len(rows))


def _row(finding: Diagnostic, *, remarks: bool) -> str:
    places = [cell(_line(place)) for place in finding.occurrences[:_CELL_PLACE_LIMIT]]
    if (left_out := len(finding.occurrences) - len(places)) > 0:
        places.append(Markdown(f"{left_out} more"))
    row = [*map(cell, finding.rule.argument_texts()), str(finding.count), ", ".join(places)]
    if remarks:
        row.append(cell(_remarks(finding), prose))
    return cells(row)


def _remarks(finding: Diagnostic) -> str:
    return " ".join(note for note in finding.notes if "\n" not in note)


def cells(row: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(row)} |"


def _line(place: Location) -> str:
    return f"{shown_path(place.file)}:{place.line}" if place.file and place.line else describe(place)


def write(log: Log, path: pathlib.Path) -> None:
    """Writes the report on `log` to `path`, whole or not at all. Makes the folders above it.

    Raises:
        OSError: The file cannot be written; an earlier report is unharmed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, to_markdown(log).encode())


@functools.cache
def template(name: str) -> jinja2.Template:
    """The template `name`, which escapes all text that is not markdown."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markdown) else prose(str(value)),
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    filters = (causes, chart, code, fence, times, shown, layer_rows, message, place, diff, excerpt, stack, steps, setting, mermaid)
    environment.filters.update({function.__name__: function for function in filters})
    environment.globals["place_limit"] = _PLACE_LIMIT
    return environment.from_string(importlib.resources.files(__package__).joinpath(f"{name}.md.j2").read_text(encoding="utf-8"))


def prose(text: str) -> Markdown:
    """`text` as a part of a paragraph.

    Pairs of backticks stay code, as in the sentences of rules. What GitHub would turn into a link becomes code. The rest is escaped.
    """
    text, parts, end = visible(shortened(text, _PROSE_LIMIT)), list[str](), 0
    for found in _CODE.finditer(text):
        parts += [_SPECIAL.sub(r"\\\g<0>", text[end : found.start()]), found[1] or code(found[0])]
        end = found.end()
    return _joined([*parts, _SPECIAL.sub(r"\\\g<0>", text[end:])])


def code(text: str) -> Markdown:
    """`text` as inline code."""
    if not text:
        return prose("''")
    text = visible(shortened(text, _CODE_LIMIT))
    ticks = "`" * (_longest_run(text) + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return Markdown(f"{ticks}{padding}{text}{padding}{ticks}")


def _joined(parts: Iterable[str]) -> Markdown:
    """The text of `parts`. A space keeps pieces of code apart: without it, the backticks of neighbours would form other pairs."""
    joined = ""
    for part in filter(None, parts):
        joined += f" {part}" if joined.endswith("`") and part.startswith("`") else part
    return Markdown(joined)


def cell(text: str, how: Callable[[str], Markdown] = code) -> Markdown:
    """`text`, formatted by `how`, as the cell of a table, which a bar would end even within code."""
    formatted = how(shortened(text, _CELL_LIMIT)) if text else ""
    return Markdown(_BAR.sub(r"\\|", formatted))


def fence(text: str, language: str = "text") -> Markdown:
    """`text` as a code block. A long text loses its middle."""
    text = shortened(text, BLOCK_LIMIT)
    ticks = "`" * max(3, _longest_run(text) + 1)
    return Markdown("\n".join([f"{ticks}{language}", *(visible(line) for line in text.splitlines()), ticks]))


def _longest_run(text: str) -> int:
    return max((len(run) for run in _BACKTICKS.findall(text)), default=0)


def shown(path: pathlib.Path | str) -> str:
    """`path`, relative to the current folder if it lies below that folder."""
    return shown_path(str(path))


def message(rule: Rule | Recorded) -> Markdown:
    """The message of `rule`, with its quoted arguments as code."""
    values = rule.argument_texts()
    pieces, parts = _ARGUMENT.split(rule.numbered_message()), [""]
    for index, piece in enumerate(pieces):
        number = int(piece.strip("'{}")) if index % 2 else len(values)
        if number < len(values) and piece.startswith("'"):
            parts += [code(values[number]), ""]
        else:
            # NOTE: only together may two pieces form a link.
            parts[-1] += values[number] if number < len(values) else piece
    return _joined(part if isinstance(part, Markdown) else prose(part) for part in parts)


def place(place: Location) -> Markdown:
    """`place`, and how it relates to the finding."""
    return Markdown(f"{prose(place.message)}: {code(describe(place))}") if place.message else code(describe(place))


def diff(edit: Edit) -> str:
    """`edit` as the lines of a diff."""
    before, after = edit.lines()
    return "\n".join([*(f"-{line}" for line in before), *(f"+{line}" for line in after)])


def excerpt(place: Location) -> str:
    """The source line of `place`, underlined; empty if the source is not available."""
    text, underline = underlined(place)
    number = str(place.line)
    return f"{number} | {text}\n{' ' * len(number)} | {underline}" if text else ""


def stack(frames: Sequence[Location]) -> str:
    """`frames` and their source lines, as in a Python traceback."""
    return "\n".join(f"{describe(frame)}\n    {frame.snippet}".rstrip() for frame in frames)


def causes(text: str) -> list[tuple[str, str]]:
    """The text of an exception, and torch's hints in it, each with the title of its fold."""
    return [(title, part) for title, part in zip(("Cause", "Hints for debugging torch"), cause_and_hints(text), strict=True) if part]


def times(log: Log) -> list[tuple[str, str, str, str]]:
    """The stages of `log` that took a millisecond, the rest and the whole: name, seconds, share of the whole, remark."""
    whole = (log.ended - log.started).total_seconds()
    rows = [(stage.name, stage.seconds, "" if stage.completed else "failed") for stage in log.stages]
    rows += [("rest", max(0.0, whole - sum(stage.seconds for stage in log.stages)), ""), ("whole", whole, "")]
    return [
        (name, f"{seconds:.3f}" if seconds >= SHORTEST else "under 0.001", f"{seconds / whole if whole else 0:.0%}", remark)
        for name, seconds, remark in rows
        if seconds >= SHORTEST or remark
    ]


def steps(events: Sequence[Event]) -> str:
    """The last events, one line each."""
    told = [f"{event.stage or 'export'}: {event.text}" for event in events[-EVENT_LIMIT:]]
    left_out = len(events) - len(told)
    return "\n".join([f"[{left_out} earlier steps are omitted here]", *told] if left_out else told)


def setting(log: Log) -> str:
    """The versions and options that the export depended on, one line each."""
    versions = [f"{name} {version}" for name, version in {log.tool.name: log.tool.version, **dict(log.environment)}.items()]
    options = [f"{name}={_option(value)}" for name, value in log.options.changed().items()]
    return "\n".join([*versions, *options])


def _option(value: int | bool | Mapping[str, Level] | tuple[str, ...]) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{rule}:{level.value}" for rule, level in value.items())
    return ",".join(value) if isinstance(value, tuple) else str(value)


def mermaid(graph: Graph) -> str:
    """`graph` as a mermaid flowchart, from top to bottom."""
    # NOTE: generated names, because mermaid's grammar stumbles over some ids, such as `end`.
    names = {node.id: f"n{number}" for number, node in enumerate(graph.nodes)}
    return "\n".join(
        [
            "flowchart TD",
            *(f'    {names[node.id]}["{_label(node)}"]{":::blamed" if node.id == graph.blamed else ""}' for node in graph.nodes),
            *(f"    {names[source]} --> {names[target]}" for source, target in graph.edges if source in names and target in names),
            "    classDef blamed fill:#ffebe9,stroke:#cf222e,stroke-width:3px,color:#1f2328",
        ]
    )


def chart(rows: Sequence[Difference]) -> str:
    """How far the exported model is from PyTorch behind each operator, beside the tolerance, as a mermaid chart of logarithms."""
    # NOTE: GitHub drops SVG elements from markdown. The chart contains nothing but numbers.
    points = curve(rows)
    lines = ([height(each.difference, rows) for each in points], [height(each.tolerance, rows) for each in points])
    top = math.ceil(max([0.0, *lines[0], *lines[1]]))
    return "\n".join(
        [
            "xychart-beta",
            f'    x-axis "operators, in the order of execution" 1 --> {max(2, len(rows))}',
            f'    y-axis "difference and tolerance, powers of 10" {math.floor(math.log10(FLOOR))} --> {top}',
            *(f"    line [{', '.join(f'{each:.2f}' for each in line)}]" for line in lines),
        ]
    )


def layer_rows(rows: Sequence[Difference]) -> list[Markdown]:
    """The rows of the table of layers."""
    return [
        Markdown(
            cells(
                [
                    cell(each.module or "outside of modules", code if each.module else prose),
                    str(each.operators),
                    f"{each.difference:.3g}",
                    f"{each.own:.3g}",
                    f"{each.tolerance:.3g}",
                    ", ".join(map(cell, each.rules)),
                ]
            )
        )
        for each in layers(rows)
    ]


def _label(node: Node) -> str:
    """The lines of `node`. Characters with a meaning in mermaid, markdown or HTML become mermaid's `#number;`."""
    return "<br>".join(_NO_LABEL.sub(lambda found: f"#{ord(found[0])};", visible(text)) for text in node_texts(node))


def node_texts(node: Node) -> list[str]:
    """The lines of `node` in a picture."""
    texts = [text for text in (node.label, node.id, node.value) if text] if node.label != LEFT_OUT else [LEFT_OUT]
    return [shortened(text, _LABEL_LIMIT) for text in texts]
