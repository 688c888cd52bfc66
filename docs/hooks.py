"""What the site has beyond ``docs/``: pages from the top of the repository, tables and an event from the code.

MkDocs calls the functions ``on_…`` (https://www.mkdocs.org/user-guide/configuration/#hooks).
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from posixpath import dirname, normpath, relpath
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/spark-lineage/airflow-provider-spark-lineage/blob/main"
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
# The way from a question to its page is a part of the first page.
GUIDE = "docs/README.md"
EVENT = "tests/fixtures/events/a_414.ndjson"

_LINK = re.compile(r"\]\((?![a-z]+:|#)(?P<path>[^)#\s]+)(?P<anchor>#[^)\s]*)?\)")
_BADGES = re.compile(r"^(?:\[!\[.*\n)+\n", re.MULTILINE)
_FENCE = re.compile(r"^```sh (?:run|connection)$", re.MULTILINE)
_SCHEMA = re.compile(r"^Schema: \[\w+\]\((?P<path>1-0-0/\w+\.json)\)$", re.MULTILINE)
# A role of Sphinx in a docstring.
_ROLE = re.compile(r":(?:func|class|meth|mod):(?=<code>)")
_DRAWING = re.compile(r'<img alt="(?P<alt>[^"]*)" src="(?P<src>[^"]+\.svg)" />')


def on_files(files: Files, config: Any) -> Files:
    """Add the pages from the top of the repository; the changelog has what is not released yet."""
    for name, page in PAGES.items():
        content = (ROOT / name).read_text()
        if name == "README.md":
            # Badges would come from another host.
            content = _BADGES.sub("", content) + "\n#" + _LINK.sub(_from_top, (ROOT / GUIDE).read_text())
        if name == "CHANGELOG.md":
            content += _output("towncrier", "build", "--draft", "--version", "Unreleased")
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Resolve links that leave ``docs/``, and add what is generated."""
    path = page.file.src_uri
    source = next((name for name, page_ in PAGES.items() if page_ == path), f"docs/{path}")

    def link(match: re.Match[str]) -> str:
        target = normpath(f"{dirname(source)}/{match['path']}".lstrip("/"))
        if target == GUIDE:
            return f"]({relpath('index.md', dirname(path) or '.')}#i-want-to)"
        if target in PAGES:
            target = relpath(PAGES[target], dirname(path) or ".")
        elif target.startswith("docs/"):
            target = relpath(target.removeprefix("docs/"), dirname(path) or ".")
        else:
            target = f"{REPOSITORY}/{target}"
        return f"]({target}{match['anchor'] or ''})"

    markdown = _LINK.sub(link, _FENCE.sub("```sh", markdown))
    if path == "facets/README.md":
        markdown = _SCHEMA.sub(lambda match: f"{match[0]}\n\n{_fields(match['path'])}", markdown)
        event = json.loads(_output("spark_lineage.cli", "merge", EVENT, "--exit-code", "0"))
        return f"{markdown}\n```json\n{json.dumps(event, indent=2)}\n```\n"
    return markdown


def on_page_content(html: str, page: Any, **_: Any) -> str:
    """Draw SVGs as part of the page, where their ``currentColor`` follows its palette; take out roles of docstrings."""

    def drawing(match: re.Match[str]) -> str:
        path = normpath(f"{dirname(page.file.src_uri)}/{match['src']}".lstrip("/"))
        text = re.sub(r"<style>.*</style>\n", "", (DOCS / path).read_text())
        return text.replace("<svg ", f'<svg role="img" aria-label="{match["alt"]}" ', 1)

    return _DRAWING.sub(drawing, _ROLE.sub("", html))


def _from_top(link: re.Match[str]) -> str:
    """Return a link of a page in ``docs/`` as a page at the top of the repository has it."""
    return f"](docs/{link['path']}{link['anchor'] or ''})"


def _fields(path: str) -> str:
    """Return a table for each object of a facet's JSON Schema, and the schema's example."""
    document = json.loads((DOCS / "facets" / path).read_text())
    tables = []
    for name, schema in document["$defs"].items():
        rows = "\n".join(_rows(schema))
        tables.append(f"**{name}**: {schema['description']}\n\n| field | type | description |\n|---|---|---|\n{rows}\n")
    (example,) = document["examples"]
    return "\n".join([*tables, f"```json\n{json.dumps(example, indent=2)}\n```\n"])


def _rows(schema: Mapping[str, Any]) -> Iterator[str]:
    for part in (schema, *schema.get("allOf", ())):
        for name, field in part.get("properties", {}).items():
            optional = "" if name in part.get("required", ()) else " (optional)"
            yield f"| `{name}` | {_type(field)}{optional} | {field.get('description', '')} |"


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"].rpartition("/")[2])
    if "enum" in field:
        return ", ".join(f"`{value}`" for value in field["enum"])
    return f"list of {_type(field['items'])}" if field.get("type") == "array" else str(field.get("type", "any"))


def _output(module: str, *arguments: str) -> str:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
