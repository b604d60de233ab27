"""The rule book: one chapter (module) for each stage of an export. `CATALOG.md` is the same as a page to read."""

from .build import NameChanged, NameUnused, UnusedInput
from .capture import (
    ArgumentIgnored,
    CaptureFailed,
    ConstraintViolated,
    DataDependentBranch,
    DataDependentValue,
    DynamicShapesMismatch,
    GraphBreak,
    SpecializedDynamicDim,
    TrainingMode,
    UnsupportedInputType,
    UserCodeRaised,
)
from .dispatch import OperatorNeedsNewerOpset, TranslationFailed, UnsupportedOperator, UnsupportedOverload
from .internal import InternalError
from .passes import DecompositionFailed, MutationDropped, MutationNotRemoved
from .serialize import CheckerRejected, NeedsExternalData, WeightsWithoutData, WriteFailed
from .verify import OutputsDiffer, RuntimeRejected

__all__ = [
    "ArgumentIgnored",
    "CaptureFailed",
    "CheckerRejected",
    "ConstraintViolated",
    "DataDependentBranch",
    "DataDependentValue",
    "DecompositionFailed",
    "DynamicShapesMismatch",
    "GraphBreak",
    "InternalError",
    "MutationDropped",
    "MutationNotRemoved",
    "NameChanged",
    "NameUnused",
    "NeedsExternalData",
    "OperatorNeedsNewerOpset",
    "OutputsDiffer",
    "RuntimeRejected",
    "SpecializedDynamicDim",
    "TrainingMode",
    "TranslationFailed",
    "UnsupportedInputType",
    "UnsupportedOperator",
    "UnsupportedOverload",
    "UnusedInput",
    "UserCodeRaised",
    "WeightsWithoutData",
    "WriteFailed",
]
