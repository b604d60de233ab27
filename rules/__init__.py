"""The rule book: one chapter (module) for each stage of an export. `CATALOG.md` is the same as a page to read."""

from .around import (
    AttributeChanged,
    CheckDropped,
    ExampleOfSizeOne,
    ExportOnlyBranch,
    GradientTraced,
    HookTraced,
    LegacyDynamicAxes,
    TensorRead,
)
from .baked import HostValueBaked, InputBaked, InputLeftOut, LoopUnrolled, RandomOperator, SymbolicIgnored
from .build import ConstantOutput, NameChanged, NameUnused, NotANumber, OutputLeftOut, UnusedInput
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
from .passes import CustomOperatorInlined, DecompositionFailed, MutationDropped, MutationNotRemoved
from .serialize import CheckerRejected, NeedsExternalData, OpsetUnknown, WeightsWithoutData, WriteFailed
from .verify import EagerFailed, KernelMissing, OutputsDiffer, RuntimeRejected

__all__ = [
    "ArgumentIgnored",
    "AttributeChanged",
    "CaptureFailed",
    "CheckDropped",
    "CheckerRejected",
    "ConstantOutput",
    "ConstraintViolated",
    "CustomOperatorInlined",
    "DataDependentBranch",
    "DataDependentValue",
    "DecompositionFailed",
    "DynamicShapesMismatch",
    "EagerFailed",
    "ExampleOfSizeOne",
    "ExportOnlyBranch",
    "GradientTraced",
    "GraphBreak",
    "HookTraced",
    "HostValueBaked",
    "InputBaked",
    "InputLeftOut",
    "InternalError",
    "KernelMissing",
    "LegacyDynamicAxes",
    "LoopUnrolled",
    "MutationDropped",
    "MutationNotRemoved",
    "NameChanged",
    "NameUnused",
    "NeedsExternalData",
    "NotANumber",
    "OperatorNeedsNewerOpset",
    "OpsetUnknown",
    "OutputLeftOut",
    "OutputsDiffer",
    "RandomOperator",
    "RuntimeRejected",
    "SpecializedDynamicDim",
    "SymbolicIgnored",
    "TensorRead",
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
