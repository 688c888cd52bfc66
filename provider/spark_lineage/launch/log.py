"""What is used of a logger."""

from __future__ import annotations

from typing import Any, Protocol


class Log(Protocol):
    """What is used of a logger: the standard library's and Airflow's own both fit."""

    def debug(self, *args: Any, **kwargs: Any) -> Any:
        """Log for developers."""

    def info(self, *args: Any, **kwargs: Any) -> Any:
        """Log what was done."""

    def warning(self, *args: Any, **kwargs: Any) -> Any:
        """Log what went wrong."""
