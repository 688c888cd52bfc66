"""Tells Airflow which texts of a transport configuration its logs must never show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from spark_lineage.secrets.secret_keys import is_secret_key

# Airflow registers nothing shorter, and warns of each.
_SHORTEST = 5
# Everything below these is somebody's own, and may hold a key under any name.
_PRIVATE = frozenset({"custom_headers", "auth"})
_HARMLESS = frozenset({"type"})


def mask_config(config: Mapping[str, Any]) -> None:
    """Register the secrets of a configuration; also what is made of them, like the header of a Basic login."""
    module = "airflow.sdk.log" if find_spec("airflow.sdk") else "airflow.utils.log.secrets_masker"  # Airflow 2
    mask_secret = import_module(module).mask_secret
    for text in _secrets(config, is_private=False):
        if len(text) >= _SHORTEST:
            mask_secret(text)


def _secrets(value: Any, *, is_private: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for key, each in value.items():
            is_secret = is_private or key in _PRIVATE or is_secret_key(str(key))
            yield from _secrets(each, is_private=is_secret and key not in _HARMLESS)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _secrets(each, is_private=is_private)
    elif isinstance(value, str) and "?" in value and not is_private:
        # Of a URL or an endpoint: keys of functions and signatures are parameters with any name.
        yield from (text for _, text in parse_qsl(urlsplit(value).query))
    elif is_private and isinstance(value, str):
        yield value
        # The login without the word before it.
        yield from (word for word in value.split()[1:] if len(word) >= _SHORTEST)
