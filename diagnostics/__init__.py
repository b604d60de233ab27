"""Rules, findings, the context that collects them, and the sinks that write them. Knows neither torch nor ONNX."""

from .context import DiagnosticContext, Evidence, Reported
from .errors import InvalidArgument, OnnxExporterError
from .failure import ExportFailed, LogNotSaved, UnreadableLog
from .finding import Diagnostic, Suppression
from .fix import Confidence, Edit, Fix
from .flow import GraphText, Step
from .graph import Graph, Node
from .history import Added, ArgumentsChanged, Deprecated, LevelChanged, MeaningChanged, Renamed, Retired
from .level import Level
from .location import Location, Region
from .log import Artifact, Attachment, Event, Log, Stage, Tool
from .options import SARIF_PROFILES, DiagnosticOptions, SarifProfile
from .rule import CHAPTERS, Page, Recorded, Rule

__all__ = [
    "CHAPTERS",
    "SARIF_PROFILES",
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
    "GraphText",
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
    "SarifProfile",
    "Stage",
    "Step",
    "Suppression",
    "Tool",
    "UnreadableLog",
]
