"""What the outbox raises; each text says what to do."""

from __future__ import annotations


class OutboxError(Exception):
    """An event cannot be kept, or what is kept cannot be read."""


class OutboxFullError(OutboxError):
    """An event does not fit, and nothing may be thrown away for it."""
