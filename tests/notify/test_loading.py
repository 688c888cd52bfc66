"""Where listeners come from, and what is said of what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.delivery import ListenerError, make_listener, source_name

MODULE = """
class Plain:
    def on_event(self, event): ...

class Own(Plain):
    def __init__(self, context):
        self.context = context

def factory(context):
    return Own(context)

def raising(context):
    raise LookupError("no url")

def deaf(context):
    return object()

class Greedy(Plain):
    def __init__(self, context, needed): ...

ready = Own(None)
"""


class Here:
    def on_event(self, event: Any) -> None: ...


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "their_listeners.py").write_text(MODULE)
    (tmp_path / "their_broken.py").write_text("raise RuntimeError('half installed')")
    monkeypatch.syspath_prepend(tmp_path)
    return "their_listeners"


@pytest.mark.parametrize("name", ["Own", "factory"])
def test_a_class_path_names_a_listener_or_a_factory(package: str, context: ListenerContext, name: str) -> None:
    module = __import__(package)
    for source in (f"{package}.{name}", getattr(module, name)):
        listener = make_listener(source, context)
        assert type(listener).__name__ == "Own"
        assert listener.context is context  # type: ignore[attr-defined]


def test_listeners_are_taken_as_they_are(package: str, context: ListenerContext) -> None:
    here = Here()
    assert make_listener(here, context) is here
    assert make_listener(f"{package}.ready", context) is __import__(package).ready


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("no.such.Class", "cannot be imported on this worker (ModuleNotFoundError"),
        ("their_listeners.Missing", "cannot be imported on this worker (AttributeError"),
        ("NoModule", "cannot be imported on this worker (ValueError"),
        ("their_broken.Class", "cannot be imported on this worker (RuntimeError: half installed)"),
        ("their_listeners.Plain", "made no listener of a context (TypeError"),
        ("their_listeners.raising", "made no listener of a context (LookupError: no url)"),
        ("their_listeners.Greedy", "made no listener of a context (TypeError"),
        ("their_listeners.deaf", "made a listener without on_event(event)"),
    ],
)
def test_an_error_says_what_where_and_what_to_do(package: str, context: ListenerContext, path: str, what: str) -> None:
    with pytest.raises(ListenerError) as raised:
        make_listener(path, context)
    text = str(raised.value)
    assert text.startswith(f"lineage_listeners names {path}")
    assert what in text
    assert "; " in text


def test_what_the_log_calls_them() -> None:
    assert source_name("a.B") == "a.B"
    assert source_name(Here).endswith("test_loading.Here")
    assert source_name(Here()) == source_name(Here)
    assert source_name(test_what_the_log_calls_them).endswith(".test_what_the_log_calls_them")
