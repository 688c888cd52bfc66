"""What a check finds, and how bad that is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """One line of the doctor: a ``problem`` would lose lineage, a ``warning`` may, or costs something else.

    ``remedy`` says what to do, empty where nothing is to be done.
    """

    level: Literal["ok", "warning", "problem"]
    text: str
    remedy: str = ""


ok, warning, problem = partial(Finding, "ok"), partial(Finding, "warning"), partial(Finding, "problem")
