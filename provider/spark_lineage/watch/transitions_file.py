"""The file of transitions beside the lineage of a launch, for a later process: one JSON object a line."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import structs

from spark_lineage.launch.directory import APPENDING, TRANSITIONS_FILE, open_regular, read_small
from spark_lineage.launch.line import LineError, decode_transition
from spark_lineage.merge.transition import StatusTransition
from spark_lineage.secrets.redaction import redact

log = logging.getLogger(__name__)
_encoder = msgspec.json.Encoder()


def redacted(one: StatusTransition) -> StatusTransition:
    """Return a transition as it may be kept."""
    return structs.replace(one, detail=redact(one.detail), exception=redact(one.exception))


def read_transitions(directory: Path) -> Iterator[StatusTransition]:
    """Return the transitions that were kept beside the lineage of a launch; torn lines are skipped.

    :raises OSError: when the file is there and cannot be read
    """
    file = directory / TRANSITIONS_FILE
    for line in read_small(file).splitlines() if os.path.lexists(file) else ():
        try:
            yield decode_transition(line)
        except LineError as error:
            log.debug("Set aside a line of %s: %s", file, error)


def append_transitions(directory: Path, transitions: Iterable[StatusTransition]) -> None:
    """Write transitions down, where the directory is there."""
    lines = _encoder.encode_lines(map(redacted, transitions))
    try:
        if lines and directory.is_dir():
            with os.fdopen(open_regular(directory / TRANSITIONS_FILE, APPENDING), "ab", buffering=0) as stream:
                stream.write(lines)
    except OSError as error:
        log.debug("A transition is not on disk: %s", error)
