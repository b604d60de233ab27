"""The rule book: one chapter (module) for each stage of an export. `CATALOG.md` is the same as a page to read."""

from .baked import HostValueBaked, InputBaked, InputLeftOut, LoopUnrolled, RandomOperator, SymbolicIgnored
from .build import ConstantOutput, NameChanged, NameUnused, OutputLeftOut, UnusedInput
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
from .serialize import CheckerRejected, NeedsExternalData, OpsetUnknown, WeightsWithoutData, WriteFailed
from .verify import EagerFailed, KernelMissing, OutputsDiffer, RuntimeRejected

__all__ = [
    "ArgumentIgnored",
    "CaptureFailed",
    "CheckerRejected",
    "ConstantOutput",
    "ConstraintViolated",
    "DataDependentBranch",
    "DataDependentValue",
    "DecompositionFailed",
    "DynamicShapesMismatch",
    "EagerFailed",
    "GraphBreak",
    "HostValueBaked",
    "InputBaked",
    "InputLeftOut",
    "InternalError",
    "KernelMissing",
    "LoopUnrolled",
    "MutationDropped",
    "MutationNotRemoved",
    "NameChanged",
    "NameUnused",
    "NeedsExternalData",
    "OperatorNeedsNewerOpset",
    "OpsetUnknown",
    "OutputLeftOut",
    "OutputsDiffer",
    "RandomOperator",
    "RuntimeRejected",
    "SpecializedDynamicDim",
    "SymbolicIgnored",
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
