"""Findings as SARIF's results: message, places, code flow, fixes, fingerprints."""

from __future__ import annotations

import collections
import dataclasses
import pathlib
from collections.abc import Iterator, Mapping, Sequence

import sarif_om

from onnxplain.diagnostics import fingerprint
from onnxplain.diagnostics.code_flow import GraphText, Step
from onnxplain.diagnostics.diagnostic import Diagnostic
from onnxplain.diagnostics.display import shortened
from onnxplain.diagnostics.fix import Edit, Fix
from onnxplain.diagnostics.graph import Graph
from onnxplain.diagnostics.location import Location, Region
from onnxplain.diagnostics.rule import Rule
from onnxplain.diagnostics.sarif_file import SAME, UNLINKED

from .descriptors import some
from .places import SNIPPET_LIMIT, Sources, snippet_of

_LINK_LIMIT = 5
_PLACE_LIMIT = 100
"""Links in a message, and related places of a result. GitHub code scanning keeps as many places."""
_NAME_LIMIT = 1_000
"""Characters of the name of a module or a function."""


class Results:
    """Makes the results of one log.

    Args:
        subject: Name of the model.
        sources: The files of the log.
        graphs: The graphs in files beside the log: name to file and text.
        github: Omits what GitHub code scanning refuses or shows wrongly.
    """

    def __init__(self, subject: str, sources: Sources, graphs: Mapping[str, tuple[pathlib.Path, GraphText]], *, github: bool) -> None:
        self._subject = subject
        self._sources = sources
        self._graphs = graphs
        self._github = github
        self._seen: collections.Counter[str] = collections.Counter()
        self.messages: dict[type[Rule], dict[str, str]] = {}
        """The message templates that the results refer to, by rule and id."""
        self.modules: dict[str, int] = {"": 0}
        """Path of a submodule to the index of its logical location in the run. Every module comes after the one around it."""

    def fingerprint(self, finding: Diagnostic) -> str:
        """Our fingerprint, with a counter for equal ones: ask for each finding once, in order."""
        rule, place = rule_of(finding), finding.location or Location("")
        source = self._sources[place.file] if place.file else None
        digest = fingerprint.of_finding(rule, source.name if source else "", place)
        self._seen[digest] += 1
        return f"{digest}:{self._seen[digest]}"

    def result(self, finding: Diagnostic, place: Location | None, own: str) -> sarif_om.Result:
        """The result for `finding` at `place`, with the fingerprint `own`. The caller sets the index of its rule."""
        occurrences = finding.count if finding.count > 1 else None
        edits = {fix: edit for fix in finding.fixes if (edit := self._fix(fix))}
        related = self._related(finding, place)
        line_hash = self._sources[place.file].hash_of(place.line) if place and place.file and place.line else None
        return sarif_om.Result(
            rule_id=finding.rule.id,
            level=finding.level.value,
            message=self._message(finding, related),
            guid=fingerprint.guid(self._subject, own),
            locations=[self._location(place, message=place.message, context=True)] if place and label(place) else None,
            related_locations=[self._location(each, id=id, message=label(each)) for id, each in enumerate(related, 1)] or None,
            graphs=[_graph(finding.graph)] if finding.graph and not self._github else None,
            code_flows=self._code_flows(finding, place),
            stacks=None if self._github else self._stacks(finding),
            fixes=list(edits.values()) or None,
            occurrence_count=occurrences,
            partial_fingerprints={**({"primaryLocationLineHash": line_hash} if line_hash else {}), fingerprint.NAME: own},
            suppressions=list(self._suppressions(finding)),
            properties=some(
                {
                    "stage": finding.stage,
                    "blocking": finding.blocking,
                    "occurrences": occurrences,
                    "notes": list(finding.notes),
                    "cause": finding.cause,
                    "fixes": [
                        some(
                            {
                                "description": fix.description,
                                "confidence": fix.confidence.value,
                                "snippet": fix.snippet,
                                "edits": list(edits).index(fix) if fix in edits else None,
                            }
                        )
                        for fix in finding.fixes
                    ],
                }
            ),
        )

    def stack(self, frames: Sequence[Location]) -> sarif_om.Stack | None:
        """A Python stack, whose `frames` come outermost first; None if nothing is known about any frame."""
        shown = [sarif_om.StackFrame(location=self._location(frame, message=frame.message)) for frame in reversed(frames) if label(frame)]
        if not shown:
            return None
        # NOTE: VS Code drops a stack without a message.
        return sarif_om.Stack(message=sarif_om.Message(text="The Python stack, innermost call first."), frames=shown)

    def _message(self, finding: Diagnostic, related: Sequence[Location]) -> sarif_om.Message:
        """The rule's message, the number of occurrences, and links to related places, which VS Code shows nowhere else.

        Viewers render the template if there is one, and the multitool wants every argument in quotes. So the numbers are part of the
        template and of its id.
        """
        rule = rule_of(finding)
        id, template = "default", rule.numbered_message()
        arguments = [text.replace("](", UNLINKED) for text in rule.argument_texts()]
        if finding.count > 1:
            id, template = f"{id}-found-{finding.count}", f"{template} Found {finding.count:,} times."
        places = [(number, place) for number, place in enumerate(related, 1) if place.file]
        if places:
            shown = places[:_LINK_LIMIT]
            links = ", ".join(f"['{{{len(arguments) + each}}}']({number})" for each, (number, _) in enumerate(shown))
            more = f" and {len(places) - len(shown)} more" if len(places) > len(shown) else ""
            id, template = f"{id}-see-{'-'.join(str(number) for number, _ in shown)}-of-{len(places)}", f"{template} See {links}{more}."
            arguments += [self._link_text(place) for _, place in shown]
        self.messages.setdefault(type(rule), {"default": rule.numbered_message()})[id] = template
        return sarif_om.Message(text=template.format(*arguments), id=id, arguments=arguments or None)

    @staticmethod
    def _link_text(place: Location) -> str:
        where = pathlib.PurePath(place.file).name + (f":{place.line}" if place.line else "")
        more = place.module if place.message == SAME else place.message.rstrip(".")
        text = f"{where} ({more})" if more else where
        # NOTE: a bracket would end the link, and readers know no escape.
        return "".join(char if char.isprintable() else " " for char in text).translate({ord("["): "(", ord("]"): ")"})

    def _related(self, finding: Diagnostic, shown: Location | None) -> list[Location]:
        others = [place.saying(SAME) for place in dict.fromkeys(finding.occurrences) if place not in (finding.location, shown)]
        own = [finding.location] if finding.location not in (None, shown) else []
        told = [*filter(None, own), *others, *filter(label, finding.related)]
        return [place for place in told if not self._github or self._sources.has(place)][:_PLACE_LIMIT]

    def _code_flows(self, finding: Diagnostic, place: Location | None) -> list[sarif_om.CodeFlow] | None:
        steps = [step for step in map(self._step, finding.code_flow) if step is not None]
        if not steps or place is None:
            return None
        if self._github:
            # NOTE: no repository contains the graphs, so their steps become one step at the source line. The calls replace the stack.
            calls = [frame for frame in finding.stack if self._sources.has(frame) and frame.line != place.line]
            steps = [*((f"in {frame.function}", frame) for frame in calls), ("; ".join(message for message, _ in steps), None)]
        # NOTE: VS Code shows the first thread flow of the first code flow, and steps of level 0 outside its panel.
        locations = [
            sarif_om.ThreadFlowLocation(location=self._location(there or place, message=message), nesting_level=1)
            for message, there in steps
        ]
        return [sarif_om.CodeFlow(thread_flows=[sarif_om.ThreadFlow(locations=locations)])]

    def _step(self, step: Step) -> tuple[str, Location | None] | None:
        """The message of a step and its place in the text of a graph; None if the step relies on a text that lacks its node."""
        file, text = self._graphs.get(step.graph, (None, None))
        line, what = text.nodes.get(step.node, (0, "")) if text else (0, "")
        if not (step.message or what):
            return None
        return step.message or what, Location(str(file), Region(line)) if line else None

    def _stacks(self, finding: Diagnostic) -> list[sarif_om.Stack] | None:
        stack = self.stack(finding.stack)
        return [stack] if stack else None

    def _suppressions(self, finding: Diagnostic) -> Iterator[sarif_om.Suppression]:
        # NOTE: no comment can suppress a finding that stopped the export: a reader that hides it would show a failure without a cause.
        if finding.suppression and not finding.blocking:
            yield sarif_om.Suppression(
                kind="inSource",
                state="accepted",
                justification=finding.suppression.justification or None,
                location=self._location(finding.suppression.comment),
            )

    def _fix(self, fix: Fix) -> sarif_om.Fix | None:
        """The edits of `fix`; None if it has no edits, or if an edit does not fit its file."""
        changes: dict[str, list[sarif_om.Replacement]] = {}
        for edit in fix.edits:
            replacement = self._replacement(edit)
            if replacement is None:
                return None
            changes.setdefault(edit.file, []).append(replacement)
        if not changes:
            return None
        return sarif_om.Fix(
            description=sarif_om.Message(text=f"{fix.description.rstrip('.')} ({fix.confidence.value})."),
            artifact_changes=[
                sarif_om.ArtifactChange(artifact_location=self._sources[file].location, replacements=replacements)
                for file, replacements in changes.items()
            ],
            properties={"confidence": fix.confidence.value},
        )

    def _replacement(self, edit: Edit) -> sarif_om.Replacement | None:
        source = self._sources[edit.file]
        region = source.fit(edit.region)
        if region is None or (self._github and not self._sources.has(Location(edit.file, region))):
            return None
        replaced, inserted = source.text(region), edit.replacement
        indentation = replaced[: len(replaced) - len(replaced.lstrip(" \t"))]
        if inserted.startswith(indentation):
            # NOTE: VS Code moves the start of an edit past the indentation of the line, so an edit must not contain indentation that stays.
            inserted = inserted.removeprefix(indentation)
            region = dataclasses.replace(region, column=(region.column or 1) + len(indentation))
        deleted = source.region(region)
        deleted.snippet = snippet_of(source.text(region))
        # NOTE: an insertion deletes nothing, so only these lines tell its place.
        lines = "\n".join(source.lines[region.line - 1 : region.last_line])
        return sarif_om.Replacement(
            deleted_region=deleted,
            inserted_content=sarif_om.ArtifactContent(text=inserted) if inserted else None,
            properties={"lines": lines} if len(lines) <= SNIPPET_LIMIT else None,
        )

    def _location(self, place: Location, *, id: int = -1, message: str = "", context: bool = False) -> sarif_om.Location:
        logical = [
            sarif_om.LogicalLocation(fully_qualified_name=name, kind=kind, index=self._module(name) if kind == "module" else -1)
            for name, kind in ((shortened(place.module, _NAME_LIMIT), "module"), (shortened(place.function, _NAME_LIMIT), "function"))
            if name
        ]
        return sarif_om.Location(
            id=id,
            message=sarif_om.Message(text=message) if message else None,
            physical_location=self._sources[place.file].physical(place.region, context=context) if place.file else None,
            logical_locations=logical or None,
        )

    def _module(self, path: str) -> int:
        """The index of a submodule among the run's logical locations. The modules around it get theirs first."""
        if path not in self.modules:
            self._module(path.rpartition(".")[0])
            self.modules[path] = len(self.modules)
        return self.modules[path]


def rule_of(finding: Diagnostic) -> Rule:
    """The rule's instance. Raises TypeError for a finding of a restored log."""
    if not isinstance(finding.rule, Rule):
        raise TypeError("a restored log lacks fields that SARIF needs; use the file that it was read from")
    return finding.rule


def label(place: Location) -> str:
    """The most telling text about `place`; empty if nothing is known."""
    return place.message or place.snippet or place.function or place.module or place.file


def _graph(graph: Graph) -> sarif_om.Graph:
    # NOTE: no known viewer shows graphs; `onnxplain report` does.
    return sarif_om.Graph(
        description=sarif_om.Message(text=f"The graph around {graph.blamed}."),
        nodes=[
            sarif_om.Node(id=node.id, label=sarif_om.Message(text=node.label), properties=some({"value": node.value}) or None)
            for node in graph.nodes
        ],
        edges=[
            sarif_om.Edge(id=str(number), source_node_id=source, target_node_id=target)
            for number, (source, target) in enumerate(graph.edges, 1)
        ],
        properties={"blamed": graph.blamed},
    )
