"""The file that says who writes an output now, so that no other does; its owner renews it while it lives."""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from spark_lineage.archive.pointer import DestinationError

if TYPE_CHECKING:
    from spark_lineage.archive.file_system import FileSystem

FILE = "_lock"
_RENEWED_SECONDS = 20.0
_STALE_SECONDS = 120.0
_LEASES = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid")

log = logging.getLogger(__name__)


class _Owner(msgspec.Struct, frozen=True):
    """Who holds it. ``space`` is where the number of the process means something."""

    token: str
    host: str
    space: str
    process_id: int

    @property
    def is_known_dead(self) -> bool:
        if (self.host, self.space) != (socket.gethostname(), _space()):
            return False
        try:
            os.kill(self.process_id, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False


class Lock:
    """The lock of one output.

    A lock that nobody renewed for two minutes, or whose process on this host is gone, counts for nothing.
    """

    def __init__(self, files: FileSystem) -> None:
        self._files = files
        self._token = uuid.uuid4().hex
        self._is_lost = threading.Event()
        self._is_given_back = threading.Event()
        self._heart: threading.Thread | None = None

    def take(self) -> None:
        """Take it, and keep it until it is given back.

        :raises DestinationError: when another run has it
        """
        if not self._files.create(FILE, self._content()):
            self._remove_stale()
            if not self._files.create(FILE, self._content()):
                raise DestinationError(self._held_text("another run"))
        # Not every file system lets one alone create a file: who reads its own word, has it.
        self.check()
        self._heart = threading.Thread(target=self._renew, name="lineage archive lock", daemon=True)
        self._heart.start()

    def check(self) -> None:
        """Raise ``DestinationError`` unless this is still the owner."""
        owner = self._owner()
        if self._is_lost.is_set() or owner is None or owner.token != self._token:
            raise DestinationError(
                f"another run has taken over {self._files.child(FILE)}, as this one was not heard of for two minutes: "
                "nothing of this run is kept; run it again when the other one has ended"
            )

    def give_back(self) -> None:
        """Release it, if it was taken."""
        if self._heart is None:
            return
        self._is_given_back.set()
        self._heart.join()
        self._heart = None
        self._files.delete(_sign_of_life(self._token))
        owner = self._owner()
        if owner is not None and owner.token == self._token:
            self._files.delete(FILE)

    def _remove_stale(self) -> None:
        owner = self._owner()
        signs = [FILE] if owner is None else [FILE, _sign_of_life(owner.token)]
        ages = [age for name in signs if (age := self._files.age_seconds(name)) is not None]
        if not ages:
            return
        who = "another run" if owner is None else f"process {owner.process_id} on {owner.host}"
        if not (owner is not None and owner.is_known_dead) and min(ages) < _STALE_SECONDS:
            raise DestinationError(self._held_text(who))
        log.warning("%s no longer renews %s: it is taken over", who, self._files.child(FILE))
        for name in reversed(signs):
            self._files.delete(name)

    def _held_text(self, who: str) -> str:
        return (
            f"{who} writes to {self._files.root} now: wait for its end. If it is dead, "
            f"{self._files.child(FILE)} counts for nothing two minutes after its last sign of life"
        )

    def _renew(self) -> None:
        while not self._is_given_back.wait(_RENEWED_SECONDS):
            try:
                owner = self._owner()
                if owner is not None and owner.token != self._token:
                    self._is_lost.set()
                    return
                # Never the lock itself: who was stopped since it looked would write over the lock of another.
                self._files.write(_sign_of_life(self._token), b"")
            except Exception as error:
                log.warning("Cannot renew the lock: %s", error)

    def _owner(self) -> _Owner | None:
        """Return the owner, None where there is none, or where its word is only half written."""
        content = self._files.read(FILE)
        try:
            return None if content is None else msgspec.json.decode(content, type=_Owner)
        except msgspec.DecodeError:
            return None

    def _content(self) -> bytes:
        return msgspec.json.encode(_Owner(self._token, socket.gethostname(), _space(), os.getpid()))


def _sign_of_life(token: str) -> str:
    """Return the name of the file that an owner writes again and again; nobody else ever writes it."""
    return f"{FILE}-{token}"


def _space() -> str:
    """Return what tells apart two machines, or two containers, that have one name."""
    names = []
    for path in map(Path, _LEASES):
        try:
            names.append(str(path.readlink()) if path.is_symlink() else path.read_text().strip())
        except OSError:
            names.append("")
    return " ".join(names)
