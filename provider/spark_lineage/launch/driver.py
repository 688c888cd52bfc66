"""The driver of one submission, as far as it is known while it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass
class Driver:
    """A driver as its process, its log, its events and its cluster show it; None until one of them does.

    Adapter, collector and dialects write what they learn, and read what others have learnt. By ``driver_id`` the Spark
    provider finds the driver again, in cluster mode: ``driver-…``, ``application_…``, ``{namespace}:{pod}``; the ids of
    several drivers have commas between them.
    ``exit_code`` is that of spark-submit, negative for a signal. ``attempt_id`` is the latest attempt, where attempts
    have ids (YARN in cluster mode).

    ``ui_url`` is the latest address that the driver gave of its UI, which gets no credentials; ``ui_address`` is where
    this machine finds that of a driver in client mode, ``proxied_ui_url`` leads to it through YARN's proxy. None of
    them has a ``/`` at its end. ``event_logs`` are the local directories of the files that the driver says to log its
    events to, ``logged_ids`` the applications of all such files.
    ``runs_on`` says that processes of the job outlive its task: they may write logs, or are still to begin them.
    """

    application_id: str | None = None
    driver_id: str | None = None
    is_submitted: bool = False
    process_id: int | None = None
    exit_code: int | None = None
    attempt_id: str | None = None
    ui_url: str | None = None
    ui_address: str | None = None
    proxied_ui_url: str | None = None
    logs_url: str | None = None
    event_logs: tuple[str, ...] = ()
    logged_ids: tuple[str, ...] = ()
    runs_on: bool = False


@dataclass(frozen=True)
class DriverEnd:
    """How a service that runs a driver says that it has ended.

    :param status: ``UNKNOWN`` where the service does not know the driver any more
    :param detail: why it failed, or was killed
    :param source: the name of the service
    :param application_id: of the driver that it speaks of; empty where it does not say
    """

    status: Literal["FINISHED", "FAILED", "KILLED", "UNKNOWN"]
    source: str
    detail: str = ""
    application_id: str = ""
