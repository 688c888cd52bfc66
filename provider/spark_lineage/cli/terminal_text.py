"""How text, names and numbers are written at a terminal, with rich.

Names come from data: they are never read as rich markup, and no control character of theirs reaches the terminal.
"""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from rich.text import Text

from spark_lineage.naming.identity import DatasetName
from spark_lineage.secrets.redaction import redact_dataset

if TYPE_CHECKING:
    from rich.console import Console


def plain(text: str) -> Text:
    """The text for rich, folded where it is too long."""
    return Text(printable(text), overflow="fold")


def heading(title: str, console: Console) -> None:
    """Print a title, and a line above it."""
    console.print()
    console.print(Text(printable(title), style="bold"))


def printable(text: str) -> str:
    """The text with control, format and surrogate characters written as escapes, so that they do nothing."""
    return "".join(
        char if unicodedata.category(char)[0] != "C" and char not in "\u2028\u2029" else ascii(char)[1:-1]
        for char in text
    )


def dataset_text(dataset: DatasetName) -> str:
    """The dataset as a person writes it: a bare path for files, else namespace and name as one URL."""
    namespace, name = redact_dataset(dataset.namespace), redact_dataset(dataset.name)
    return name if namespace == "file" else f"{namespace.rstrip('/')}/{name.lstrip('/')}"


def size_text(size: int) -> str:
    """Bytes in the units that Spark's UI has: ``1.5 MiB``."""
    if size < 1024:  # noqa: PLR2004
        return f"{size} B"
    amount = float(size)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        # 1023.95 would be rounded up to "1024.0".
        if amount < 1023.95:  # noqa: PLR2004
            return f"{amount:.1f} {unit}"
    return f"{amount / 1024:,.1f} PiB"


def duration_text(seconds: float) -> str:
    """Seconds as people say them: ``1 min 23 s``."""
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def counted(count: int, noun: str) -> str:
    """A number of things: ``1 line``, ``1,042 lines``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
