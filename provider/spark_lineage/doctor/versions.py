"""Whether what is installed fits together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from spark_lineage.doctor.finding import Finding, ok, problem, warning
from spark_lineage.doctor.setup import Setup

_OURS = "airflow-provider-spark-lineage"
_TOLD = (
    "apache-airflow",
    "apache-airflow-providers-apache-spark",
    "apache-airflow-providers-openlineage",
    "openlineage-python",
)


def check_versions(setup: Setup) -> Iterator[Finding]:  # noqa: ARG001 - all checks are asked alike
    """Compare what this package requires with what is there."""
    try:
        required = [Requirement(text) for text in requires(_OURS) or ()]
    except PackageNotFoundError:
        yield warning(
            f"{_OURS} is not installed as a package: Airflow does not know its settings and listeners",
            f"pip install {_OURS}",
        )
        required = []
    for requirement in required:
        if requirement.marker is not None:  # of an extra
            continue
        found = _version(requirement.name)
        if found is None:
            yield problem(f"{requirement.name} is not installed", f"pip install '{requirement}'")
        elif not requirement.specifier.contains(found, prereleases=True):
            yield problem(f"{requirement.name} {found} is too old", f"pip install '{requirement}'")
    if old := _version("openlineage-airflow"):
        yield warning(
            f"openlineage-airflow {old} is installed: it registers nothing on this Airflow, and pins an old client",
            "pip uninstall openlineage-airflow; apache-airflow-providers-openlineage takes its place",
        )
    yield ok(", ".join(f"{name} {found}" for name in (_OURS, *_TOLD) if (found := _version(name))))


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
