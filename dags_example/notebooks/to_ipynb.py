"""Writes the Jupyter notebook beside its source: ``python to_ipynb.py lineage_questions.py``.

Cells begin with ``# %%``, those of text with ``# %% [markdown]``; the docstring of the source is the first one.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from typing import Any


def notebook(source: str) -> dict[str, Any]:
    """Return a notebook of Jupyter's format 4.5, whose cells have their numbers as ids."""
    _, *cells = re.split(r"^# %%(.*)\n", source, flags=re.MULTILINE)
    texts = [("markdown", ast.get_docstring(ast.parse(source)) or "")]
    for kind, text in zip(cells[::2], cells[1::2], strict=True):
        is_text = "markdown" in kind
        texts.append(("markdown", re.sub("^# ?", "", text, flags=re.MULTILINE)) if is_text else ("code", text))
    return {
        "cells": [_cell(str(number), kind, text.strip("\n")) for number, (kind, text) in enumerate(texts)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def text_of(source: str) -> str:
    """Return the file of the notebook."""
    return json.dumps(notebook(source), indent=1, ensure_ascii=False) + "\n"


def _cell(number: str, kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {"cell_type": kind, "id": number, "metadata": {}, "source": text.splitlines(keepends=True)}
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


if __name__ == "__main__":
    for path in map(Path, sys.argv[1:]):
        path.with_suffix(".ipynb").write_text(text_of(path.read_text()))
