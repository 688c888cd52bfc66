"""The messages that the troubleshooting page explains are those that the package prints."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
TABLE = re.compile(r"^\| the log says .*\n.*\n(?P<rows>(?:\|.*\n)+)", re.MULTILINE)
MESSAGES = [
    row.partition("` |")[0].removeprefix("| `")
    for table in TABLE.finditer(PAGE)
    for row in table["rows"].splitlines()
    if row.startswith("| `")
]


@pytest.fixture(scope="module")
def printed() -> list[str]:
    """Every text of the package; what a placeholder stands for begins another one, or has its ``%``."""
    return [
        node.value
        for root in ("provider", "operators", "listeners")
        for path in (ROOT / root).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]


@pytest.mark.parametrize("message", MESSAGES)
def test_the_package_prints_it(message: str, printed: list[str]) -> None:
    parts = [part.strip(" ()") for part in message.split("…")]
    assert not [part for part in parts if len(part) > 3 and not any(part in text for text in printed)]


def test_the_page_explains_messages() -> None:
    assert len(MESSAGES) > 30
