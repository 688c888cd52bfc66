"""Which files of a directory hold lineage that can be merged: what drivers write, and the status kept beside it."""

from __future__ import annotations

import posixpath
import re

from spark_lineage.collect.compressed import plain_name
from spark_lineage.launch.directory import TRANSITIONS_FILE

HIDDEN = (".", "_")
_EVENTS_SUFFIX = ".ndjson"
# try_number-application_run_id, as `directory.launch_directory` names it.
_LAUNCH = re.compile(r"\d+-(?P<run_id>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def is_lineage_file(name: str) -> bool:
    """Whether a file of this name, with or without its directory, is to be merged.

    By the custom of Hadoop, a name that begins with a dot or an underscore is of what is still being written.
    """
    if posixpath.basename(name).startswith(HIDDEN):
        return False
    return plain_name(name).endswith(_EVENTS_SUFFIX) or is_status_file(name)


def is_status_file(name: str) -> bool:
    """Whether a file of this name holds the status transitions of a launch, and no events."""
    return posixpath.basename(plain_name(name)) == TRANSITIONS_FILE


def application_of_launch(path: str) -> str | None:
    """Return the run id of the application whose launch a file lies in the directory of, None for other places."""
    match = _LAUNCH.fullmatch(posixpath.basename(posixpath.dirname(path)))
    return match["run_id"] if match is not None else None
