"""Lists the operators and commands that plans of the installed PySpark can hold, for ``tests/fixtures/operators``.

A line is a name as plans have it, its kind and its library: ``HashAggregate operator spark``. The first list is whole;
each later one has what its release adds (``+``) and removes (``-``). For a new release of Spark, run this with its
PySpark, and Delta, Iceberg and Paimon for it where they exist::

    python tests/plans/list_operators.py --jars delta-spark.jar,iceberg-spark-runtime.jar,paimon-spark.jar >/tmp/4.3.txt
    mv /tmp/4.3.txt tests/fixtures/operators

Then ``test_operators.py`` fails until ``docs/handbook/plans.md`` has a row for each new name. An operator that prints
another name than that of its class has the kind ``renamed``: ``FileSourceScan`` stands in plans as ``Scan parquet``.
"""

from __future__ import annotations

import argparse
import zipfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

LISTS = Path(__file__).parents[1] / "fixtures" / "operators"
# What Spark itself is made of that has operators or commands.
_SPARK_JARS = ("spark-sql_*", "spark-catalyst_*", "spark-hive_*", "spark-connect_*", "spark-pipelines_*")
# What a plan runs; other commands are but what these are made from.
_COMMANDS = ("command.RunnableCommand", "command.DataWritingCommand", "datasources.v2.V2CommandExec")
_IS_ABSTRACT = 0x400 | 0x200


def release(path: Path) -> tuple[int, ...]:
    """Return the release that a list is of: ``4.2.txt``."""
    return tuple(int(part) for part in path.stem.split("."))


def read_lists() -> dict[str, set[str]]:
    """Return the lines of each release's list in full, from the oldest on."""
    known: set[str] = set()
    lists: dict[str, set[str]] = {}
    for path in sorted(LISTS.glob("*.txt"), key=release):
        for line in path.read_text(encoding="utf-8").splitlines():
            change, _, rest = line.partition(" ")
            known = known - {rest} if change == "-" else known | {rest if change == "+" else line}
        lists[path.stem] = known
    return lists


def lines_of(jars: Iterable[Path], jvm: Any) -> Iterator[str]:
    """Return a line for each class of the jars that is an operator or a command."""
    loader = jvm.Thread.currentThread().getContextClassLoader()

    def loaded(name: str) -> Any:
        return jvm.java.lang.Class.forName(name, False, loader)

    operator = loaded("org.apache.spark.sql.execution.SparkPlan")
    commands = [loaded(f"org.apache.spark.sql.execution.{name}") for name in _COMMANDS]
    for jar in jars:
        library = next((each for each in ("delta", "iceberg", "paimon") if jar.name.startswith(each)), "spark")
        for name in _class_names(jar):
            try:
                found = loaded(name)
            except Exception:  # noqa: S112 - py4j's own; what lacks another library cannot be run here either
                continue
            if found.getModifiers() & _IS_ABSTRACT:
                continue
            in_plans = name.rpartition(".")[2].removesuffix("Exec")
            if any(command.isAssignableFrom(found) for command in commands):
                yield f"{in_plans} command {library}"
            elif operator.isAssignableFrom(found):
                yield f"{in_plans} {'renamed' if _is_renamed(found) else 'operator'} {library}"


def _is_renamed(operator: Any) -> bool:
    return not operator.getMethod("nodeName", None).getDeclaringClass().getName().endswith(".TreeNode")


def _class_names(jar: Path) -> Iterator[str]:
    """Return the classes that may be operators or commands; to load all would take minutes."""
    with zipfile.ZipFile(jar) as opened:
        for entry in opened.namelist():
            short = entry.rpartition("/")[2]
            is_class = entry.endswith(".class") and "$" not in short
            is_named_so = "Command" in short or short.endswith("Exec.class")
            if is_class and (
                is_named_so or any(each in entry for each in ("/execution/", "/command", "plans/logical"))
            ):
                yield entry.removesuffix(".class").replace("/", ".")


def main() -> None:
    """Print the list of the installed PySpark, by what it adds to the lists that are there and removes from them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jars", default="", help="jars of Delta, Iceberg and Paimon, with commas between them")
    jars = [Path(jar) for jar in parser.parse_args().jars.split(",") if jar]
    import pyspark
    from pyspark.sql import SparkSession

    home = Path(pyspark.__file__).parent / "jars"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.extraClassPath", ":".join(str(jar) for jar in jars))
        .getOrCreate()
    )
    own = chain.from_iterable(home.glob(f"{pattern}.jar") for pattern in _SPARK_JARS)
    found = set(lines_of([*own, *jars], spark._jvm))
    spark.stop()
    current = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    before = [lines for name, lines in read_lists().items() if release(Path(f"{name}.txt")) < current]
    if before:
        changes = [f"+ {line}" for line in found - before[-1]] + [f"- {line}" for line in before[-1] - found]
        print("\n".join(sorted(changes, key=lambda change: (change[2:], change))))  # noqa: T201
    else:
        print("\n".join(sorted(found)))  # noqa: T201


if __name__ == "__main__":
    main()
