"""The site: it builds with every link and anchor in place, and its pages ask no other host for anything."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from spark_lineage.settings import ARGUMENTS, Settings

ROOT = Path(__file__).parents[2]
# What a browser fetches by itself; a link that one clicks on may lead anywhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*\ssrc=["']?(?:https?:)?//[^>]*>"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|prev|next))[^>]*\shref=["']?(?:https?:)?//[^>]*>"""
    r"""|(?:url\(|@import\s+)["']?(?:https?:)?//[^)]*"""
)
# The scripts of the theme ask GitHub and GitLab for stars where a repository is named, and unpkg.com for Mermaid.
ASKING = re.compile(r'data-md-component="?source"?[ >]|class="mermaid"')


def _build(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "mkdocs", "build", "--strict", "--site-dir", folder, *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = _build(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_a_dead_link_fails_the_build(tmp_path: Path) -> None:
    """Of a small site with the same rules: options such as ``--quiet`` switch ``--strict`` off."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# Home\n\n[a page](gone.md), [an anchor](#gone)\n")
    (docs / "orphan.md").write_text("# In no nav\n")
    rules = {"INHERIT": str(ROOT / "mkdocs.yml"), "docs_dir": str(docs), "nav": [{"Home": "index.md"}]}
    config = tmp_path / "mkdocs.yml"
    config.write_text(json.dumps(rules | {"hooks": [], "plugins": [], "extra_css": []}))
    done = _build(tmp_path / "site", "--config-file", str(config))
    assert done.returncode == 1
    assert not [word for word in ("'gone.md'", "'#gone'", "orphan.md") if word not in done.stderr]


def test_pages_fetch_nothing_from_another_host(site: Path) -> None:
    pages = [path for path in site.rglob("*") if path.suffix in {".html", ".css"}]
    found = [(path.name, match[0]) for path in pages for match in FETCHED.finditer(path.read_text())]
    assert found == []
    assert not [path.name for path in pages if ASKING.search(path.read_text())]
    assert len(pages) > 40


@pytest.mark.parametrize(
    "tag",
    [
        '<script src="https://unpkg.com/mermaid@11/dist/mermaid.min.js"></script>',
        '<link rel="preconnect" href="https://fonts.gstatic.com" crossorigin>',
        "<link rel=stylesheet href=//fonts.googleapis.com/css?family=Roboto>",
        '<img alt="stars" src="https://img.shields.io/github/stars/a/b">',
        "@font-face{src:url(https://fonts.gstatic.com/s/roboto.woff2)}",
    ],
)
def test_what_a_browser_would_fetch_is_seen(tag: str) -> None:
    assert FETCHED.search(tag)


def test_the_program_that_builds_it_is_no_part_of_it(site: Path) -> None:
    assert not [path for path in site.rglob("*") if path.suffix in {".py", ".pyc", ".md"}]


def test_the_reference_has_what_the_code_has(site: Path) -> None:
    settings, operator = ((site / page).read_text() for page in ("configuration.html", "api.html"))
    assert not [one.name for one in fields(Settings) if f'id="{one.name}"' not in settings]
    assert not [name for name in ARGUMENTS if name not in operator]
    facets = (site / "facets" / "index.html").read_text()
    assert "<strong>Transition</strong>" in facets
    assert "oldStatus" in facets
    example = facets.partition('id="an-example"')[2]
    assert "sparkLineage_writes" in example
    assert "eventType" in example
    assert "Unreleased" in (site / "changelog.html").read_text()


def test_the_first_page_has_the_questions_and_no_badges(site: Path) -> None:
    index = (site / "index.html").read_text()
    assert 'id="i-want-to"' in index
    assert 'href="troubleshooting.html"' in index.partition('id="i-want-to"')[2]
    assert "/badge/" not in index


def test_drawings_are_part_of_their_page(site: Path) -> None:
    assert 'role="img" aria-label="' in (site / "handbook" / "architecture.html").read_text()
    assert not [path.name for path in site.rglob("*.html") if re.search(r'<img[^>]*\.svg"', path.read_text())]
