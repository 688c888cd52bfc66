"""Whether drivers can write their lineage, and tasks read it."""

from __future__ import annotations

from collections.abc import Iterator

from spark_lineage.doctor.disk import check_room, disk_of
from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup
from spark_lineage.launch.directory import check_root
from spark_lineage.settings.defaults import lineage_directory

_SHARE = "set lineage_dir to a directory that the hosts of worker and driver both mount under the same path"


def check_lineage_directory(setup: Setup) -> Iterator[Finding]:
    """Look at the directory that the settings name."""
    if not setup.settings.lineage_enabled:
        yield warning("lineage_enabled is off: no lineage is gathered", "take the setting out, if that is not meant")
    try:
        path = check_root(lineage_directory(setup.settings))
    except ValueError as error:
        yield problem(str(error), "correct lineage_dir")
        return
    room = list(check_room(path, "lineage_dir", "drivers cannot write their lineage"))
    yield from room
    if any(finding.level == "problem" for finding in room):
        return
    disk = disk_of(path)
    free = f"{disk.free_bytes / 1e9:,.1f} GB free"
    is_there = "" if path.exists() else ", not there yet, and can be made"
    yield ok(f"{path} can be written ({disk.kind or 'unknown file system'}, {free}{is_there})")
    spark, is_cluster = setup.spark, setup.deploy_mode == "cluster"
    if disk.is_object_store:
        yield warning(
            f"{path} is a bucket ({disk.kind}): a driver that is killed loses what it had appended",
            "use a local disk or NFS for lineage_dir",
        )
    elif is_cluster and not spark.is_local and not disk.is_network:
        # Only a standalone cluster can be this one host, with its directories.
        bad = warning if spark.master.startswith("spark:") else problem
        yield bad(
            f"in deploy mode cluster the driver runs elsewhere, and {path} is on a local disk ({disk.kind})", _SHARE
        )
    elif not is_cluster and disk.is_network:
        yield warning(
            f"{path} is on a network file system ({disk.kind}): when that hangs, the driver hangs with it",
            "in deploy mode client a local disk does",
        )
