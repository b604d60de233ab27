"""Rules, findings, the context that collects them, and the sinks that write them. Knows neither torch nor ONNX."""

from .context import DiagnosticContext, Evidence, Reported
from .errors import InvalidArgument, OnnxExporterError
from .failure import ExportFailed, LogNotSaved, UnreadableLog
from .finding import Diagnostic, Suppression
from .fix import Confidence, Edit, Fix
from .graph import Graph, Node
from .history import Added, ArgumentsChanged, Deprecated, LevelChanged, MeaningChanged, Renamed, Retired
from .level import Level
from .location import Location, Region
from .log import Artifact, Attachment, Event, Log, Stage, Tool
from .options import DiagnosticOptions
from .rule import CHAPTERS, Page, Recorded, Rule

__all__ = [
    "CHAPTERS",
    "Added",
    "ArgumentsChanged",
    "Artifact",
    "Attachment",
    "Confidence",
    "Deprecated",
    "Diagnostic",
    "DiagnosticContext",
    "DiagnosticOptions",
    "Edit",
    "Event",
    "Evidence",
    "ExportFailed",
    "Fix",
    "Graph",
    "InvalidArgument",
    "Level",
    "LevelChanged",
    "Location",
    "Log",
    "LogNotSaved",
    "MeaningChanged",
    "Node",
    "OnnxExporterError",
    "Page",
    "Recorded",
    "Region",
    "Renamed",
    "Reported",
    "Retired",
    "Rule",
    "Stage",
    "Suppression",
    "Tool",
    "UnreadableLog",
]
