"""Find the Spark installation of a spark-submit binary, its versions and its properties file, without a JVM."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from spark_lineage.launch.directory import write_new

_CORE_JAR = re.compile(r"spark-core_(?P<scala>\d+(?:\.\d+)?)-(?P<spark>\d.*)(?<!-tests)(?<!-sources)(?<!-javadoc)\.jar")
_REMEDY = "Set SPARK_HOME for the task, or set the listener jar to a path or URL."
_LINE_END = re.compile(r"\r\n?")
# The pattern reaches from a line that is neither blank nor a comment to the first unescaped end of line.
_LOGICAL_LINE = re.compile(r"^[ \t\f]*+(?![#!])(?P<line>(?:[^\\\n]++|\\(?s:.))++)", re.MULTILINE)
_CONTINUATION = re.compile(r"\\\n[ \t\f]*")
_PAIR = re.compile(r"(?P<key>(?:\\.|[^\\=: \t\f])*)[ \t\f]*(?:[=:][ \t\f]*)?(?P<value>.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u(?P<code>[0-9A-Fa-f]{4})|(?P<char>.))", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
# Spark's Utils.trimExceptCRLF: all up to the space, but not the ends of lines that an escape put there.
_TRIMMED = "".join(chr(code) for code in range(0x21) if chr(code) not in "\r\n")


class InstallationNotFoundError(Exception):
    """No Spark installation belongs to the ``spark-submit`` binary; the text says where it was looked for."""


@dataclass(frozen=True)
class SparkInstallation:
    """A ``SPARK_HOME``, its Spark version (``3.5.1-amzn-0``) and its Scala binary version (``2.13``)."""

    home: Path
    spark_version: str
    scala_version: str

    @property
    def jars(self) -> Path:
        """Where Spark's own jars are; Ivy is one of them."""
        return self.home / "jars"


def find_installation(spark_binary: str, env: Mapping[str, str]) -> SparkInstallation:
    """Look where Spark's own ``bin/find-spark-home`` looks, in its order; raises ``InstallationNotFoundError``."""
    if spark_home := env.get("SPARK_HOME"):
        # spark-submit obeys SPARK_HOME whatever else there is: to look further would describe another Spark.
        home = Path(spark_home)
        if not (home / "jars").is_dir():
            text = f"SPARK_HOME is {home}, which has no folder 'jars'. Correct it, or unset it."
            raise InstallationNotFoundError(text)
    else:
        places = list(_places(spark_binary, env))
        found = next((place for place in places if isinstance(place, Path) and (place / "jars").is_dir()), None)
        if not isinstance(found, Path):
            raise InstallationNotFoundError(
                f"No Spark installation found for {spark_binary!r}. SPARK_HOME is not set; looked at: "
                f"{'; '.join(map(str, places))}. {_REMEDY}"
            )
        home = found
    for jar in (home / "jars").iterdir():
        if core := _CORE_JAR.fullmatch(jar.name):
            return SparkInstallation(home, core["spark"], core["scala"])
    raise InstallationNotFoundError(f"{home / 'jars'} holds no spark-core_*.jar, so it is not a Spark. {_REMEDY}")


def _places(spark_binary: str, env: Mapping[str, str]) -> Iterator[Path | str]:
    """Return the directories to look into, and, for errors, what is not there."""
    search_path = env.get("PATH", os.defpath)
    found = shutil.which(spark_binary, path=search_path)
    if found is None:
        yield f"{spark_binary} on PATH {search_path} (not there)"
    else:
        # A virtual environment may be reached through a symlink, or hold one: the package may be beside either end.
        binary = Path(os.path.abspath(found))  # noqa: PTH100  (Path.resolve would follow the symlink)
        resolved = binary.resolve()
        yield resolved.parent.parent
        for prefix in dict.fromkeys((binary.parent.parent, resolved.parent.parent)):
            packages: list[Path | str] = [*sorted(prefix.glob("lib/python3*/*-packages/pyspark"))]
            yield from packages or [f"{prefix}/lib/python3*/*-packages/pyspark (not there)"]
    yield pyspark_of_this_interpreter() or "pyspark of the running interpreter (not installed)"


def pyspark_of_this_interpreter() -> Path | None:
    """Return the directory of the installed PySpark, which is a Spark; None where there is none."""
    try:
        spec = importlib.util.find_spec("pyspark")
    except ValueError:  # a module that something put into sys.modules without a spec
        return None
    locations = spec.submodule_search_locations if spec else None
    return Path(next(iter(locations))) if locations else None


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
        return parse_properties(file.read_bytes().decode("utf-8", errors="replace"))
    except OSError as error:
        text = f"Cannot read the Spark properties file {file}: {error.strerror or type(error).__name__}."
        raise PropertiesFileError(text) from error
    except ValueError as error:
        text = f"The Spark properties file {file} is malformed, and Spark will refuse it too: {error}."
        raise PropertiesFileError(text) from error


def write_properties_file(file: Path, properties: Mapping[str, str], *, base: Path | None) -> None:
    """Write a copy of the properties file ``base`` with ``properties`` added, for its owner alone (0600).

    Raises ``OSError``; the file is new or is not written at all.
    """
    content = base.read_bytes() if base is not None else b""
    added = "".join(f"{_escape(key)}={_escape(value)}\n" for key, value in properties.items())
    # Two ends of line: the first may be escaped by a backslash that ends the file.
    write_new(file, content + b"\n\n" + added.encode("ascii"))


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
