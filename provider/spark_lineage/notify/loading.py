"""Finds listeners: by class path, as ``[spark_lineage]`` and the operator name them, or as objects that they are."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from inspect import getattr_static
from types import FunctionType
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from spark_lineage.notify.context import ListenerContext


class Listener(Protocol):
    """What a listener has at least; ``close()``, without arguments, is called after the last event if it has one."""

    def on_event(self, event: Any) -> None:
        """Take an event."""


class ListenerError(ValueError):
    """A listener that cannot be had; the text says which, where it was named, and what to do."""


def listener_sources(named: Any) -> tuple[Any, ...]:
    """Return what names listeners, one by one: class paths, factories, or listeners.

    :param named: text with semicolons, one object, or a list of texts and objects; None and empty text name none. A
        class path that comes twice counts once.
    :raises ListenerError: for what cannot name a listener
    """
    if named is None:
        return ()
    if isinstance(named, str):
        named = named.split(";")
    if not isinstance(named, Iterable) or isinstance(named, bytes | dict):
        named = [named]
    found: dict[Any, Any] = {}
    for one in named:
        source = one.strip() if isinstance(one, str) else one
        if isinstance(source, str):
            if source:
                found[source] = source
        elif _is_listener(source) or _has_factory(source):
            found[id(source)] = source
        else:
            raise ListenerError(
                f"{type(source).__name__} is no listener; give a class path ('package.module.Class'), or an object "
                "with on_event(event) or create_listener(context)"
            )
    return tuple(found.values())


def source_name(source: Any) -> str:
    """Return what to call a listener in the log."""
    if isinstance(source, str):
        return source
    kind = source if isinstance(source, type) else type(source)
    return f"{kind.__module__}.{kind.__qualname__}"


def make_listener(source: Any, context: ListenerContext, *, where: str) -> Listener:
    """Return the listener that a class path, a factory or a class stands for.

    A class that has ``create_listener`` as a class method is its own factory; one that has it as a method is a factory
    to be made without arguments.

    :param source: one of :func:`listener_sources`
    :param where: the setting that names it, for what an error says
    :raises ListenerError: when it cannot be imported or made, or is none
    """
    if _is_listener(source) and not isinstance(source, type):
        return source  # type: ignore[no-any-return]
    found = _imported(source, where) if isinstance(source, str) else source
    name = source_name(source)
    if not _has_factory(found):
        raise ListenerError(
            f"{where} names {name}, which has no create_listener(context); give a class of "
            "spark_lineage.listeners, one that inherits from it, or a factory"
        )
    try:
        factory = found() if isinstance(found, type) and _is_method_of_instances(found) else found
        listener = factory.create_listener(context)
    except Exception as error:
        raise ListenerError(
            f"{where} names {name}, which made no listener ({type(error).__name__}: {error}); its own documentation "
            "tells what it needs"
        ) from error
    if not _is_listener(listener):
        raise ListenerError(f"{where} names {name}, whose listener has no on_event(event); give it one")
    return listener  # type: ignore[no-any-return]


def _imported(path: str, where: str) -> Any:
    module, _, attribute = path.rpartition(".")
    try:
        return getattr(import_module(module), attribute)
    except Exception as error:
        # A module may raise anything when it is imported.
        raise ListenerError(
            f"{where} names {path}, which cannot be imported on this worker ({type(error).__name__}: {error}); give "
            "'package.module.Class' of a package that is installed where tasks run"
        ) from error


def _is_listener(found: Any) -> bool:
    return callable(getattr(found, "on_event", None))


def _has_factory(found: Any) -> bool:
    return callable(getattr(found, "create_listener", None))


def _is_method_of_instances(factory: type) -> bool:
    return isinstance(getattr_static(factory, "create_listener", None), FunctionType)
