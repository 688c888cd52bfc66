"""What is shipped: one wheel from three roots, complete, importable, and the same from a zip."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = tuple(ROOT / name for name in ("provider", "operators", "listeners"))
SOURCE = "https://github.com/spark-lineage/airflow-provider-spark-lineage/blob/"
RAW = "https://raw.githubusercontent.com/spark-lineage/airflow-provider-spark-lineage/"
EXTEND_PATH = '__path__ = __import__("pkgutil").extend_path(__path__, __name__)\n'

# -S leaves out the .pth file of an editable install, so that only the wheel can answer for `spark_lineage`.
IMPORT_ALL = """
import importlib, pkgutil, sys, warnings
warnings.filterwarnings("error", module="spark_lineage")
where = sys.argv[1]
import spark_lineage
for module in pkgutil.walk_packages(spark_lineage.__path__, "spark_lineage."):
    try:
        origin = importlib.import_module(module.name).__file__
    except ModuleNotFoundError as error:
        # The providers of clouds have an environment of their own.
        if not error.name.startswith(tuple(f"airflow.providers.{one}" for one in ("amazon", "databricks", "google"))):
            raise
        origin = module.module_finder.find_spec(module.name).origin
    assert origin.startswith(where), origin
    print(module.name)
"""
IMPORT_PURE = """
import importlib, pkgutil, sys
where = sys.argv[1]
import spark_lineage
pure = ("spark_lineage.merge", "spark_lineage.naming", "spark_lineage.launch.line")
def missing(name):
    raise SystemExit(f"cannot import {name}")
for module in pkgutil.walk_packages(spark_lineage.__path__, "spark_lineage.", onerror=missing):
    if module.name.startswith(pure):
        assert importlib.import_module(module.name).__file__.startswith(where)
        print(module.name)
heavy = {"airflow", "pyspark", "requests", "urllib3", "httpx"} & set(sys.modules)
assert not heavy, heavy
"""


def _modules_of_the_sources() -> set[str]:
    return {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        for root in ROOTS
        for path in root.rglob("*.py")
    }


def _run_outside_the_checkout(program: str, where: Path, cwd: Path) -> list[str]:
    """Run a program that finds ``spark_lineage`` in ``where`` alone; gives the lines that it printed."""
    site_packages = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(where), *site_packages]),
        "AIRFLOW_HOME": str(cwd / "airflow"),
    }
    done = subprocess.run(
        [sys.executable, "-S", "-c", program, str(where)], env=env, cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def _build(kind: str, out: Path) -> Path:
    command = [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", str(out), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.iterdir())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _build("sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("installed")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", target, wheel]
    subprocess.run(command, check=True)
    return target


@pytest.fixture(scope="module")
def distribution(installed: Path) -> Distribution:
    (found,) = distributions(path=[str(installed)])
    return found


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: root.name)
def test_roots_share_one_init(root: Path) -> None:
    assert (root / "spark_lineage" / "__init__.py").read_text() == EXTEND_PATH


def test_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = [PurePosixPath(name) for name in zipfile.ZipFile(wheel).namelist()]

    assert {name.parts[0].split("-")[0] for name in names} == {"spark_lineage", "airflow_provider_spark_lineage"}
    assert len(names) == len(set(names))
    assert {PurePosixPath("spark_lineage/py.typed"), PurePosixPath("spark_lineage/view/lineage.js")} <= set(names)
    assert any(name.match("*.dist-info/licenses/LICENSE") for name in names)


def test_every_module_is_imported_from_the_wheel(installed: Path, tmp_path: Path) -> None:
    imported = _run_outside_the_checkout(IMPORT_ALL, installed, tmp_path)

    assert {"spark_lineage", *imported} == _modules_of_the_sources()


def test_pure_packages_are_imported_from_a_zip(wheel: Path, tmp_path: Path) -> None:
    imported = _run_outside_the_checkout(IMPORT_PURE, wheel, tmp_path)

    assert {"spark_lineage.merge", "spark_lineage.naming", "spark_lineage.launch.line"} <= set(imported)


def test_entry_points(distribution: Distribution, installed: Path, tmp_path: Path) -> None:
    entry_points = {(point.group, point.name): point.value for point in distribution.entry_points}
    assert entry_points == {
        ("airflow.plugins", "spark_lineage"): "spark_lineage.listeners.plugin:SparkLineagePlugin",
        ("apache_airflow_provider", "provider_info"): "spark_lineage.provider_info:get_provider_info",
        ("console_scripts", "spark-lineage"): "spark_lineage.cli:main",
    }
    load = "\n".join(
        f"from {module} import {name}; assert callable({name})"
        for module, _, name in (value.partition(":") for value in entry_points.values())
    )
    _run_outside_the_checkout(load, installed, tmp_path)


def test_metadata(distribution: Distribution) -> None:
    metadata = distribution.metadata

    assert metadata["Name"] == "airflow-provider-spark-lineage"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert set(metadata.get_all("Provides-Extra", [])) == {
        "spark",
        "spark3",
        "kafka",
        "kerberos",
        "remote",
        "receiver",
        "sql",
    }
    assert not [line for line in distribution.requires or () if "openlineage-airflow" in line]


def test_metadata_readme_links_lead_to_the_sources_of_the_release(distribution: Distribution) -> None:
    metadata = distribution.metadata
    links = re.findall(r"\]\(([^)]+)\)", metadata["Description"])
    assert len(links) > 20
    assert [url for url in links if not url.startswith("https://")] == []
    project = "spark-lineage/airflow-provider-spark-lineage/"
    for url in (url for url in links if project in url and f"{project}actions/" not in url):
        source = (RAW if url.endswith(".svg") else SOURCE) + f"v{metadata['Version']}/"
        assert url.startswith(source)
        assert (ROOT / url.removeprefix(source).partition("#")[0]).exists()


def test_sdist_builds_what_the_checkout_builds(sdist: Path, wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(sdist) as archive:
        # Python before 3.11.4 has none.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path)  # noqa: S202 (our own)
    (unpacked,) = tmp_path.iterdir()
    top_level = {path.name for path in unpacked.iterdir()}

    assert {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "tests", "docs"} <= top_level
    assert not top_level & {".venv", ".demo", ".git", "dist"}
    packed = {
        str(path.relative_to(unpacked / root.name)) for root in ROOTS for path in (unpacked / root.name).rglob("*.py")
    }
    assert packed == {name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".py")}
