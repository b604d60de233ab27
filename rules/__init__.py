"""The rule book: one chapter for each stage of an export. `CATALOG.md` shows it as a page.

A new rule is one class in one of the modules below; every table and page follows by itself.
"""

from .build import *
from .capture import *
from .differences import *
from .dispatch import *
from .internal import *
from .memory import *
from .not_compared import *
from .passes import *
from .serialize import *
from .verify import *
