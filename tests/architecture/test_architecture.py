"""Rules of the design: which package imports which, what runs on executors, who touches the Spark provider's hook."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import distribution
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laboratory import Bench, Laboratory, Outcome

from spark_lineage import add_ons
from spark_lineage.view import XCOM_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
PACKAGE = "spark_lineage"
ROOTS = ("provider", "operators", "listeners")
# The packages that each package may import; all others are forbidden. Top-level modules and roots count as packages.
_LEAVES = {"naming", "secrets", "merge", "launch"}
DEPENDENCIES = {
    "secrets": set(),
    "merge": {"naming"},
    "launch": {"merge", "secrets"},
    "http_client": set(),
    "settings": {"launch", "naming", "secrets"},
    "inject": {"declare", "http_client", "launch", "secrets", "settings"},
    "adapters": {"declare", "http_client", "inject", "launch", "secrets", "settings", "watch"},
    "plans": {"launch", "merge", "naming", "secrets"},
    "submission": {"declare", "http_client", "launch", "merge", "plans", "secrets", "settings", "watch"},
    "receiver": {"cli", "submission", "launch"},
    "watch": {"http_client", "launch", "merge", "settings"},
    "emit": _LEAVES | {"settings"},
    "deliver": {"add_ons", "emit", "launch", "secrets", "settings"},
    "atlas": {"cli", "deliver", "launch", "naming", "secrets", "settings"},
    "notify": _LEAVES | {"emit", "settings"},
    "archive": _LEAVES | {"submission", "declare", "emit", "plans"},
    # The tab shows JSON alone.
    "view": set(),
    "task": _LEAVES | {"settings", "inject", "adapters", "submission", "watch", "emit", "deliver", "add_ons"},
    "recover": _LEAVES - {"secrets"} | {"add_ons", "settings", "adapters", "submission", "watch", "emit", "deliver"},
    "doctor": _LEAVES - {"merge"}
    | {"cli", "deliver", "http_client", "inject", "plans", "settings", "submission", "watch"},
    # The table of add-ons alone names these packages.
    "coverage": {"adapters", "cli", "deliver", "emit", "policy", "settings", "view"},
    "supervision": {"cli", "submission", "http_client", "launch", "plans", "secrets", "settings", "watch"},
    "cli": _LEAVES | {"add_ons", "settings", "submission", "plans", "emit", "deliver", "view"},
    "replay": {"archive", "cli", "deliver", "launch", "secrets"},
    # The table names modules as texts.
    "add_ons": set(),
    "operators": {"adapters", "archive", "settings", "task", "triggers"},
    # The policy names operators as texts.
    "policy": {"launch", "settings", "task"},
    "triggers": {"launch", "merge", "secrets", "settings", "watch"},
    "listeners": {"add_ons", "launch", "merge", "notify", "recover"},
    "provider_info": {"deliver", "settings"},
}
# No task needs these packages, and the core imports none: the table in ``spark_lineage.add_ons`` names them.
ADD_ONS = ("atlas", "archive", "view", "notify", "doctor", "cli", "supervision", "receiver", "replay", "coverage")
# Users import these modules: the operator of an archive, and listeners.
_OF_ADD_ONS = ("spark_lineage.operators.lineage_archive", "spark_lineage.listeners")
# The six exits that remove secrets: an encoded event, a log record, a file or an XCom, an event for a listener, an
# exception that Airflow shows, the output of a command or of "Test connection". No other module removes any.
EXITS = {
    "event": {
        *("emit.child_events", "emit.redacted_lineage", "emit.run_event", "emit.task_event"),
        *("deliver.outgoing", "replay.replay"),
    },
    # The hook prints its command, and puts it into its exception.
    "log": {
        "launch.log",
        "task.ended",
        *(f"adapters.{name}" for name in ("bash", "driver_output", "livy", "spark_pipelines")),
        *(f"adapters.{name}" for name in ("spark_sql", "spark_submit")),
    },
    "file or XCom": {
        *("deliver.pauses", "deliver.spool", "launch.launch", "task.links", "task.session", "watch.status_monitor"),
        *("task.task_events", "triggers.spark_application"),
    },
    "listener": {"notify.assets", "notify.context", "notify.job_events"},
    "exception": {"task.session", "launch.log", "atlas.hook", "deliver.hooks", "supervision.history_server"},
    "command": {
        *("cli.merge", "cli.output", "cli.terminal"),
        "archive.job",
        "deliver.hooks",
        "doctor.init_command",
        "doctor.report_command",
    },
}
_REDACTING = {
    *(f"{PACKAGE}.secrets.redaction.{name}" for name in ("Redaction", "clean_errors", "redact", "redact_command")),
    *(f"{PACKAGE}.secrets.redaction.redact_{name}" for name in ("dataset", "error", "event", "key", "name", "value")),
    f"{PACKAGE}.adapters.driver_output.LineRedaction",
    f"{PACKAGE}.launch.launch.storable_transitions",
    f"{PACKAGE}.emit.redacted_lineage.redact_lineage",
}
# The first log without ``launch.log``, in or below the program of the user; the others set levels of libraries.
_OWN_LOGGERS = {"declare", "launch.log", "secrets.redaction"}
_LEVELS_OF_OTHERS = {"http_client", "plans.query_statement", "watch.endpoints"}
PURE = (
    "spark_lineage.merge",
    "spark_lineage.naming",
    "spark_lineage.launch.line",
    "spark_lineage.archive.fold",
    "spark_lineage.archive.rows",
)
HEAVY = {"airflow", "pyspark", "requests", "urllib3", "httpx", "aiohttp", "http", "openlineage"}
HOOKS = "airflow.providers.apache.spark.hooks"


@dataclass
class Module:
    """One module of ours: where it is, and what it imports at run time and for its types alone."""

    name: str
    root: str
    path: Path
    runtime: set[str] = field(default_factory=set)
    typing_only: set[str] = field(default_factory=set)

    @property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text())


def _imports(module: Module, node: ast.AST, *, typing_only: bool = False) -> Iterator[tuple[str, bool]]:
    """Return every name that is imported below a node, absolute, and whether ``TYPE_CHECKING`` guards it."""
    match node:
        case ast.Import(names=names):
            yield from ((alias.name, typing_only) for alias in names)
        case ast.ImportFrom(module=source, names=names, level=level):
            package = module.name.split(".") if module.path.name == "__init__.py" else module.name.split(".")[:-1]
            prefix = package[: len(package) - level + 1] if level else []
            base = ".".join([*prefix, *([source] if source else [])])
            yield from ((name, typing_only) for name in (base, *(f"{base}.{alias.name}" for alias in names)))
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING"), body=body, orelse=orelse):
            for child in body:
                yield from _imports(module, child, typing_only=True)
            for child in orelse:
                yield from _imports(module, child, typing_only=typing_only)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _imports(module, child, typing_only=typing_only)


def _read(root: str, path: Path) -> Module:
    parts = path.relative_to(ROOT / root).with_suffix("").parts
    module = Module(".".join(parts).removesuffix(".__init__"), root, path)
    for name, typing_only in _imports(module, module.tree):
        (module.typing_only if typing_only else module.runtime).add(name)
    return module


@cache
def _by_name() -> dict[str, Module]:
    """Every module of ours by its name; read by the first test, as pytest imports this file to list the others."""
    modules = (_read(root, path) for root in ROOTS for path in sorted((ROOT / root).rglob("*.py")))
    return {module.name: module for module in modules}


def _is_in(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")


def _reached(start: str) -> dict[str, str]:
    """Return all that importing a module imports, each with the module that asks for it, through our own modules."""
    reached: dict[str, str] = {}
    waiting = [start]
    while waiting:
        asking = waiting.pop()
        parents = [asking.rsplit(".", depth)[0] for depth in range(1, asking.count(".") + 1)]
        for name in (*parents, *_by_name()[asking].runtime):
            if name not in reached:
                reached[name] = asking
                waiting.extend([name] if name in _by_name() else [])
    return reached


def _package(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def _dependencies() -> dict[tuple[str, str], list[str]]:
    """Return the imports between packages, wherever they stand in a module, also for types alone."""
    found: dict[tuple[str, str], list[str]] = {}
    for module in _by_name().values():
        for name in module.runtime | module.typing_only:
            if _is_in(name, PACKAGE) and (name in _by_name() or name.rpartition(".")[0] in _by_name()):
                pair = (_package(module.name), _package(name))
                if all(pair) and pair[0] != pair[1]:
                    found.setdefault(pair, []).append(f"{module.name} imports {name}")
    return found


def test_packages_import_only_what_the_table_allows() -> None:
    imported = _dependencies()
    against = [
        line
        for (start, end), lines in sorted(imported.items())
        if end not in DEPENDENCIES.get(start, ())
        for line in lines
    ]
    assert not against
    unused = sorted(
        (start, end) for start, ends in DEPENDENCIES.items() for end in ends if (start, end) not in imported
    )
    assert not unused, "take them out of the table"


def test_secrets_are_removed_where_something_leaves() -> None:
    """Each module that removes some is an exit, and each exit does; the functions are imported by their names."""
    named = {f"{PACKAGE}.{name}" for names in EXITS.values() for name in names}
    modules = [module for module in _by_name().values() if _package(module.name) != "secrets"]
    removing = {
        module.name
        for module in modules
        if not _REDACTING.isdisjoint(module.runtime) or f"{PACKAGE}.secrets" in module.runtime
    }
    defining = {name.rpartition(".")[0] for name in _REDACTING} & {module.name for module in modules}
    assert removing | defining == named


def test_every_log_is_without_secrets() -> None:
    """Nothing asks for a logger of its own, and a logger of Airflow is wrapped where it is used."""
    asking, unwrapped = set(), []
    for module in _by_name().values():
        for node in ast.walk(module.tree):
            match node:
                case ast.Call(func=ast.Attribute(attr="getLogger")):
                    asking.add(module.name.removeprefix(f"{PACKAGE}."))
                case ast.Attribute(value=ast.Attribute(value=ast.Name(id="self"), attr="log"), attr=level):
                    if not isinstance(node.ctx, ast.Store) and module.name != f"{PACKAGE}.launch.log":
                        unwrapped.append(f"{module.name}: self.log.{level}")
    assert asking == _OWN_LOGGERS | _LEVELS_OF_OTHERS
    assert not unwrapped


def test_core_imports_no_add_on() -> None:
    against = {
        f"{module.name} imports {name}"
        for module in _by_name().values()
        if _package(module.name) not in ADD_ONS and not any(_is_in(module.name, one) for one in _OF_ADD_ONS)
        for name in module.runtime | module.typing_only
        if name in _by_name() and _package(name) in ADD_ONS
    }
    assert not against


def test_table_of_add_ons_names_modules_that_exist() -> None:
    names = [*add_ons._COMMANDS, *add_ons._PARTS.values()]
    assert not [name for name in names if name not in _by_name()]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Callable[[Path], Outcome]]]:
    """A copy of all that is installed, and a function that runs a task from there."""
    copy, events = tmp_path_factory.mktemp("copy"), ROOT / "tests" / "fixtures" / "events" / "a_414.ndjson"
    for root in ROOTS:
        shutil.copytree(ROOT / root, copy / root, ignore=shutil.ignore_patterns("__pycache__"))
    laboratory = Laboratory(tmp_path_factory.mktemp("airflow"), copy)
    # Whatever it has to do with an add-on.
    listeners = "spark_lineage.listeners.logging_listener.LoggingListener"
    wants = {"emit_assets": True, "lineage_listeners": listeners, "lineage": [events], "store": {}}
    yield copy, lambda place: Bench(laboratory, place, program="from_a_copy").run(**wants)
    laboratory.close()


def _trouble(outcome: Outcome) -> set[str]:
    """Return what the log of a task warns of, without times and levels."""
    lines = (line for line in outcome.printed.splitlines() if "[warning" in line or "[error" in line)
    return {line.partition("] ")[2].partition(" [")[0] for line in lines}


@pytest.fixture(scope="module")
def whole(copied: tuple[Path, Callable[[Path], Outcome]], tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What comes of a task that has them all."""
    outcome = copied[1](tmp_path_factory.mktemp("whole"))
    assert [key for key, _ in outcome.pushed if key == XCOM_KEY]
    assert "assets" in outcome.printed
    return outcome


@pytest.mark.parametrize("add_on", ADD_ONS)
def test_task_runs_without_an_add_on(
    copied: tuple[Path, Callable[[Path], Outcome]], whole: Outcome, tmp_path: Path, add_on: str
) -> None:
    copy, run = copied
    (package,) = copy.glob(f"*/{PACKAGE}/{add_on}")
    shutil.move(package, tmp_path / "away")
    (tmp_path / "task").mkdir()
    try:
        outcome = run(tmp_path / "task")
    finally:
        shutil.move(tmp_path / "away", package)
    assert outcome.error is None, outcome.printed
    assert _trouble(outcome) <= _trouble(whole), outcome.printed
    assert [outcome.names(side) for side in ("inputs", "outputs")] == [whole.names("inputs"), whole.names("outputs")]
    assert bool([key for key, _ in outcome.pushed if key == XCOM_KEY]) == (add_on != "view")


def test_packages_import_without_a_cycle() -> None:
    # A CycleError names the packages.
    assert list(TopologicalSorter(DEPENDENCIES).static_order())


@pytest.mark.parametrize(
    ("root", "forbidden"),
    [
        ("provider", ("spark_lineage.operators", "spark_lineage.listeners")),
        ("operators", ("spark_lineage.listeners",)),
        ("listeners", ("spark_lineage.operators",)),
    ],
)
def test_roots_import_only_downwards(root: str, forbidden: tuple[str, ...]) -> None:
    against = [
        f"{module.name} imports {name}"
        for module in _by_name().values()
        if module.root == root
        for name in sorted(module.runtime | module.typing_only)
        if any(_is_in(name, package) for package in forbidden)
    ]
    assert not against


@pytest.mark.parametrize("package", PURE)
def test_pure_packages_import_nothing_heavy(package: str) -> None:
    members = [name for name in _by_name() if _is_in(name, package)]
    assert members, f"{package} is missing"
    against = [
        f"{member}: {asking} imports {name}"
        for member in members
        for name, asking in _reached(member).items()
        if name.split(".")[0] in HEAVY or _is_in(name, "urllib.request")
    ]
    assert not against


@pytest.mark.parametrize("module", ["spark_lineage.archive.merging", "spark_lineage.archive.on_executor"])
def test_executors_need_neither_airflow_nor_a_driver(module: str) -> None:
    # What is imported within a function of ours is asked for on the driver, or by pyspark's own worker.
    reached = _reached(module)
    tops = {name: asking for name, asking in reached.items() if name.split(".")[0] in {"airflow", "pyspark"}}
    assert not {name: asking for name, asking in tops.items() if asking != "spark_lineage.archive.on_executor"}


@pytest.mark.parametrize(
    "operator",
    [*(f"lineage_spark_{kind}" for kind in ("submit", "sql", "pyspark", "pipelines", "kubernetes")), "lineage_archive"],
)
def test_dag_files_import_little_besides_the_stock_operator(operator: str) -> None:
    program = (
        "import sys, airflow.providers.apache.spark.operators.spark_submit\n"
        "from airflow.providers.apache.spark.operators import spark_pipelines, spark_pyspark, spark_sql\n"
        "import airflow.providers.cncf.kubernetes.operators.spark_kubernetes\n"
        "stock = set(sys.modules)\n"
        f"import spark_lineage.operators.{operator}\n"
        "print(*sorted(set(sys.modules) - stock))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = {PACKAGE, f"{PACKAGE}.operators", f"{PACKAGE}.operators.lineage_operator"}
    ours |= {f"{PACKAGE}.task", f"{PACKAGE}.task.links", "airflow.sdk.bases.operatorlink"}
    ours.add(f"{PACKAGE}.operators.{operator}")
    if operator == "lineage_archive":
        ours |= {f"{PACKAGE}.archive", f"{PACKAGE}.operators.lineage_spark_submit"}
    assert set(done.stdout.split()) <= ours


def test_only_adapters_import_the_hook() -> None:
    against = [
        f"{module.name} imports {name}"
        for module in _by_name().values()
        if not _is_in(module.name, "spark_lineage.adapters")
        for name in sorted(module.runtime)
        if _is_in(name, HOOKS)
    ]
    assert not against


def test_only_the_table_of_adapters_names_an_operator() -> None:
    adapters = {"adapter", "driver_output", "processes", "submission_digest"}
    against = [
        f"{module.name} imports {name}"
        for module in _by_name().values()
        if not _is_in(module.name, "spark_lineage.adapters") and module.root != "operators"
        for name in sorted(module.runtime | module.typing_only)
        if _is_in(name, "spark_lineage.adapters") and name.split(".")[2:3] not in ([], *([one] for one in adapters))
    ]
    assert not against


def test_only_plans_imports_the_parser_of_sql() -> None:
    importing = {name for name, module in _by_name().items() if any(_is_in(each, "sqlglot") for each in module.runtime)}
    assert importing
    assert not {name for name in importing if not _is_in(name, "spark_lineage.plans")}


@cache
def _private_names_of_the_hooks() -> frozenset[str]:
    names = set()
    for module in ("spark_submit", "spark_sql", "spark_pipelines", "spark_connect"):
        source = distribution("apache-airflow-providers-apache-spark").locate_file(
            f"{HOOKS.replace('.', '/')}/{module}.py"
        )
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names |= {node.attr} if isinstance(node, ast.Attribute) else set()
            names |= {node.name} if isinstance(node, ast.FunctionDef) else set()
    return frozenset(name for name in names if name.startswith("_") and not name.startswith("__"))


def _hook_internals(node: ast.AST) -> str | None:
    match node:
        case ast.Attribute(value=ast.Name(id="self" | "cls")):
            return None  # an attribute of ours that happens to have the name
        case ast.Attribute(attr=name):
            return name if name in _private_names_of_the_hooks() else None
        case ast.Call(func=ast.Name(id="getattr" | "setattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
            return name if name in _private_names_of_the_hooks() else None
    return None


def test_only_adapters_name_internals_of_the_hooks() -> None:
    assert {"_conf", "_submit_sp", "_process_spark_submit_log", "_sp"} <= _private_names_of_the_hooks()
    against = [
        f"{module.name} names {name}"
        for module in _by_name().values()
        if not _is_in(module.name, "spark_lineage.adapters")
        for node in ast.walk(module.tree)
        if (name := _hook_internals(node))
    ]
    assert not against


def test_no_module_without_a_subject() -> None:
    without_subject = {"util", "utils", "helper", "helpers", "common", "misc"}
    assert not [name for name in _by_name() if name.rpartition(".")[2] in without_subject]


def test_every_module_says_its_job() -> None:
    assert not [
        m.name for m in _by_name().values() if m.name != PACKAGE and m.tree.body and not ast.get_docstring(m.tree)
    ]


# Words for what a function does or holds that say nothing of it.
_EMPTY_WORDS = {"tell", "say", "bring", "way", "words", "room"}


def test_names_use_no_empty_words() -> None:
    found = {
        f"{module.name}: {name}"
        for module in _by_name().values()
        for name in _given_names(module.tree)
        if _EMPTY_WORDS & {part.lower() for part in re.findall("[A-Z]?[a-z]+", name)}
    }
    assert sorted(found) == []


def _given_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ):
                yield name
