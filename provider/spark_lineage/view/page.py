"""The picture of the tab as one HTML page, which needs no server, and whose browser contacts none."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Any


def page(view: Mapping[str, Any]) -> str:
    """Return the page of what ``compact`` has made of an event.

    The view is data for scripts: no text of it becomes markup, and the page runs no script but the two of this package.
    """
    renderer, module = (_file(name) for name in ("page.js", "lineage.js"))
    # A script ends at the first "</script".
    data = json.dumps(view).replace("<", "\\u003c")
    return Template(_file("page.html")).substitute(
        title=html.escape(view["job"]),
        view=data,
        renderer=renderer,
        module=module,
        hashes=" ".join(map(_source, (renderer, module))),
    )


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def _source(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
