"""Keep jars that were resolved once: each with its checksum, a lock, and the memory of its last failure."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import logging
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from spark_lineage.inject.class_path import JarNotFoundError
from spark_lineage.inject.jar_file import check_jar
from spark_lineage.secrets.redaction import redact

FAILURE_MEMORY_SECONDS = 600
_LOCK_POLL_SECONDS = 0.05
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CacheEntry:
    """One jar of the cache.

    ``spec`` is the whole coordinate or URL; ``name`` a readable part of it; ``origin`` how error texts may call it.
    ``circumstances`` is what else a resolution depends on: a failure is remembered only for the same.
    """

    cache_dir: Path
    spec: str
    name: str
    origin: str
    circumstances: str = ""

    @property
    def folder(self) -> Path:
        """A folder of this user's own: a jar that another user can write is code of another user in the driver."""
        return self.cache_dir / f"jars-{os.geteuid()}"

    @property
    def jar(self) -> Path:
        """The jar; what else belongs to the entry lies beside it, with the same start of the name."""
        return self.folder / f"{_UNSAFE.sub('_', self.name)[:80]}-{_digest(self.spec)[:16]}.jar"

    def get(self, resolve: Callable[[Path, float], Path], timeout_seconds: float) -> Path:
        """Return the jar, from the cache or from ``resolve(empty folder, seconds left)``, a file in that folder.

        Tasks that ask at once wait for the one that resolves. All together takes ``timeout_seconds`` at most.
        Raises ``JarNotFoundError``.
        """
        started = time.monotonic()
        try:
            self._prepare_folder()
            if not self._is_kept():
                with self._beside(".lock").open("a") as lock:
                    self._wait_for(lock, started + timeout_seconds)
                    if not self._is_kept(is_warning=True):
                        self._resolve(resolve, timeout_seconds, time.monotonic() - started)
        except OSError as error:
            raise JarNotFoundError(
                f"Cannot use the cache of listener jars in {self.folder}: {error.strerror or type(error).__name__}. "
                "Set a cache folder on a local disk that the user who runs the task can write."
            ) from error
        return self.jar

    def _prepare_folder(self) -> None:
        for folder in (*reversed(self.folder.parents), self.folder):
            folder.mkdir(mode=0o700, exist_ok=True)
        status = self.folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise JarNotFoundError(
                f"The cache of listener jars, {self.folder}, belongs to another user or can be written by others, who "
                "could put their code into the driver. Remove it, or set another cache folder."
            )

    def _is_kept(self, *, is_warning: bool = False) -> bool:
        """Whether the jar is there and whole; raises a failure that is remembered instead."""
        with contextlib.suppress(FileNotFoundError):
            if self._beside(".sha256").read_text(encoding="ascii").strip() == _checksum(self.jar):
                return True
            if is_warning:
                log.warning("The cached jar %s does not have its checksum any more; resolving it again.", self.jar)
        failed = self._beside(".failed")
        try:
            age = time.time() - failed.stat().st_mtime
            failure = json.loads(failed.read_bytes())
        except (FileNotFoundError, ValueError):
            return False
        if 0 <= age < FAILURE_MEMORY_SECONDS and failure["circumstances"] == _digest(self.circumstances):
            raise JarNotFoundError(
                f"{failure['cause']} (This was {age:.0f} s ago; tried again after {FAILURE_MEMORY_SECONDS} s, or at "
                f"once when {failed} is removed.)"
            )
        return False

    def _wait_for(self, lock: IO[str], deadline: float) -> None:
        while True:
            try:
                return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise JarNotFoundError(
                        f"Another task was still resolving the listener jar {self.origin} when the time limit was "
                        "over. Raise the time limit, or set the jar to a local path."
                    ) from None
                time.sleep(_LOCK_POLL_SECONDS)

    def _resolve(self, resolve: Callable[[Path, float], Path], timeout_seconds: float, waited: float) -> None:
        prefix = f".{self.jar.stem}-"
        for leftover in self.folder.glob(f"{prefix}*"):  # of a process that was killed: nobody else is here now
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder) as directory:
            workspace, note = Path(directory), Path(directory, "note")
            try:
                file = check_jar(resolve(workspace, timeout_seconds - waited), self.origin)
            except JarNotFoundError as error:
                # A task that waited for long has little time left for resolving: its failure says nothing to others.
                if waited < timeout_seconds / 2:
                    failure = {"cause": redact(str(error)), "circumstances": _digest(self.circumstances)}
                    note.write_text(json.dumps(failure), encoding="utf-8")
                    note.replace(self._beside(".failed"))
                raise
            note.write_text(f"{_checksum(file)}\n", encoding="ascii")
            # In this order, a crash in between leaves an entry that does not count, never a wrong one that does.
            file.replace(self.jar)
            note.replace(self._beside(".sha256"))
        self._beside(".failed").unlink(missing_ok=True)

    def _beside(self, suffix: str) -> Path:
        return self.jar.with_name(self.jar.name + suffix)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _checksum(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
