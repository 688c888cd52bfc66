"""The workflow runs what ``.ci/run`` runs, on the releases that the README and the package's metadata name."""

from __future__ import annotations

import re
import tomllib
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
MATRIX = WORKFLOW["jobs"]["matrix"]["strategy"]["matrix"]
KEYS = ("airflow", "python", "spark")
MAKE = re.compile(r"\bmake (?:--jobs=\d )?(?P<targets>[a-z-]+)")
MINOR = re.compile(r"\b\d\.\d+")


def combinations() -> set[tuple[str, ...]]:
    """Return what the workflow runs: Airflow, Python, Spark."""
    every = set(product(*(MATRIX[key] for key in KEYS)))
    excluded = [
        one for one in every for rule in MATRIX["exclude"] if rule.items() <= dict(zip(KEYS, one, strict=True)).items()
    ]
    return every - set(excluded)


def commands() -> str:
    """Return all that the steps run, with the targets of the matrix in their places."""
    targets = WORKFLOW["jobs"]["make"]["strategy"]["matrix"]["target"]
    runs = [step["run"] for job in WORKFLOW["jobs"].values() for step in job["steps"] if "run" in step]
    expanded = [run.replace("${{ matrix.target }}", target) for run in runs for target in targets]
    return "\n".join(expanded)


def row_of_support(name: str) -> str:
    (found,) = re.findall(rf"^\| {name} \| (.+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    return str(found)


def test_workflow_calls_make_targets_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    called = {match["targets"] for match in MAKE.finditer(commands())}
    assert called >= {"docs", "dist", "test-matrix"}
    assert {target for target in called if not re.search(rf"^{target}:", makefile, re.MULTILINE)} == set()


def test_workflow_calls_each_target_that_ci_calls() -> None:
    script = re.sub(r"^\s*#.*$", "", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE)
    called = {match["targets"] for match in MAKE.finditer(script)}
    assert called == {"check", "test", "truth", "test-oldest"}
    assert called <= {match["targets"] for match in MAKE.finditer(commands())}


def test_workflow_pins_actions_by_commit() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    used = re.findall(r"uses: (.+)$", text, re.MULTILINE)
    assert len(used) > 3
    assert [one for one in used if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_workflow_and_ci_install_the_same_packages() -> None:
    assert ".ci/packages" in (ROOT / ".ci" / "run").read_text()
    assert commands().count(".ci/packages") > 1


def test_matrix_has_the_python_releases_of_the_classifiers_and_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    classifiers = re.findall(r"Python :: (\d\.\d+)", " ".join(project["classifiers"]))
    assert {python for _, python, _ in combinations()} == set(MATRIX["python"]) == set(classifiers)
    assert set(MINOR.findall(row_of_support("Python").partition(";")[0])) == set(classifiers)
    assert project["requires-python"] == f">={min(MATRIX['python'])}"


def test_badges_have_the_license_and_python_of_the_metadata() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    badges = re.findall(r"!\[(.+?)\]\(\S+/badge/(\S+)-blue\)", (ROOT / "README.md").read_text())
    shown = {title: unquote(text).replace("--", "-") for title, text in badges}
    python = project["requires-python"].replace(">=", "≥ ")
    assert shown == {
        f"License: {project['license']}": f"license-{project['license']}",
        f"Python {python}": f"python-{python}",
    }


@pytest.mark.parametrize(("row", "key"), [("Airflow", "airflow"), ("Spark", "spark")])
def test_matrix_has_the_releases_that_the_readme_calls_tested(row: str, key: str) -> None:
    tested = row_of_support(row).partition("tested")[2]
    ran = {dict(zip(KEYS, one, strict=True))[key] for one in combinations()}
    assert set(MINOR.findall(tested)) == set(MATRIX[key]) == ran


def test_pre_commit_runs_the_ruff_of_the_constraints() -> None:
    hooks: Any = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    (revision,) = [repo["rev"] for repo in hooks["repos"] if repo["repo"].endswith("ruff-pre-commit")]
    assert f"ruff=={revision.removeprefix('v')}" in (ROOT / "constraints.txt").read_text().splitlines()
