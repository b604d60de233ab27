"""Chapter 1: capture, the way from a model and its arguments to an ExportedProgram. One module per subject."""

from .arguments import *
from .baked_values import *
from .checks import *
from .constructs import *
from .data_dependence import *
from .dims import *
from .failures import *
from .python_effects import *
