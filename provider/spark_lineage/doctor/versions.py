"""Checks whether the installed versions fit together."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

from spark_lineage.doctor.setup import Finding, Setup, ok, problem, warning

_OURS = "airflow-provider-spark-lineage"
_THEIRS = ("apache-airflow", "apache-airflow-providers-apache-spark", "apache-airflow-providers-openlineage")
_SHOWN = (_OURS, *_THEIRS, "openlineage-python")


def check_versions(setup: Setup) -> Iterator[Finding]:  # noqa: ARG001 - all checks are asked alike
    """Compare what this package requires with what is there."""
    if version_of(_OURS) is None:
        yield warning(
            f"{_OURS} is not installed as a package: Airflow does not know its settings and listeners",
            f"pip install {_OURS}",
        )
    else:
        for requirement in map(Requirement, requires(_OURS) or ()):
            found = version_of(requirement.name)
            is_of_an_extra = requirement.marker is not None
            if not is_of_an_extra and (found is None or not requirement.specifier.contains(found, prereleases=True)):
                state = "is not installed" if found is None else f"{found} is too old"
                yield problem(f"{requirement.name} {state}", f"pip install '{requirement}'")
    yield ok(", ".join(f"{name} {found}" for name in _SHOWN if (found := version_of(name))))


def version_of(name: str) -> str | None:
    """Return the version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None
