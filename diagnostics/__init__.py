"""Rules, findings, the context that collects them, the sinks that write them, and the gate. Knows neither torch nor ONNX.

Other rooms import from here, and the sinks `html`, `job_summary`, `markdown` and `sarif` as modules. Their libraries load only when they
are needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from . import in_notebooks as in_notebooks
from .atomic_files import Prepared, check_regular, replace_file, sync_folder, write_file
from .code_flow import GRAPHS, GraphText, Step, graphs_folder
from .context import DiagnosticContext, Evidence, StageFailed
from .diagnostic import Diagnostic, Suppression
from .differences import Difference, differences_text
from .display import (
    Span,
    describe,
    described_error,
    excerpt,
    is_page,
    is_unicode,
    message_of,
    shown_path,
    type_name,
    visible,
    visible_lines,
)
from .errors import Interruption, InvalidArgument, OnnxExporterError, RaisedByModel, UnreadableLog, attribute, chain, interruption
from .export_errors import ExportFailed, LogNotSaved
from .file_hash import sha256
from .fingerprint import stable_arguments
from .fix import Confidence, Edit, Fix
from .graph import LEFT_OUT, Graph, Node
from .json_values import integer, string
from .level import Level
from .location import Location, Region
from .log import (
    ATTACHMENTS,
    CHART,
    DIFFERENCES,
    MEMORY,
    PICTURE,
    PREPARED_GRAPH,
    PROFILE,
    REPRO,
    URI,
    Artifact,
    Attachment,
    Event,
    Log,
    Stage,
    Tool,
)
from .options import SARIF_PROFILES, DiagnosticOptions, SarifProfile
from .own_process import Forked, OwnProcess
from .rule import CHAPTERS, Page, Recorded, Rule
from .rule_history import Added, ArgumentsChanged, Deprecated, HistoryEvent, LevelChanged, MeaningChanged, Renamed, Retired, State
from .source_text import line_text
from .temporary_files import Temporary, make_folder, remove_abandoned

if TYPE_CHECKING:
    from .console import make_console, show_lines, show_log
    from .fleet import gather, shared_cause
    from .gate import GATE_FORMATS, Verdict, accept_findings, judge_logs
    from .html import to_html
    from .log_reader import read_log, read_logs
    from .privacy import privacy_of, whole_words
    from .sarif_file import opened_sarif, present_results
    from .source_tree import SourceTree, Unreachable

__all__ = [
    "ATTACHMENTS",
    "CHAPTERS",
    "CHART",
    "DIFFERENCES",
    "GATE_FORMATS",
    "GRAPHS",
    "LEFT_OUT",
    "MEMORY",
    "PICTURE",
    "PREPARED_GRAPH",
    "PROFILE",
    "REPRO",
    "SARIF_PROFILES",
    "URI",
    "Added",
    "ArgumentsChanged",
    "Artifact",
    "Attachment",
    "Confidence",
    "Deprecated",
    "Diagnostic",
    "DiagnosticContext",
    "DiagnosticOptions",
    "Difference",
    "Edit",
    "Event",
    "Evidence",
    "ExportFailed",
    "Fix",
    "Forked",
    "Graph",
    "GraphText",
    "HistoryEvent",
    "Interruption",
    "InvalidArgument",
    "Level",
    "LevelChanged",
    "Location",
    "Log",
    "LogNotSaved",
    "MeaningChanged",
    "Node",
    "OnnxExporterError",
    "OwnProcess",
    "Page",
    "Prepared",
    "RaisedByModel",
    "Recorded",
    "Region",
    "Renamed",
    "Retired",
    "Rule",
    "SarifProfile",
    "SourceTree",
    "Span",
    "Stage",
    "StageFailed",
    "State",
    "Step",
    "Suppression",
    "Temporary",
    "Tool",
    "Unreachable",
    "UnreadableLog",
    "Verdict",
    "accept_findings",
    "attribute",
    "chain",
    "check_regular",
    "describe",
    "described_error",
    "differences_text",
    "excerpt",
    "gather",
    "graphs_folder",
    "integer",
    "interruption",
    "is_page",
    "is_unicode",
    "judge_logs",
    "line_text",
    "make_console",
    "make_folder",
    "message_of",
    "opened_sarif",
    "present_results",
    "privacy_of",
    "read_log",
    "read_logs",
    "remove_abandoned",
    "replace_file",
    "sha256",
    "shared_cause",
    "show_lines",
    "show_log",
    "shown_path",
    "stable_arguments",
    "string",
    "sync_folder",
    "to_html",
    "type_name",
    "visible",
    "visible_lines",
    "whole_words",
    "write_file",
]

_LATE = {
    "GATE_FORMATS": "gate",
    "SourceTree": "source_tree",
    "Unreachable": "source_tree",
    "Verdict": "gate",
    "accept_findings": "gate",
    "gather": "fleet",
    "judge_logs": "gate",
    "make_console": "console",
    "opened_sarif": "sarif_file",
    "present_results": "sarif_file",
    "privacy_of": "privacy",
    "read_log": "log_reader",
    "read_logs": "log_reader",
    "shared_cause": "fleet",
    "show_lines": "console",
    "show_log": "console",
    "to_html": "html",
    "whole_words": "privacy",
}
"""Names for reading and showing logs, with their modules. These import at first use: they take 0.1 s, which exports save."""

# NOTE: type checkers would take every name for one that a module-level __getattr__ resolves.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _LATE:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f".{_LATE[name]}", __name__), name)
        globals()[name] = value
        return value
