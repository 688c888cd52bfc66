"""The notebook for Jupyter is its source."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "dags_example" / "notebooks"
SOURCE = NOTEBOOKS / "lineage_questions.py"


@pytest.fixture(scope="module")
def to_ipynb() -> ModuleType:
    spec = importlib.util.spec_from_file_location("to_ipynb", NOTEBOOKS / "to_ipynb.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_notebook_is_what_the_command_makes_of_its_source(to_ipynb: ModuleType) -> None:
    written = SOURCE.with_suffix(".ipynb").read_text()
    assert written == to_ipynb.text_of(SOURCE.read_text()), f"run: python {NOTEBOOKS.name}/to_ipynb.py {SOURCE.name}"


def test_cells_of_the_notebook_have_all_lines_of_the_source() -> None:
    cells = json.loads(SOURCE.with_suffix(".ipynb").read_text())["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    lines = [line for line in SOURCE.read_text().partition("# %%\n")[2].splitlines() if line.strip()]
    text = [line for line in lines if line.startswith("# ") and line not in code]
    assert [line for line in code.splitlines() if line.strip()] == [line for line in lines if line not in text]
