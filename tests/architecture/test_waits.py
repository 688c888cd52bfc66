"""The law of the task's time: whatever a task does for its lineage, it waits for no longer than is said beforehand."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]

# Which no task goes through: commands, Spark jobs of our own, the user's program, and the servers' own threads.
ELSEWHERE = (
    "spark_lineage.archive",
    "spark_lineage.cli",
    "spark_lineage.doctor",
    "spark_lineage.replay",
    "spark_lineage.declare",
    "spark_lineage.receiver",
    "spark_lineage.recover.backlog",
    "spark_lineage.recover.__main__",
    "spark_lineage.supervision",
    "spark_lineage.view.app",
    "spark_lineage.view.page",
    "spark_lineage.coverage.page",
)
# Waits whose end is not seen in the code, and why there is one.
WAITS = {
    "spark_lineage.notify.delivery": "wait: of the listener's own thread, which `join` waits for with a time",
    "spark_lineage.notify.notifications": "join: of `Delivery`, which has its own time",
    "spark_lineage.recover.search": "get: of a store of Airflow, which has its own time",
}
BOUNDED = "by `BoundedPlace`"
# Who touches files, and what bounds that.
FILES = {
    **dict.fromkeys(
        (
            "spark_lineage.launch.directory",
            "spark_lineage.launch.retention",
            "spark_lineage.deliver.outgoing",
            "spark_lineage.task.running",
            "spark_lineage.inject.task_injection",
            "spark_lineage.adapters.bash",
            "spark_lineage.launch.launch",
            "spark_lineage.launch.stores",
        ),
        BOUNDED,
    ),
    **dict.fromkeys(
        (
            "spark_lineage.submission.collector",
            "spark_lineage.submission.copies",
            "spark_lineage.submission.delivered_logs",
            "spark_lineage.submission.stored_event_log",
            "spark_lineage.plans.event_log_files",
        ),
        "the follower's thread, and the reader's, which `task.running` bounds",
    ),
    **dict.fromkeys(
        (
            "spark_lineage.inject.installation",
            "spark_lineage.inject.jar",
            "spark_lineage.inject.preparation",
        ),
        "`task_injection` bounds the preparation, and `lineage_timeout` the jar",
    ),
    **dict.fromkeys(
        ("spark_lineage.atlas.sender", "spark_lineage.deliver.file_sender"), "the courier, as of every sender"
    ),
    "spark_lineage.deliver.spool": (
        "`OUTBOX_FILES` in `connection_sender`; the courier and commands are processes of their own"
    ),
    "spark_lineage.deliver.outbox": "commands and servers, which are processes of their own",
    "spark_lineage.launch.lock": "`LINEAGE_FILES`, threads that deliver; its lock has its own time",
    "spark_lineage.submission.received_events": "the follower's thread, which `task.running` bounds; recovery",
    "spark_lineage.watch.status_monitor": "the follower's thread, and bounded runs",
    "spark_lineage.adapters.submission_digest": "its digest is called by `task_events` alone, which is bounded",
    "spark_lineage.watch.endpoints": "what Kubernetes mounts, and files that the connection names",
    "spark_lineage.http_client": "a folder of certificates, once for each server",
    "spark_lineage.recover.closing": "a process of its own, which has a minute for each end",
    "spark_lineage.recover.search": "the servers' own threads; what a worker asks for is bounded in `submit.launch`",
    "spark_lineage.listeners.ndjson_listener": "the listener's own thread",
}
_METHODS = {
    *("read_bytes", "read_text", "write_bytes", "write_text", "touch", "readlink"),
    *("is_dir", "is_file", "exists", "stat", "lstat", "iterdir", "glob", "rglob", "scandir", "listdir"),
    *("mkdir", "unlink", "rmdir", "rmtree", "symlink_to"),
}


def _is_in(name: str, packages: tuple[str, ...]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@cache
def _modules() -> dict[str, ast.Module]:
    found = {}
    for root in ("provider", "operators", "listeners"):
        for path in sorted((REPOSITORY / root).rglob("*.py")):
            name = ".".join(path.relative_to(REPOSITORY / root).with_suffix("").parts)
            if not _is_in(name, ELSEWHERE):
                found[name.removesuffix(".__init__")] = ast.parse(path.read_text())
    return found


def test_no_wait_is_without_an_end() -> None:
    found = {name for name, tree in _modules().items() for node in ast.walk(tree) if _is_endless(node)}
    assert sorted(found ^ WAITS.keys()) == []


def test_whoever_touches_files_says_what_bounds_it() -> None:
    found = {name for name, tree in _modules().items() for node in ast.walk(tree) if _touches_files(node)}
    assert sorted(found ^ FILES.keys()) == []


def test_what_is_said_to_be_bounded_is() -> None:
    for name in (name for name, why in FILES.items() if why == BOUNDED):
        names = {node.attr for node in ast.walk(_modules()[name]) if isinstance(node, ast.Attribute)}
        assert names & {"bounded", "use", "seconds_left"}, name


def _is_endless(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    given = {keyword.arg for keyword in node.keywords}
    match node.func:
        case ast.Attribute(attr="join" | "wait" | "get" | "acquire" | "result" | "communicate"):
            return not node.args and not given
        case ast.Attribute(attr="flock"):
            flags = {name.attr for name in ast.walk(node) if isinstance(name, ast.Attribute)}
            return not flags & {"LOCK_NB", "LOCK_UN"}
        case (
            ast.Attribute(value=ast.Name(id="subprocess"), attr="run" | "call" | "check_call" | "check_output")
            | ast.Attribute(value=ast.Name(id="requests") | ast.Attribute(attr="session"), attr="get" | "post")
            | ast.Attribute(attr="urlopen")
        ):
            return "timeout" not in given
    return False


def _touches_files(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name) if name in _METHODS:
            return True
        case ast.Attribute(value=ast.Name(id="os"), attr="open"):
            return True
        case ast.Call(func=ast.Attribute(attr="open"), args=[ast.Constant(value=str(mode))]):
            return mode[0] in "rwxa"
    return False
