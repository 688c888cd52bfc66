"""Has a Python process traced before its program begins."""

import os
from pathlib import Path

import entered

if entered.VARIABLE in os.environ:
    entered.trace(Path(os.environ[entered.VARIABLE]))
