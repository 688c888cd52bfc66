"""A real master that is killed while it has an application and a driver, and started again with what it remembers."""

from __future__ import annotations

import http.client
import json
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dialogues import polled
from standalone_cluster import StandaloneCluster, compiled, standalone_cluster

from spark_lineage.http_client import NoAnswerError
from spark_lineage.launch.driver import Driver
from spark_lineage.merge.transition import StatusReport, StatusTransition
from spark_lineage.watch.dialect import Dialogue
from spark_lineage.watch.endpoints import Endpoints
from spark_lineage.watch.sources import Sources
from spark_lineage.watch.status_monitor import StatusMonitor

PROGRAM = Path(__file__).parents[1] / "operators" / "programs" / "SlowCopy.java"
QUIET = SimpleNamespace(debug=lambda *_, **__: None, info=lambda *_, **__: None, warning=lambda *_, **__: None)
LOOK_SECONDS = 0.1

pytestmark = [pytest.mark.spark, pytest.mark.nightly]  # what a master shows meanwhile, test_standalone gives, too


class Heard:
    """A source of ours, and whether it had an answer, each time that it was asked."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.answers: list[bool] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.source, name)

    def poll(self) -> Dialogue[list[StatusReport]]:
        try:
            reports = yield from self.source.poll()
        except NoAnswerError:
            self.answers.append(False)
            raise
        self.answers.append(bool(reports))
        return reports


class Watched:
    """What becomes of one launch, by our own watch of it, which is told ids and addresses as a session tells them."""

    def __init__(self, cluster: StandaloneCluster, folder: Path, deploy_mode: str, history_server: str) -> None:
        extra = {"master_ui_url": cluster.ui_url, "rest-port": cluster.rest_port}
        endpoints = Endpoints(cluster.url, deploy_mode, extra | {"history_server_url": history_server})
        self.known = Driver()
        self.told: list[StatusTransition] = []
        sources = Sources(endpoints, self.known)
        *masters, ui = sources.while_running = [Heard(one) for one in sources.while_running]
        self.masters: list[Heard] = masters
        self.ui = ui
        folder.mkdir()
        self.watch = StatusMonitor(
            sources,
            folder,
            interval_seconds=0.2,
            on_transition=self.told.append,
            logger=QUIET,
        )
        for one in sources.while_running:
            one.source.due = 0.0
        self.watch.poll()

    def way(self, subject: str) -> list[str]:
        return [one.new_status for one in self.told if one.subject == subject]


@dataclass
class Page:
    """What the master's page shows, looked at ten times a second: of each thing, and of the master, each change.

    The page of a master that is not ALIVE is not looked into. It calls all that it remembers UNKNOWN or SUBMITTED until
    it has heard of it.
    """

    cluster: StandaloneCluster
    seen: dict[str, list[str]] = field(default_factory=dict)
    masters: list[str] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        while not self.stopping.wait(LOOK_SECONDS):
            try:
                page = self.cluster.page()
            except (OSError, http.client.HTTPException, ValueError):
                page = {"status": "gone"}
            self.note(self.masters, page["status"])
            if page["status"] == "ALIVE":
                for kind in ("activedrivers", "completeddrivers", "activeapps", "completedapps"):
                    for one in page[kind]:
                        self.note(self.seen.setdefault(one["id"], []), one["state"])

    @staticmethod
    def note(words: list[str], word: str) -> None:
        if words[-1:] != [word]:
            words.append(word)

    def shown(self, kind: str) -> dict[str, str]:
        """What it shows now, of ``drivers`` or ``apps``."""
        page = self.cluster.page()
        return {one["id"]: one["state"] for one in (*page[f"active{kind}"], *page[f"completed{kind}"])}


@dataclass
class Story:
    """What was told of two launches; ``away`` are the lengths of ``told`` when the master was killed and was back."""

    client: Watched
    cluster: Watched
    page: Page
    away: list[tuple[int, int]] = field(default_factory=list)
    final: dict[str, dict[str, str]] = field(default_factory=dict)
    before_the_end: list[int] = field(default_factory=list)

    @property
    def both(self) -> tuple[Watched, Watched]:
        return self.client, self.cluster


@pytest.fixture(scope="module")
def cluster(processes: Any, spark_env: dict[str, str]) -> Iterator[StandaloneCluster]:
    """A master that has one worker, and remembers both when it is started again."""
    with standalone_cluster(processes.folder, spark_env, *recovery(processes), cores=3, memory="3g") as cluster:
        yield cluster


def recovery(processes: Any) -> list[str]:
    return ["spark.deploy.recoveryMode=FILESYSTEM", f"spark.deploy.recoveryDirectory={processes.folder / 'recovery'}"]


@pytest.fixture(scope="module")
def story(processes: Any, submit_python: Any, cluster: StandaloneCluster, history_server: str) -> Iterator[Story]:
    """An application in client mode and a driver in cluster mode, which both outlive their master."""
    folder = processes.folder
    page = Page(cluster)
    looking = threading.Thread(target=page.look, daemon=True)
    looking.start()
    client = Watched(cluster, folder / "client", "client", history_server)
    in_cluster = Watched(cluster, folder / "cluster", "cluster", history_server)
    story = Story(client, in_cluster, page)
    released = folder / "released"

    process = submit_python(cluster.url, "held.py", folder / "ready", released)
    client.watch.submitted(f"127.0.0.1:{process.pid}")
    orders = folder / "orders.csv"
    orders.write_text("order_id,amount\n1,2\n")
    jar = compiled(PROGRAM, folder)
    in_cluster.known.driver_id = cluster.submit(jar, "SlowCopy", str(orders), str(folder / "copy"), str(released))
    in_cluster.watch.submitted(in_cluster.known.driver_id)

    port = processes.logged("driver", r"Successfully started service '?SparkUI'? on port (\d+)")
    client.known.ui_url = f"http://127.0.0.1:{port}"
    client.known.application_id = processes.logged("driver", r"Connected to Spark cluster with app ID (app-[\w-]+)")
    others = {client.known.application_id}
    in_cluster.known.application_id = processes.wait_for(
        "the driver's application", lambda: next(iter(page.shown("apps").keys() - others), None)
    )
    processes.wait_for("the program", (folder / "ready").exists)
    processes.wait_for("the copy", (folder / "copy" / "_SUCCESS").exists)
    for one in story.both:
        processes.wait_for("our word of it", lambda one=one: "RUNNING" in one.way("APPLICATION"))
    processes.wait_for("our word of its first SparkJob", lambda: client.way("SPARK_JOB")[-1:] == ["FINISHED"])
    processes.wait_for("our word of the driver", lambda: "RUNNING" in in_cluster.way("DRIVER"))

    masters = [*client.masters, *in_cluster.masters]
    before = [len(one.told) for one in story.both]
    cluster.kill_master()
    for one in masters:
        processes.wait_for("a question without answer", lambda one=one: one.answers[-2:] == [False, False])
    cluster.wait_for_worker()
    cluster.start_master(*recovery(processes))
    for one in masters:
        processes.wait_for("an answer of the new master", lambda one=one: one.answers[-1], 90)
    story.away = [(count, len(one.told)) for count, one in zip(before, story.both, strict=True)]

    released.touch()
    assert process.wait(120) == 0, processes.log("driver")
    ended = {"drivers": ["FINISHED"], "apps": ["FINISHED"] * 2}
    processes.wait_for("their end", lambda: {kind: [*page.shown(kind).values()] for kind in ended} == ended)
    processes.wait_for("the History Server", lambda: completed(history_server, client.known.application_id))
    for one, exit_code in ((client, 0), (in_cluster, None)):
        one.watch.finish(10.0)
        story.before_the_end.append(len(one.told))
        one.watch.ended("FINISHED", "spark-submit", {one.known.application_id}, f"exit code {exit_code}")
    story.final = {kind: page.shown(kind) for kind in ended}
    processes.wait_for("the last look", lambda: all(words[-1] == "FINISHED" for words in page.seen.values()))
    page.stopping.set()
    looking.join()
    yield story
    for one in story.both:
        one.watch.stop()


def ask(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as reply:  # noqa: S310 - the loopback
        return json.load(reply)


def completed(history_server: str, application_id: str | None) -> bool:
    try:
        (attempt,) = ask(f"{history_server}/api/v1/applications/{application_id}")["attempts"]
    except OSError:
        return False
    return bool(attempt["completed"])


def is_within(part: list[str], whole: list[str]) -> bool:
    """Whether all of a part comes in the whole, in its order."""
    rest = iter(whole)
    return all(word in rest for word in part)


def test_the_master_was_away_and_came_back_with_both(story: Story) -> None:
    known = [word for word in story.page.masters if word in ("ALIVE", "gone")]
    assert known == ["ALIVE", "gone", "ALIVE"], story.page.masters
    for one in (*story.client.masters, *story.cluster.masters):
        # One that is not asked once in between has not shown anything.
        assert is_within([str(word) for word in (True, False, False, True)], [str(word) for word in one.answers])


def test_the_ways_are_those_that_the_page_shows(story: Story) -> None:
    client, cluster = story.both
    assert story.final["drivers"] == {cluster.known.driver_id: "FINISHED"}
    assert story.final["apps"] == {client.known.application_id: "FINISHED", cluster.known.application_id: "FINISHED"}
    ways: dict[str, list[str]] = {}
    for one in (*client.told, *cluster.told):
        if one.subject in ("DRIVER", "APPLICATION"):
            ways.setdefault(one.subject_id, []).append(one.new_status)
    assert ways.pop(client.watch.driver_id) == ["SUBMITTED", "FINISHED"], "in client mode the master knows of none"
    assert ways.keys() == story.page.seen.keys()
    for thing, seen in story.page.seen.items():
        assert is_within(seen, ways[thing]), (thing, seen, ways)
    assert ways == {
        client.known.application_id: ["WAITING", "RUNNING", "FINISHED"],
        cluster.known.application_id: ["WAITING", "RUNNING", "FINISHED"],
        cluster.known.driver_id: ["SUBMITTED", "RUNNING", "FINISHED"],
    }


def test_while_the_master_was_away_nothing_ended_and_afterwards_nothing_began_anew(story: Story) -> None:
    assert [back - killed for killed, back in story.away] == [0, 0]
    for one in story.both:
        things = [(each.subject, each.application_id, each.subject_id, each.new_status) for each in one.told]
        assert len(set(things)) == len(things)


def test_the_ends_are_told_by_those_who_saw_them(story: Story) -> None:
    client, cluster = story.both
    # In client mode the driver's end is all that is left to add, in cluster mode there is nothing.
    added = [one.told[known:] for one, known in zip(story.both, story.before_the_end, strict=True)]
    assert [[(one.subject, one.source) for one in each] for each in added] == [[("DRIVER", "spark-submit")], []]
    ends = [one for one in (*client.told, *cluster.told) if one.new_status == "FINISHED" and one.subject != "SPARK_JOB"]
    assert {one.source for one in ends if one.subject == "APPLICATION"} == {"standalone master"}
    assert cluster.watch.driver_status == "FINISHED"


def test_the_history_server_says_the_same_of_the_application(story: Story, history_server: str) -> None:
    application_id = story.client.known.application_id
    told = {
        one.subject_id: one.new_status
        for one in story.client.told
        if (one.subject, one.application_id) == ("SPARK_JOB", application_id)
    }
    jobs = ask(f"{history_server}/api/v1/applications/{application_id}/jobs")
    assert {str(job["jobId"]): job["status"] for job in jobs} == dict.fromkeys(told, "SUCCEEDED")
    assert told == {"0": "FINISHED", "1": "FINISHED"}


def test_without_recovery_the_next_master_knows_nothing(cluster: StandaloneCluster, story: Story) -> None:
    """The last test: it starts one that forgets."""
    known = Driver(application_id=story.client.known.application_id)
    extra = {"master_ui_url": cluster.ui_url}
    source = Sources(Endpoints(cluster.url, "client", extra), known).while_running[0]
    assert [one.status for one in polled(source)][-1] == "FINISHED"
    cluster.kill_master()
    with pytest.raises(NoAnswerError, match="Connection refused"):
        polled(source)
    cluster.start_master()
    with pytest.raises(NoAnswerError, match=f"does not know {known.application_id}"):
        polled(source)
