"""Where the program of a task is: in the Git repository of its DAG bundle, else where ``spark-submit`` finds it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from msgspec import Struct

from spark_lineage.emit.facets import PRODUCER
from spark_lineage.secrets.redaction import redact

if TYPE_CHECKING:
    from openlineage.client.generated.base import JobFacet

_SCHEME = re.compile(r"[A-Za-z][\w+.\-]*:")
_USER = re.compile(r"(?<=://)[^/@]*@")


class SourceCode(Struct, frozen=True):
    """The fields of OpenLineage's ``sourceCodeLocation``; ``url`` is empty where no program is known."""

    type: str = "file"
    url: str = ""
    repository: str | None = None
    path: str | None = None
    version: str | None = None
    branch: str | None = None

    def facets(self) -> dict[str, JobFacet]:
        """OpenLineage's ``sourceCodeLocation``."""
        from openlineage.client.generated.source_code_location_job import SourceCodeLocationJobFacet

        if not self.url:
            return {}
        facet = SourceCodeLocationJobFacet(
            type=self.type,
            url=self.url,
            repoUrl=self.repository,
            path=self.path,
            version=self.version,
            branch=self.branch,
            producer=PRODUCER,
        )
        return {"sourceCodeLocation": facet}


def source_code(application: Any, task_instance: Any = None) -> SourceCode:
    """Return where the program is that a task submits.

    :param application: as ``spark-submit`` takes it: a path or a URI
    :param task_instance: that of a worker of Airflow 3, which knows the bundle (``GitDagBundle``) that its DAG is from
    """
    text = str(application or "")
    if not text or _SCHEME.match(text):
        return SourceCode(url=redact(text))
    path = Path(text).absolute()
    url = redact(path.as_uri())
    bundle = getattr(task_instance, "bundle_instance", None)
    if bundle is not None and getattr(bundle, "repo_url", None):
        # The bundle asks Git, and may have no repository on this host.
        with suppress(Exception):
            return _in_repository(path, bundle, url)
    return SourceCode(url=url)


def _in_repository(path: Path, bundle: Any, url: str) -> SourceCode:
    """Return the place of a file of the bundle; raises ``ValueError`` where it is none."""
    inside = path.resolve().relative_to(Path(bundle.path).resolve()).as_posix()
    subdir, version = bundle.subdir or "", bundle.version or bundle.get_current_version()
    # Known for GitHub, GitLab and Bitbucket, and where `view_url_template` of the bundle gives it.
    template = bundle.view_url_template()
    if template:
        url = f"{template.format(version=version, subdir=subdir).rstrip('/')}/{quote(inside)}"
    return SourceCode(
        type="git",
        url=redact(url),
        repository=redact(_USER.sub("", bundle.repo_url)),
        path=str(PurePosixPath(subdir, inside)),
        version=version,
        branch=bundle.tracking_ref,
    )
