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
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from spark_lineage.inject.errors import JarNotFoundError
from spark_lineage.inject.jar_file import check_jar
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
        key = hashlib.sha256(self.spec.encode()).hexdigest()[:16]
        return self.folder / f"{_UNSAFE.sub('_', self.name)[:80]}-{key}.jar"

    def get(self, resolve: Callable[[Path, float], Path], timeout_seconds: float) -> Path:
        """The jar, from the cache or from ``resolve(empty folder, seconds left)``, which gives a file in that folder.

        Tasks that ask at once wait for the one that resolves. All together takes ``timeout_seconds`` at most.
        Raises ``JarNotFoundError``.
        """
        started = time.monotonic()
        try:
            self._prepare_folder()
            if self._is_valid():
                return self.jar
            self._raise_remembered()
            with self._locked(started + timeout_seconds):
                waited = time.monotonic() - started
                if self._is_valid(is_warning=True):
                    return self.jar
                self._raise_remembered()
                # A task that waited for long has little time left for resolving: its failure says nothing to others.
                is_telling = waited < timeout_seconds / 2
                self._resolve(resolve, timeout_seconds - waited, is_telling=is_telling)
        except OSError as error:
            message = (
                f"Cannot use the cache of listener jars in {self.folder}: {error.strerror or type(error).__name__}. "
                "Set a cache folder on a local disk that the user who runs the task can write."
            )
            raise JarNotFoundError(message) from error
        return self.jar

    def _prepare_folder(self) -> None:
        for folder in (*reversed(self.folder.parents), self.folder):
            if not folder.exists():
                folder.mkdir(mode=0o700, exist_ok=True)
        status = self.folder.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            message = (
                f"The cache of listener jars, {self.folder}, belongs to another user or can be written by others, who "
                "could put their code into the driver. Remove it, or set another cache folder."
            )
            raise JarNotFoundError(message)

    def _is_valid(self, *, is_warning: bool = False) -> bool:
        try:
            expected = self._beside(".sha256").read_text(encoding="ascii").strip()
            with self.jar.open("rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except FileNotFoundError:
            return False
        if found != expected and is_warning:
            log.warning("The cached jar %s does not have its checksum any more; resolving it again.", self.jar)
        return found == expected

    @contextlib.contextmanager
    def _locked(self, deadline: float) -> Iterator[None]:
        descriptor = os.open(self._beside(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        message = (
                            f"Another task was still resolving the listener jar {self.origin} when the time limit was "
                            "over. Raise the time limit, or set the jar to a local path."
                        )
                        raise JarNotFoundError(message) from None
                    time.sleep(_LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    def _resolve(self, resolve: Callable[[Path, float], Path], seconds: float, *, is_telling: bool) -> None:
        prefix = f".{self.jar.stem}-"
        for leftover in self.folder.glob(f"{prefix}*"):  # of a process that was killed: nobody else is here now
            shutil.rmtree(leftover, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=prefix, dir=self.folder) as workspace:
            try:
                file = check_jar(resolve(Path(workspace), seconds), self.origin)
            except JarNotFoundError as error:
                if is_telling:
                    failure = {"cause": redact(str(error)), "circumstances": self._fingerprint()}
                    self._write(".failed", json.dumps(failure), Path(workspace))
                raise
            with file.open("rb") as stream:
                checksum = hashlib.file_digest(stream, "sha256").hexdigest()
                os.fsync(stream.fileno())
            # In this order, a crash in between leaves an entry that does not count, never a wrong one that does.
            file.replace(self.jar)
            self._write(".sha256", f"{checksum}\n", Path(workspace))
        self._beside(".failed").unlink(missing_ok=True)

    def _raise_remembered(self) -> None:
        failed = self._beside(".failed")
        try:
            age = time.time() - failed.stat().st_mtime
            failure = json.loads(failed.read_bytes())
        except (FileNotFoundError, ValueError):
            return
        if not 0 <= age < FAILURE_MEMORY_SECONDS or failure["circumstances"] != self._fingerprint():
            return
        message = (
            f"{failure['cause']} (This was {age:.0f} s ago; tried again after {FAILURE_MEMORY_SECONDS} s, or at once "
            f"when {failed} is removed.)"
        )
        raise JarNotFoundError(message)

    def _fingerprint(self) -> str:
        return hashlib.sha256(self.circumstances.encode()).hexdigest()

    def _beside(self, suffix: str) -> Path:
        return self.jar.with_name(self.jar.name + suffix)

    def _write(self, suffix: str, text: str, workspace: Path) -> None:
        temporary = workspace / f"new{suffix}"
        with temporary.open("w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self._beside(suffix))
