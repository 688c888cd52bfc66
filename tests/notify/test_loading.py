"""Where listeners come from, and what is said of what is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spark_lineage.notify.context import ListenerContext
from spark_lineage.notify.loading import ListenerError, listener_sources, make_listener, source_name

MODULE = """
class Plain:
    def on_event(self, event): ...

class OwnFactory(Plain):
    def __init__(self, context):
        self.context = context
    @classmethod
    def create_listener(cls, context):
        return cls(context)

class Static:
    @staticmethod
    def create_listener(context):
        return OwnFactory(context)

class Factory:
    def create_listener(self, context):
        return OwnFactory(context)

class Heir(Factory): ...

class Raising:
    def create_listener(self, context):
        raise LookupError("no url")

class Deaf:
    def create_listener(self, context):
        return object()

class Greedy:
    def __init__(self, needed): ...
    def create_listener(self, context): ...

ready = Factory()
"""


class Here:
    def on_event(self, event: Any) -> None: ...


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "their_listeners.py").write_text(MODULE)
    (tmp_path / "their_broken.py").write_text("raise RuntimeError('half installed')")
    monkeypatch.syspath_prepend(tmp_path)
    return "their_listeners"


@pytest.mark.parametrize("name", ["OwnFactory", "Static", "Factory", "Heir", "ready"])
def test_a_class_path_names_a_listener_or_a_factory(package: str, context: ListenerContext, name: str) -> None:
    listener = make_listener(f"{package}.{name}", context, where="x")
    assert type(listener).__name__ == "OwnFactory"
    assert listener.context is context  # type: ignore[attr-defined]


def test_objects_are_taken_as_they_are(package: str, context: ListenerContext) -> None:
    here = Here()
    assert make_listener(here, context, where="x") is here
    module = __import__(package)
    for source in (module.Factory, module.ready, module.OwnFactory):
        assert type(make_listener(source, context, where="x")).__name__ == "OwnFactory"


@pytest.mark.parametrize(
    ("path", "what"),
    [
        ("no.such.Class", "cannot be imported on this worker (ModuleNotFoundError"),
        ("their_listeners.Missing", "cannot be imported on this worker (AttributeError"),
        ("NoModule", "cannot be imported on this worker (ValueError"),
        ("their_broken.Class", "cannot be imported on this worker (RuntimeError: half installed)"),
        ("their_listeners.Plain", "has no create_listener(context)"),
        ("their_listeners.Raising", "made no listener (LookupError: no url)"),
        ("their_listeners.Greedy", "made no listener (TypeError"),
        ("their_listeners.Deaf", "has no on_event(event)"),
    ],
)
def test_an_error_says_what_where_and_what_to_do(package: str, context: ListenerContext, path: str, what: str) -> None:
    with pytest.raises(ListenerError) as raised:
        make_listener(path, context, where="job_status_listeners")
    text = str(raised.value)
    assert text.startswith(f"job_status_listeners names {path}")
    assert what in text
    assert "; " in text


def test_names_are_taken_one_by_one() -> None:
    here = Here()
    assert listener_sources(None) == listener_sources("") == listener_sources([]) == listener_sources(" ; ") == ()
    assert listener_sources(" a.B ;c.D; a.B") == ("a.B", "c.D")
    assert listener_sources(["a.B", here, "a.B", Here]) == ("a.B", here, Here)
    assert listener_sources(here) == (here,)


@pytest.mark.parametrize("named", [7, [object()], {"a": 1}, b"a.B"])
def test_what_cannot_name_a_listener_is_refused(named: Any) -> None:
    with pytest.raises(ListenerError, match="give a class path"):
        listener_sources(named)


def test_what_the_log_calls_them() -> None:
    assert source_name("a.B") == "a.B"
    assert source_name(Here).endswith("test_loading.Here")
    assert source_name(Here()) == source_name(Here)
