"""What adapters share whose service runs the driver, knows it by an id, and says how it ended."""

from __future__ import annotations

import shlex
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from spark_lineage.adapters.adapter import AdaptedTask, OperatorAdapter
from spark_lineage.inject.preparation import PreparedArguments
from spark_lineage.launch.driver import DriverEnd
from spark_lineage.secrets.redaction import remember_values

# Of an answer that only lineage needs; it is asked for once.
ANSWER_SECONDS = 3.0
_CONF_OPTIONS = ("--conf", "-c")


@dataclass(eq=False)
class ServiceAdapter(OperatorAdapter):
    """Its ``injected`` are the properties to add, its ``seen_end`` is what the operator was answered."""

    takes_listener = False
    is_service = True
    operator: Any = field(kw_only=True)
    task: AdaptedTask = field(kw_only=True)
    injected: Mapping[str, str] = field(default_factory=dict, init=False, repr=False)
    seen_end: DriverEnd | None = field(default=None, init=False)

    def inject(self, prepared: PreparedArguments) -> None:
        """Keep what is added until the job is submitted."""
        self.injected = self.added(prepared)

    def remember_secrets(self) -> None:
        """Learn the secrets of the job."""
        remember_values(self.arguments.conf)

    @property
    def has_driver_ended(self) -> bool:
        """Whether the service has said that the driver ended."""
        return self.seen_end is not None

    def end(self) -> DriverEnd | None:
        """Return the end that the operator was answered; one that a trigger has waited for is asked for now."""
        if self.seen_end is None and not self.is_killed():
            self.find_end()
        return self.seen_end

    def find_end(self) -> None:
        """Ask for the end of the driver that was submitted, if any."""
        with self.task.guard("The end of the driver is not known", can_fail=False):
            if self.driver.driver_id is not None:
                self.seen_end = self.ask(self.driver.driver_id)

    @abstractmethod
    def ask(self, external_id: str) -> DriverEnd | None:
        """Ask the service for the end of a driver, within ``ANSWER_SECONDS``; None while it runs."""

    def know(self, external_id: str, *, is_kept: bool = True) -> None:
        """Learn the id of what was submitted.

        :param is_kept: whether a retry finds it by what is kept here; else the operator keeps it, or never looks
        """
        self.driver.driver_id = external_id
        with self.task.guard("A retry will not find the driver", can_fail=False):
            if is_kept and self.task.store is not None:
                self.task.store.set(self.task.external_id_key, external_id)
            if self.observer is not None:
                self.observer.submitted(external_id)

    def note(self, end: DriverEnd | None) -> None:
        """Learn what the operator was answered of its driver."""
        self.seen_end = end
        if self.observer is not None:
            self.observer.waiting()


def properties_in(arguments: str | Iterable[str]) -> dict[str, str]:
    """Return the Spark properties among the arguments of ``spark-submit``; a text is taken apart as a shell does."""
    parts: list[str] = []
    with suppress(ValueError):
        parts = shlex.split(arguments) if isinstance(arguments, str) else [str(each) for each in arguments]
    given = [value for option, value in pairwise(parts) if option in _CONF_OPTIONS]
    given += [part.removeprefix("--conf=") for part in parts if part.startswith("--conf=")]
    return dict(pair.split("=", 1) for pair in given if "=" in pair)
