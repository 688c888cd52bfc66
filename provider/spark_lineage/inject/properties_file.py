"""Read a Spark properties file (``spark-defaults.conf``, ``--properties-file``) exactly as Spark reads it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

_LINE_END = re.compile(r"\r\n?")
# From the first line that is neither blank nor a comment to the first end of line that no backslash escapes.
_LOGICAL_LINE = re.compile(r"^[ \t\f]*+(?![#!])(?P<line>(?:[^\\\n]++|\\(?s:.))++)", re.MULTILINE)
_CONTINUATION = re.compile(r"\\\n[ \t\f]*")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<char>.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Spark's Utils.trimExceptCRLF: all up to the space, but not the ends of lines that an escape put there.
_TRIMMED = "".join(chr(code) for code in range(0x21) if chr(code) not in "\r\n")


class PropertiesFileError(Exception):
    """A Spark properties file cannot be read or is malformed."""


def default_properties_file(spark_home: Path | None, env: Mapping[str, str]) -> Path | None:
    """The file that Spark reads when no ``--properties-file`` is given (``Utils.getDefaultPropertiesFile``).

    ``$SPARK_CONF_DIR/spark-defaults.conf``, else that in ``conf`` of ``SPARK_HOME``; None where there is no such file.
    """
    home = env.get("SPARK_HOME") or spark_home
    conf_dir = env.get("SPARK_CONF_DIR") or (Path(home) / "conf" if home else None)
    if conf_dir is None:
        return None
    file = Path(conf_dir) / "spark-defaults.conf"
    return file if file.is_file() else None


def read_properties_file(file: Path) -> dict[str, str]:
    """The ``spark.`` properties of ``file``, in its order. Raises ``PropertiesFileError``."""
    try:
        text = file.read_bytes().decode("utf-8", errors="replace")
    except OSError as error:
        raise PropertiesFileError(
            f"Cannot read the Spark properties file {file}: {error.strerror or type(error).__name__}."
        ) from error
    try:
        return parse_properties(text)
    except ValueError as error:
        raise PropertiesFileError(
            f"The Spark properties file {file} is malformed, and Spark will refuse it too: {error}."
        ) from error


def write_properties_file(file: Path, properties: Mapping[str, str], *, base: Path | None) -> None:
    """Write a copy of the properties file ``base`` with ``properties`` added, for its owner alone (0600).

    Raises ``OSError``; the file is new or is not written at all.
    """
    content = base.read_bytes() if base is not None else b""
    added = "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items())
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        # Two ends of line: the first may be escaped by a backslash that ends the file.
        stream.write(content + b"\n\n" + added.encode("ascii"))


def _escape(text: str) -> str:
    r"""As ``java.util.Properties.store``: every character that is not a plain letter or digit as ``\uXXXX``."""
    units = text.encode("utf-16-be")
    codes = (int.from_bytes(units[at : at + 2], "big") for at in range(0, len(units), 2))
    return "".join(chr(code) if chr(code).isascii() and chr(code).isalnum() else f"\\u{code:04x}" for code in codes)


def parse_properties(text: str) -> dict[str, str]:
    r"""Parse what ``java.util.Properties.load`` parses; keep what starts with ``spark.``; the last of a key wins.

    Raises ``ValueError`` at a ``\u`` without four hexadecimal digits, as Java does; its text holds only the line.
    """
    properties: dict[str, str] = {}
    text = _LINE_END.sub("\n", text)
    for found in _LOGICAL_LINE.finditer(text):
        # Every line is a pair: both halves may be empty.
        pair = _PAIR.findall(_CONTINUATION.sub("", found["line"]))[0]
        try:
            key, value = map(_unescape, pair)
        except ValueError as error:
            number = text.count("\n", 0, found.start()) + 1
            raise ValueError(f"line {number}: {error}") from None
        if key.startswith("spark."):
            properties[key] = value.strip(_TRIMMED)
    return properties


def _unescape(text: str) -> str:
    def replace(escape: re.Match[str]) -> str:
        if escape["code"]:
            return chr(int(escape["code"], 16))
        if escape["char"] == "u":
            raise ValueError(r"a \u needs four hexadecimal digits")
        return _CONTROL.get(escape["char"], escape["char"])

    # Java's characters are UTF-16: two escapes may be the halves of one character of ours.
    return _ESCAPE.sub(replace, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
