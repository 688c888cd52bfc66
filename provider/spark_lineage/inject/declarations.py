"""Bring ``spark_lineage.declare`` to the driver of a Python program, in an archive that also says where to write."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from spark_lineage.declare import TARGET_FILE
from spark_lineage.inject.class_path import misread_in_lists
from spark_lineage.inject.preparation import Prepared, Submitter
from spark_lineage.inject.properties import APP_NAME, APP_RUN_ID, NAMESPACE
from spark_lineage.inject.transport import looks_secret
from spark_lineage.launch.bounded_run import LINEAGE_FILES
from spark_lineage.launch.directory import DECLARE_ARCHIVE

_PY_FILES = "spark.submit.pyFiles"
_K8S_UPLOAD = "spark.kubernetes.file.upload.path"
_PACKAGE = "spark_lineage"
# The earliest that a zip file can hold: equal content gives equal bytes.
_NO_TIME = (1980, 1, 1, 0, 0, 0)


class CannotShipError(Exception):
    """The driver cannot be brought a Python file of ours; the text says why, and what to do."""


@LINEAGE_FILES.bounded
def ship_declare(prepared: Prepared, submitter: Submitter, directory: Path) -> Prepared:
    """Add the archive to the Python files of a Python application; others are left as they are.

    As every file of ``--py-files`` it goes to the executors too: 20 kB.

    :param directory: the existing private directory of the launch; the archive in it is to be removed after the launch
    :raises CannotShipError: when a Python driver cannot be reached or its Python files cannot be extended
    :raises OSError: when the archive cannot be made
    """
    # As SparkSubmit.isPython decides; it refuses --py-files for anything else.
    if not submitter.application.endswith(".py"):
        return prepared
    is_on_kubernetes = prepared.deploy_mode == "cluster" and submitter.master.startswith("k8s")
    # Its client refuses to go on without; that of YARN uploads by itself, and standalone clusters run no Python.
    if is_on_kubernetes and _K8S_UPLOAD not in prepared.properties:
        raise CannotShipError(f"on Kubernetes, the program can declare lineage only with {_K8S_UPLOAD} set")
    archive = directory / DECLARE_ARCHIVE
    if misread := misread_in_lists(str(archive)):
        raise CannotShipError(f"its path {archive} holds {misread}, which --py-files does not take; set lineage_dir")
    arguments = prepared.arguments
    users = arguments.py_files
    if users is None:
        # A flag replaces its property, so what is effective today is kept in what we set.
        users = prepared.properties.get(_PY_FILES, "")
        if _PY_FILES not in arguments.conf and looks_secret("", users):
            raise CannotShipError(f"{_PY_FILES} in the properties file holds a secret; give the files as py_files")
    names = [name.strip() for name in users.split(",") if name.strip()]
    descriptor = os.open(archive, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(archive_bytes(prepared.conf, directory))
    return prepared.with_arguments(py_files=",".join([*names, str(archive)]))


def archive_bytes(conf: Mapping[str, str], directory: Path) -> bytes:
    """Return an archive of the package's ``__init__`` and ``declare``, and of the target that ``declare`` looks for."""
    target = {
        "directory": str(directory),
        "namespace": conf[NAMESPACE],
        "application_name": conf[APP_NAME],
        "application_run_id": conf[APP_RUN_ID],
    }
    # Also where this package was itself imported from an archive.
    content = {name: files(_PACKAGE).joinpath(name).read_bytes() for name in ("__init__.py", "declare.py")}
    content[TARGET_FILE] = json.dumps(target).encode("ascii")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(zipfile.ZipInfo(f"{_PACKAGE}/{name}", _NO_TIME), data)
    return buffer.getvalue()
