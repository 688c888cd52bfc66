"""Where the listener jar comes from."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import http.server
import io
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from urllib.request import HTTPHandler, HTTPSHandler

import pytest

from spark_lineage.inject import jar_cache
from spark_lineage.inject.class_path import Jar, JarNotFoundError
from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation, find_installation
from spark_lineage.inject.ivy import settings_xml
from spark_lineage.inject.jar import resolve_jar
from spark_lineage.settings.defaults import DEFAULT_JAR

COORDINATE = "com.example:openlineage-spark_2.13:9.9.9"
NAME = "openlineage-spark_2.13-9.9.9"
ROOT = Path(jar_cache.__file__).parents[2]


def jar_bytes(text: str = "class") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("A.class"), text)  # without the time of day, to be the same at every call
    return stream.getvalue()


def no_spark() -> SparkInstallation:
    message = "no Spark here"
    raise InstallationNotFoundError(message)


def resolve(spec: str, cache_dir: Path, **changes) -> Jar:
    arguments = {
        "installation": no_spark,
        "cache_dir": cache_dir,
        "ivy_settings": None,
        "repositories": (),
        "env": {"PATH": os.environ["PATH"]},
        "timeout_seconds": 30.0,
    }
    return resolve_jar(spec, **(arguments | changes))


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "state" / "cache"


# Paths and URLs that only Spark reads


@pytest.mark.parametrize("form", ["{}", "file://{}", "file:{}", "file://localhost{}", " {} "])
def test_a_path_is_used_as_it_is(tmp_path, cache, form):
    jar = tmp_path / "my jar.jar"
    jar.write_bytes(jar_bytes())
    written = str(jar).replace(" ", "%20") if "file:" in form else str(jar)
    assert resolve(form.format(written), cache) == Jar(str(jar), is_local=True)
    assert not cache.exists()


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"PK", jar_bytes()[:40]])
def test_a_file_that_is_no_jar_is_refused(tmp_path, cache, content):
    jar = tmp_path / "a.jar"
    jar.write_bytes(content)
    with pytest.raises(JarNotFoundError, match=r"a\.jar is no jar"):
        resolve(str(jar), cache)


def test_missing_paths_and_folders(tmp_path, cache):
    with pytest.raises(JarNotFoundError, match=r"none\.jar: No such file.*Put the jar there"):
        resolve(f"{tmp_path}/none.jar", cache)
    with pytest.raises(JarNotFoundError, match="Is a directory"):
        resolve(str(tmp_path), cache)
    with pytest.raises(JarNotFoundError, match="on another machine"):
        resolve("file://host/a.jar", cache)


@pytest.mark.parametrize("character", [",", ":"])
def test_a_path_that_spark_would_split_is_refused(tmp_path, cache, character):
    jar = tmp_path / f"a{character}b.jar"
    jar.write_bytes(jar_bytes())
    with pytest.raises(JarNotFoundError, match="which separate jars"):
        resolve(str(jar), cache)


@pytest.mark.parametrize(
    "url", ["s3://b/a.jar", "hdfs:///a.jar", "hdfs:/a.jar", "local:/opt/a.jar", "gs://b/k:a:1.jar"]
)
def test_other_urls_are_for_spark(cache, url):
    assert resolve(url, cache) == Jar(url, is_local=False)


@pytest.mark.parametrize(
    "spec", ["", "a.jar", "lib/a.jar", "g:a", "g:a:1:tests", "g:a:[1,2)", "-settings:a:1", "g:a b:1"]
)
def test_what_is_nothing_of_this_is_refused(cache, spec):
    with pytest.raises(JarNotFoundError, match="neither an absolute path"):
        resolve(spec, cache)


def test_scala_version_is_filled_in(tmp_path, cache):
    jar = tmp_path / "listener_2.12.jar"
    jar.write_bytes(jar_bytes())
    spark = SparkInstallation(tmp_path, "3.5.9", "2.12")
    assert resolve(f"{tmp_path}/listener_{{scala}}.jar", cache, installation=lambda: spark).location == str(jar)


@pytest.mark.parametrize("spec", [DEFAULT_JAR, COORDINATE])
def test_a_coordinate_needs_spark(cache, spec):
    with pytest.raises(JarNotFoundError, match=r"needs Spark\. no Spark here"):
        resolve(spec, cache)


# Downloads


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Authorization")))
        status, headers, body = self.server.answers[self.path.partition("?")[0]]
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.end_headers()
        try:
            for piece in body if isinstance(body, list) else [body]:
                self.wfile.write(piece)
                self.wfile.flush()
                time.sleep(0.2 if isinstance(body, list) else 0)
        except OSError:
            pass

    def log_message(self, *_):
        pass


@pytest.fixture
def web():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    server.requests, server.answers = [], {}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    server.address = f"127.0.0.1:{server.server_port}"
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_download_happens_once(web, cache):
    web.answers["/x/listener.jar"] = (200, {}, jar_bytes())
    url = f"http://bob:hunter%402@{web.address}/x/listener.jar"
    first = resolve(url, cache)
    assert first.is_local
    assert Path(first.location).read_bytes() == jar_bytes()
    assert Path(first.location).name.startswith("listener-")
    assert resolve(url, cache) == first
    assert web.requests == [("/x/listener.jar", f"Basic {base64.b64encode(b'bob:hunter@2').decode()}")]


def test_a_redirect_is_followed_without_the_login(web, cache):
    web.answers["/a.jar"] = (302, {"Location": "/storage/b.jar?signature=1"}, b"")
    web.answers["/storage/b.jar"] = (200, {}, jar_bytes())
    assert resolve(f"http://bob:hunter2@{web.address}/a.jar#part", cache).is_local
    login = base64.b64encode(b"bob:hunter2").decode()
    assert web.requests == [("/a.jar", f"Basic {login}"), ("/storage/b.jar?signature=1", None)]


@pytest.mark.parametrize(
    ("scheme", "target", "is_followed"),
    [
        ("https", "http", False),
        ("https", "ftp", False),
        ("https", "https", True),
        ("http", "https", True),
        ("http", "http", True),
    ],
)
def test_no_redirect_leads_from_https_to_another_protocol(web, cache, monkeypatch, scheme, target, is_followed):
    # The server of this test has no certificate.
    monkeypatch.setattr(HTTPSHandler, "https_open", HTTPHandler.http_open)
    web.answers["/a.jar"] = (302, {"Location": f"{target}://{web.address}/b.jar"}, b"")
    web.answers["/b.jar"] = (200, {}, jar_bytes())
    url = f"{scheme}://{web.address}/a.jar"
    if is_followed:
        assert resolve(url, cache).is_local
    else:
        with pytest.raises(JarNotFoundError, match="it redirects from https to another protocol"):
            resolve(url, cache)
    assert len(web.requests) == 1 + is_followed


def test_an_invalid_url_is_refused_without_its_login(cache):
    with pytest.raises(JarNotFoundError, match=r"is no valid URL\. Correct it") as caught:
        resolve("http://bob:hunter2@[::1/a.jar", cache)
    assert "hunter2" not in str(caught.value)


def test_every_url_has_its_own_entry(web, cache):
    for version in "12":
        web.answers[f"/{version}/a.jar"] = (200, {}, jar_bytes(version))
    jars = [resolve(f"http://{web.address}/{version}/a.jar", cache) for version in "12"]
    assert [Path(jar.location).read_bytes() for jar in jars] == [jar_bytes("1"), jar_bytes("2")]


def test_cache_is_private_and_left_tidy(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    jar = Path(resolve(f"http://{web.address}/a.jar", cache).location)
    for folder in (jar.parent, cache, cache.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in jar.parent.iterdir()) == [
        jar.name,
        f"{jar.name}.lock",
        f"{jar.name}.sha256",
    ]
    assert Path(f"{jar}.sha256").read_text().strip() == hashlib.sha256(jar_bytes()).hexdigest()


def test_a_cache_that_others_can_write_is_refused(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    folder = Path(resolve(url, cache).location).parent
    folder.chmod(0o777)
    with pytest.raises(JarNotFoundError, match="written by others"):
        resolve(url, cache)


def test_a_cache_of_another_user_is_refused(cache, monkeypatch):
    user = os.geteuid() + 1
    (cache / f"jars-{user}").mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(JarNotFoundError, match="belongs to another user"):
        resolve("http://127.0.0.1:1/a.jar", cache)


def test_a_cache_that_cannot_be_made(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(JarNotFoundError, match=r"Cannot use the cache .*Set a cache folder"):
        resolve("http://127.0.0.1:1/a.jar", tmp_path / "file" / "cache")


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        ((404, {}, b"gone"), "HTTP 404"),
        ((200, {}, b"<html>login</html>"), "is no jar"),
        ((200, {"Content-Length": "9999"}, jar_bytes()), "after .* of 9999 bytes"),
        ((302, {"Location": "ftp:// x"}, b""), "Cannot download"),
    ],
)
def test_failed_downloads_are_told_without_secrets_and_remembered(web, cache, monkeypatch, answer, cause):
    web.answers["/a.jar"] = answer
    url = f"http://bob:hunter2@{web.address}/a.jar?X-Amz-Signature=hunter3"
    with pytest.raises(JarNotFoundError, match=cause) as caught:
        resolve(url, cache)
    assert "hunter" not in str(caught.value)
    assert f"http://{web.address}/a.jar" in str(caught.value)
    with pytest.raises(JarNotFoundError, match=f"{cause}.*ago; tried again after 600 s") as caught:
        resolve(url, cache)
    assert "hunter" not in str(caught.value)
    assert len(web.requests) == 1
    stored = "".join(file.read_text() for file in cache.rglob("*.failed"))
    assert "hunter" not in stored
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    if cause == "HTTP 404":
        # The clock was put back since.
        failed = next(cache.rglob("*.failed"))
        os.utime(failed, (time.time() + 3600,) * 2)
    else:
        monkeypatch.setattr(jar_cache, "FAILURE_MEMORY_SECONDS", 0)
    assert resolve(url, cache).is_local
    assert not list(cache.rglob("*.failed"))


def test_a_dripping_server_is_left_at_the_time_limit(web, cache):
    web.answers["/a.jar"] = (200, {}, [b"P"] * 50)
    started = time.monotonic()
    with pytest.raises(JarNotFoundError, match="the time limit was over"):
        resolve(f"http://{web.address}/a.jar", cache, timeout_seconds=0.7)
    assert time.monotonic() - started < 3


def test_a_damaged_entry_is_resolved_again_with_a_warning(web, cache, caplog):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    jar = Path(resolve(url, cache).location)
    jar.write_bytes(jar_bytes("evil"))
    with caplog.at_level(logging.WARNING):
        assert resolve(url, cache).location == str(jar)
    assert caplog.text.count("does not have its checksum") == 1
    assert jar.read_bytes() == jar_bytes()
    Path(f"{jar}.sha256").unlink()
    resolve(url, cache)
    assert len(web.requests) == 3


def test_leftovers_of_a_killed_process_are_swept(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    jar = Path(resolve(url, cache).location)
    leftover = jar.parent / f".{jar.stem}-x"
    leftover.mkdir()
    (leftover / "ivysettings.xml").write_text("secret")
    jar.unlink()
    resolve(url, cache)
    assert not leftover.exists()


def test_waiting_for_another_task_ends_at_the_time_limit(cache):
    entry = jar_cache.CacheEntry(cache, "spec", "name", "origin")
    entry.folder.mkdir(parents=True, mode=0o700)
    with Path(f"{entry.jar}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(JarNotFoundError, match="Another task was still resolving"):
            entry.get(lambda *_: pytest.fail("resolved without the lock"), 0.3)
    assert not list(cache.rglob("*.failed"))


@pytest.mark.parametrize(("seconds", "is_remembered"), [(10.0, True), (0.5, False)])
def test_a_failure_after_a_long_wait_says_nothing_to_others(cache, seconds, is_remembered):
    entry = jar_cache.CacheEntry(cache, "spec", "name", "origin")
    entry.folder.mkdir(parents=True, mode=0o700)
    given = []

    def fail(folder: Path, left: float) -> Path:
        given.append(left)
        raise JarNotFoundError(f"not within {folder}")

    with Path(f"{entry.jar}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(0.3, lambda: fcntl.flock(lock, fcntl.LOCK_UN)).start()
        with pytest.raises(JarNotFoundError, match="not within"):
            entry.get(fail, seconds)
    assert 0 < given[0] <= seconds - 0.2
    assert [file.name for file in cache.rglob("*.failed")] == [f"{entry.jar.name}.failed"] * is_remembered


def test_a_file_that_is_not_whole_after_a_crash_does_not_count(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    jar = Path(resolve(url, cache).location)
    Path(f"{jar}.sha256").write_bytes(b"")
    Path(f"{jar}.failed").write_bytes(b"\0" * 20)
    assert Path(resolve(url, cache).location).read_bytes() == jar_bytes()
    assert Path(f"{jar}.sha256").read_text().strip() == hashlib.sha256(jar_bytes()).hexdigest()
    assert len(web.requests) == 2


# Ivy


@pytest.fixture(scope="session")
def spark() -> SparkInstallation:
    if shutil.which("java") is None:
        pytest.skip("java is not on PATH: Ivy cannot run")
    try:
        found = find_installation("spark-submit", {"PATH": os.environ["PATH"]})
    except InstallationNotFoundError as error:
        pytest.skip(f"no Spark with Ivy: {error}")
    return found


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    """A home without ~/.m2, and no Maven Central: a closed port refuses at once."""
    return {
        "PATH": os.environ["PATH"],
        "SPARK_SUBMIT_OPTS": f"-Duser.home={tmp_path}/home",
        "DEFAULT_ARTIFACT_REPOSITORY": f"http://127.0.0.1:{closed_port()}/central",
    }


def closed_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture
def m2(tmp_path) -> Path:
    root = tmp_path / "m2"
    folder = root / "com" / "example" / "openlineage-spark_2.13" / "9.9.9"
    folder.mkdir(parents=True)
    pom = (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>com.example'
        "</groupId><artifactId>openlineage-spark_2.13</artifactId><version>9.9.9</version></project>"
    )
    for suffix, content in ((".pom", pom.encode()), (".jar", jar_bytes())):
        (folder / (NAME + suffix)).write_bytes(content)
        (folder / f"{NAME}{suffix}.sha1").write_text(hashlib.sha1(content).hexdigest())  # noqa: S324  (Maven's)
    return root


def test_repositories_are_asked(spark, env, m2, cache):
    def locate() -> SparkInstallation:
        return SparkInstallation(spark.home, spark.spark_version, "2.13")

    spec = COORDINATE.replace("2.13", "{scala}")
    jar = resolve(spec, cache, installation=locate, repositories=[m2.as_uri()], env=env)
    path = Path(jar.location)
    assert jar.is_local
    assert path.name.startswith(NAME)
    assert path.read_bytes() == jar_bytes()
    assert not list(cache.rglob("ivysettings.xml"))
    shutil.rmtree(m2)
    assert resolve(COORDINATE, cache, env=env) == jar  # neither Spark nor the repository is needed any more


def test_ivy_settings_come_first_and_alone_suffice(spark, env, m2, cache, tmp_path):
    good, bad = tmp_path / "good.xml", tmp_path / "bad.xml"
    text = '<ivysettings><settings defaultResolver="m"/><resolvers><ibiblio name="m" m2compatible="true" root="{}"/>'
    text += "</resolvers></ivysettings>"
    good.write_text(text.format(m2.as_uri()))
    bad.write_text(text.format((tmp_path / "empty").as_uri()))
    given = {"installation": lambda: spark, "env": env}
    assert resolve(COORDINATE, cache, ivy_settings=str(good), **given).is_local
    with pytest.raises(JarNotFoundError, match=r"bad\.xml") as caught:
        resolve(COORDINATE, tmp_path / "cache2", ivy_settings=str(bad), **given)
    assert "settings of Spark" not in str(caught.value)
    # The failure above says nothing about other circumstances.
    both = resolve(COORDINATE, tmp_path / "cache2", ivy_settings=str(bad), repositories=[m2.as_uri()], **given)
    assert both.is_local


def test_ivy_verifies_checksums(spark, env, m2, cache):
    next(m2.rglob("*.jar.sha1")).write_text("0" * 40)
    with pytest.raises(JarNotFoundError, match=r"(?i)invalid sha1|bad checksum|FAILED"):
        resolve(COORDINATE, cache, installation=lambda: spark, repositories=[m2.as_uri()], env=env)
    assert not list(cache.rglob("*.jar"))


def test_a_dead_repository_is_named_without_its_password_and_remembered(spark, env, cache):
    dead = f"http://bob:hunt%40er2@127.0.0.1:{closed_port()}/m2"
    given = {"installation": lambda: spark, "repositories": [dead], "env": env}
    with pytest.raises(JarNotFoundError, match=r"Cannot resolve .*by Ivy") as caught:
        resolve(COORDINATE, cache, **given)
    text = str(caught.value)
    assert dead.rpartition("@")[2] in text
    assert "hunt" not in text
    assert "Make the coordinate reachable" in text
    started = time.monotonic()
    with pytest.raises(JarNotFoundError, match="tried again after 600 s"):
        resolve(COORDINATE, cache, **given)
    assert time.monotonic() - started < 0.5
    stored = next(cache.rglob("*.failed")).read_text()
    assert "hunt" not in stored
    assert set(json.loads(stored)) == {"cause", "circumstances"}


def fake_java(folder: Path, script: str) -> dict[str, str]:
    java = folder / "java-home" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(folder / "java-home"), "PATH": os.environ["PATH"]}


def test_the_whole_process_group_ends_at_the_time_limit(tmp_path, cache):
    pids = tmp_path / "pids"
    env = fake_java(tmp_path, f"sleep 60 &\necho $! $$ > {pids}\nwait")
    started = time.monotonic()
    with pytest.raises(JarNotFoundError, match="the time limit was over"):
        resolve(
            COORDINATE,
            cache,
            installation=lambda: SparkInstallation(tmp_path, "1", "2.13"),
            env=env,
            timeout_seconds=1.0,
        )
    assert time.monotonic() - started < 5
    for pid in pids.read_text().split():
        assert is_gone(int(pid)), pid


def is_gone(pid: int) -> bool:
    for _ in range(50):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_ivy_that_says_success_without_a_file_failed(tmp_path, cache):
    env = fake_java(tmp_path, "echo 'all is well'")
    with pytest.raises(JarNotFoundError, match="all is well"):
        resolve(COORDINATE, cache, installation=lambda: SparkInstallation(tmp_path, "1", "2.13"), env=env)


def test_what_ivy_says_holds_no_password_of_a_repository(tmp_path, cache):
    env = fake_java(tmp_path, "echo 'neither hunt%40er2 nor hunt@er2 is right'")
    with pytest.raises(JarNotFoundError, match=r"neither \*\*\* nor \*\*\* is right"):
        resolve(
            COORDINATE,
            cache,
            installation=lambda: SparkInstallation(tmp_path, "1", "2.13"),
            repositories=["http://[::1/m2", "http://bob:hunt%40er2@h/m2"],
            env=env,
        )


def test_settings_that_were_changed_are_tried_at_once(tmp_path, cache):
    settings, runs = tmp_path / "settings.xml", tmp_path / "runs"
    settings.touch()
    env = fake_java(tmp_path, f"echo run >> {runs}")
    for modified in (1, 1, 2):
        os.utime(settings, (modified, modified))
        with pytest.raises(JarNotFoundError):
            resolve(
                COORDINATE,
                cache,
                installation=lambda: SparkInstallation(tmp_path, "1", "2.13"),
                ivy_settings=str(settings),
                env=env,
            )
    assert runs.read_text() == "run\nrun\n"


def test_generated_settings_are_private(tmp_path, cache):
    env = fake_java(tmp_path, f'while [ "$1" != -settings ]; do shift; done\nstat -c %a "$2" > {tmp_path}/mode')
    with pytest.raises(JarNotFoundError):
        resolve(COORDINATE, cache, installation=lambda: SparkInstallation(tmp_path, "1", "2.13"), env=env)
    assert (tmp_path / "mode").read_text().strip() == "600"
    assert not list(cache.rglob("ivysettings.xml"))


def test_no_java(tmp_path, cache):
    given = {"installation": lambda: SparkInstallation(tmp_path, "1", "2.13")}
    with pytest.raises(JarNotFoundError, match="needs Java, and there is none at PATH"):
        resolve(COORDINATE, cache, env={"PATH": str(tmp_path)}, **given)
    with pytest.raises(JarNotFoundError, match=f"none at {tmp_path}/bin/java"):
        resolve(COORDINATE, tmp_path / "other", env={"JAVA_HOME": str(tmp_path)}, **given)


def test_settings_keep_the_order_and_quote_what_is_in_urls():
    text = settings_xml(['https://u:"&p@h/m2'], {}, 60)
    places = [text.index(part) for part in (".m2/repository", ".ivy2/local", "repository-0", "&amp;p@h/m2/")]
    assert places == sorted(places)


TASK = """
import sys
from pathlib import Path
from spark_lineage.inject.installation import SparkInstallation
from spark_lineage.inject.jar import resolve_jar
spec, cache, home, java_home = sys.argv[1:]
jar = resolve_jar(spec, installation=lambda: SparkInstallation(Path(home), "1", "2.13"), cache_dir=Path(cache),
                  ivy_settings=None, repositories=(), env={"JAVA_HOME": java_home, "PATH": "/usr/bin:/bin"},
                  timeout_seconds=30)
print(jar.location)
"""


def test_tasks_that_ask_at_once_run_ivy_once(tmp_path, cache):
    source, runs = tmp_path / "source.jar", tmp_path / "runs"
    source.write_bytes(jar_bytes())
    env = fake_java(
        tmp_path,
        f"echo run >> {runs}\nsleep 1\n"
        'while [ "$1" != -retrieve ]; do shift; done\n'
        f'cp {source} "$(dirname "$2")/listener.jar"',
    )
    command = [sys.executable, "-c", TASK, COORDINATE, str(cache), str(tmp_path), env["JAVA_HOME"]]
    tasks = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}) for _ in range(3)
    ]
    locations = {task.communicate(timeout=60)[0].strip() for task in tasks}
    assert [task.returncode for task in tasks] == [0, 0, 0]
    assert len(locations) == 1
    assert Path(locations.pop()).read_bytes() == jar_bytes()
    assert runs.read_text() == "run\n"


@pytest.mark.spark
def test_the_default_listener_is_in_maven_central(spark, cache):
    jar = resolve(DEFAULT_JAR, cache, installation=lambda: spark, timeout_seconds=120)
    path = Path(jar.location)
    assert path.name.startswith(f"openlineage-spark_{spark.scala_version}-1.53.0")
    with zipfile.ZipFile(path) as archive:
        assert "io/openlineage/spark/agent/OpenLineageSparkListener.class" in archive.namelist()
