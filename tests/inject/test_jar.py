"""Where the listener jar comes from."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import http.server
import io
import os
import socket
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
from lineage_backends.certificates import make_certificates

from spark_lineage.inject.installation import InstallationNotFoundError, SparkInstallation, find_installation
from spark_lineage.inject.jar import _SHA256, resolve_jar
from spark_lineage.inject.properties import JarNotFoundError
from spark_lineage.secrets.redaction import redact
from spark_lineage.settings.places import DEFAULT_JAR

COORDINATE = "com.example:openlineage-spark_2.13:9.9.9"
NAME = "openlineage-spark_2.13-9.9.9"
IN_REPOSITORY = f"/m2/com/example/openlineage-spark_2.13/9.9.9/{NAME}.jar"
ROOT = Path(__file__).parents[2] / "provider"


def jar_bytes(text: str = "class") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(zipfile.ZipInfo("A.class"), text)  # without the time of day, to be the same at every call
    return stream.getvalue()


def no_spark() -> SparkInstallation:
    message = "no Spark here"
    raise InstallationNotFoundError(message)


def closed_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


def resolve(spec: str, cache_dir: Path, **changes) -> str:
    arguments = {
        "installation": no_spark,
        "cache_dir": cache_dir,
        "repositories": [f"http://127.0.0.1:{closed_port()}/m2"],
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
    assert resolve(form.format(written), cache) == str(jar)
    assert not cache.exists()


@pytest.mark.parametrize("content", [b"", b"<html>404</html>", b"PK", jar_bytes()[:40]])
def test_a_file_that_is_no_jar_is_refused(tmp_path, cache, content):
    jar = tmp_path / "a.jar"
    jar.write_bytes(content)
    with pytest.raises(JarNotFoundError, match=r"a\.jar is not a jar"):
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
    assert resolve(url, cache) == url


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
    assert resolve(f"{tmp_path}/listener_{{scala}}.jar", cache, installation=lambda: spark) == str(jar)


def test_the_scala_version_needs_spark(cache):
    with pytest.raises(JarNotFoundError, match=r"needs Spark\. no Spark here"):
        resolve(DEFAULT_JAR, cache)


# Downloads


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append((self.path, self.headers.get("Authorization")))
        status, headers, body = self.server.answers.get(self.path.partition("?")[0], (404, {}, b""))
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


@pytest.fixture
def tls_web(web, tmp_path, monkeypatch):
    """A second server, by https, with the answers of the first."""
    certificates = make_certificates(tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    server.daemon_threads = True
    server.socket = certificates.server_context(wants_client=False).wrap_socket(server.socket, server_side=True)
    server.requests, server.answers = [], web.answers
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    server.address = f"127.0.0.1:{server.server_port}"
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificates.authority))
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_download_happens_once(web, cache):
    web.answers["/x/listener.jar"] = (200, {}, jar_bytes())
    url = f"http://bob:hunter%402@{web.address}/x/listener.jar"
    first = resolve(url, cache)
    assert Path(first).read_bytes() == jar_bytes()
    assert Path(first).name.startswith("listener-")
    assert resolve(url, cache) == first
    assert web.requests == [("/x/listener.jar", f"Basic {base64.b64encode(b'bob:hunter@2').decode()}")]


def test_a_redirect_to_another_host_is_followed_without_the_login(web, cache):
    storage = web.address.replace("127.0.0.1", "localhost")
    web.answers["/a.jar"] = (302, {"Location": f"http://{storage}/storage/b.jar?signature=1"}, b"")
    web.answers["/storage/b.jar"] = (200, {}, jar_bytes())
    resolve(f"http://bob:hunter2@{web.address}/a.jar#part", cache)
    login = base64.b64encode(b"bob:hunter2").decode()
    assert web.requests == [("/a.jar", f"Basic {login}"), ("/storage/b.jar?signature=1", None)]


@pytest.mark.parametrize(
    ("scheme", "target", "problem"),
    [
        ("https", "http", "it redirects to a protocol without encryption"),
        ("https", "ftp", "redirects to a protocol"),
        ("https", "https", ""),
        ("http", "https", ""),
        ("http", "http", ""),
    ],
)
def test_no_redirect_leads_from_https_to_another_protocol(web, tls_web, cache, scheme, target, problem):
    addresses = {"http": web.address, "https": tls_web.address, "ftp": web.address}
    web.answers["/a.jar"] = (302, {"Location": f"{target}://{addresses[target]}/b.jar"}, b"")
    web.answers["/b.jar"] = (200, {}, jar_bytes())
    url = f"{scheme}://{addresses[scheme]}/a.jar"
    if problem:
        with pytest.raises(JarNotFoundError, match=problem):
            resolve(url, cache)
        assert not list(cache.rglob("*.jar"))
    else:
        assert Path(resolve(url, cache)).read_bytes() == jar_bytes()


def test_an_invalid_url_is_refused_without_its_login(cache):
    with pytest.raises(JarNotFoundError, match="no http or https address") as caught:
        resolve("http://bob:hunter2@[::1/a.jar", cache)
    assert "hunter2" not in redact(str(caught.value))
    assert not [path for path in cache.rglob("*") if "hunter2" in path.name]


def test_every_url_has_its_own_entry(web, cache):
    for version in "12":
        web.answers[f"/{version}/a.jar"] = (200, {}, jar_bytes(version))
    jars = [resolve(f"http://{web.address}/{version}/a.jar", cache) for version in "12"]
    assert [Path(jar).read_bytes() for jar in jars] == [jar_bytes("1"), jar_bytes("2")]


def test_cache_is_private_and_left_tidy(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    jar = Path(resolve(f"http://{web.address}/a.jar", cache))
    for folder in (jar.parent, cache, cache.parent):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in jar.parent.iterdir()) == [jar.name, f"{jar.stem}.lock"]


def test_a_cache_that_others_can_write_is_refused(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    folder = Path(resolve(url, cache)).parent
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
        ((200, {}, b"<html>login</html>"), "is not a jar"),
        ((200, {"Content-Length": "9999"}, jar_bytes()[:-30]), "Cannot download"),
        ((302, {"Location": "ftp:// x"}, b""), "Cannot download"),
    ],
)
def test_failed_downloads_are_told_without_secrets_and_tried_again(web, cache, answer, cause):
    web.answers["/a.jar"] = answer
    url = f"http://bob:hunter2@{web.address}/a.jar?X-Amz-Signature=hunter3"
    with pytest.raises(JarNotFoundError, match=cause) as caught:
        resolve(url, cache)
    assert "hunter" not in str(caught.value)
    assert f"http://{web.address}/a.jar" in str(caught.value)
    assert not [path for path in cache.rglob("*") if path.suffix in {".jar", ".part"} or "hunter" in path.name]
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    assert Path(resolve(url, cache)).read_bytes() == jar_bytes()


def test_a_dripping_server_is_left_at_the_time_limit(web, cache):
    web.answers["/a.jar"] = (200, {}, [b"P"] * 50)
    started = time.monotonic()
    with pytest.raises(JarNotFoundError, match="no answer in time"):
        resolve(f"http://{web.address}/a.jar", cache, timeout_seconds=0.7)
    assert time.monotonic() - started < 3


def test_what_a_crash_left_is_downloaded_again(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    jar = Path(resolve(url, cache))
    for left in (b"", jar_bytes()[:40]):
        jar.write_bytes(left)
        jar.with_suffix(".part").write_bytes(b"half")
        assert resolve(url, cache) == str(jar)
        assert jar.read_bytes() == jar_bytes()
        assert not jar.with_suffix(".part").exists()
    assert len(web.requests) == 3


def test_a_task_that_has_waited_for_a_failed_download_does_not_repeat_it(web, cache):
    web.answers["/a.jar"] = (200, {}, jar_bytes())
    url = f"http://{web.address}/a.jar"
    jar = Path(resolve(url, cache))
    jar.unlink()
    with jar.with_suffix(".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        threading.Timer(0.3, lambda: fcntl.flock(lock, fcntl.LOCK_UN)).start()
        with pytest.raises(JarNotFoundError, match="Another task has just failed"):
            resolve(url, cache)
    assert len(web.requests) == 1
    assert resolve(url, cache) == str(jar)


# Coordinates


def test_repositories_are_asked_in_their_order(web, cache):
    web.answers |= {IN_REPOSITORY: (200, {}, jar_bytes()), f"/empty{IN_REPOSITORY}": (404, {}, b"")}
    dead = f"http://127.0.0.1:{closed_port()}/m2"
    repositories = [dead, f"http://{web.address}/empty/m2/", f"http://bob:hunter%402@{web.address}/m2"]
    spec = COORDINATE.replace("2.13", "{scala}")
    spark = SparkInstallation(Path("/spark"), "4.2.0", "2.13")
    jar = resolve(spec, cache, installation=lambda: spark, repositories=repositories)
    assert Path(jar).read_bytes() == jar_bytes()
    assert Path(jar).name.startswith(NAME)
    login = f"Basic {base64.b64encode(b'bob:hunter@2').decode()}"
    asked = [(f"{IN_REPOSITORY}{ending}", login) for ending in ("", ".sha256", ".sha1")]
    assert web.requests == [(f"/empty{IN_REPOSITORY}", None), *asked]
    assert resolve(COORDINATE, cache) == jar  # neither Spark nor the repository is needed any more


def test_repositories_without_it_are_named_without_their_passwords(web, cache):
    web.answers[IN_REPOSITORY] = (403, {}, b"")
    dead = f"http://bob:hunt%40er2@127.0.0.1:{closed_port()}/m2"
    with pytest.raises(JarNotFoundError, match=r"Cannot download .*spark\.jars\.repositories") as caught:
        resolve(COORDINATE, cache, repositories=[dead, f"http://{web.address}/m2", "http://[::1/m2"])
    text = str(caught.value)
    assert f"{dead.rpartition('@')[2]}{IN_REPOSITORY.removeprefix('/m2')}: Connection refused" in text
    assert f"http://{web.address}{IN_REPOSITORY}: HTTP 403" in text
    assert "hunt" not in text


TASK = """
import sys
from pathlib import Path
from spark_lineage.inject.jar import _SHA256, resolve_jar
spec, cache = sys.argv[1:]
print(resolve_jar(spec, installation=None, cache_dir=Path(cache), repositories=(), timeout_seconds=30))
"""


def test_tasks_that_ask_at_once_download_once(web, cache):
    content = jar_bytes()
    web.answers["/a.jar"] = (200, {}, [content[at : at + 20] for at in range(0, len(content), 20)])
    command = [sys.executable, "-c", TASK, f"http://{web.address}/a.jar", str(cache)]
    tasks = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(ROOT)}) for _ in range(3)
    ]
    locations = {task.communicate(timeout=60)[0].strip() for task in tasks}
    assert [task.returncode for task in tasks] == [0, 0, 0]
    assert len(locations) == 1
    assert Path(locations.pop()).read_bytes() == jar_bytes()
    assert len(web.requests) == 1


def test_the_default_repository_stands_in_for_maven_central(web, cache):
    web.answers[IN_REPOSITORY] = (200, {}, jar_bytes())
    assert Path(resolve(COORDINATE, cache, default_repository=f"http://{web.address}/m2")).read_bytes() == jar_bytes()


@pytest.mark.parametrize("algorithm", ["sha256", "sha1"])
def test_jar_that_differs_from_the_checksum_of_its_repository_is_refused(web, cache, algorithm):
    digest = hashlib.new(algorithm, jar_bytes()).hexdigest()
    web.answers[IN_REPOSITORY] = (200, {}, jar_bytes("another"))
    web.answers[f"{IN_REPOSITORY}.{algorithm}"] = (200, {}, f"{digest.upper()}  {NAME}.jar\n".encode())
    with pytest.raises(JarNotFoundError, match=rf"its {algorithm} is \w+, and should be {digest}"):
        resolve(COORDINATE, cache, repositories=[f"http://{web.address}/m2"])
    assert list(cache.glob("*/*.jar")) == []
    web.answers[IN_REPOSITORY] = (200, {}, jar_bytes())
    assert Path(resolve(COORDINATE, cache, repositories=[f"http://{web.address}/m2"])).read_bytes() == jar_bytes()


def test_jar_whose_checksum_cannot_be_read_is_refused(web, cache):
    web.answers |= {IN_REPOSITORY: (200, {}, jar_bytes()), f"{IN_REPOSITORY}.sha256": (500, {}, b"")}
    with pytest.raises(JarNotFoundError, match=r"its sha256 cannot be read: .*500"):
        resolve(COORDINATE, cache, repositories=[f"http://{web.address}/m2"])
    assert list(cache.glob("*/*.jar")) == []
    web.answers[f"{IN_REPOSITORY}.sha256"] = (403, {}, b"")
    assert Path(resolve(COORDINATE, cache, repositories=[f"http://{web.address}/m2"])).read_bytes() == jar_bytes()


def test_default_jar_is_checked_by_the_digest_in_the_package(web, cache):
    place = "/m2/io/openlineage/openlineage-spark_2.13/1.53.0/openlineage-spark_2.13-1.53.0.jar"
    web.answers[place] = (200, {}, jar_bytes())
    web.answers[f"{place}.sha256"] = (200, {}, hashlib.sha256(jar_bytes()).hexdigest().encode())
    spark = SparkInstallation(Path("/spark"), "4.2.0", "2.13")
    with pytest.raises(JarNotFoundError, match=r"its sha256 is .*, and should be 5d84b0ae"):
        resolve(DEFAULT_JAR, cache, installation=lambda: spark, repositories=[f"http://{web.address}/m2"])


@pytest.mark.parametrize("scala", ["2.12", "2.13"])
def test_each_default_jar_has_a_digest(scala):
    assert DEFAULT_JAR.replace("{scala}", scala) in _SHA256


def test_no_redirect_leads_to_plain_http_of_another_host(web, cache):
    web.answers[IN_REPOSITORY] = (302, {"Location": "http://maven.invalid/m2/a.jar"}, b"")
    with pytest.raises(JarNotFoundError, match="without encryption"):
        resolve(COORDINATE, cache, repositories=[f"http://{web.address}/m2"])


def test_plain_http_has_to_be_asked_for(cache):
    with pytest.raises(JarNotFoundError, match=r"not downloaded from http://maven\.invalid/m2/.*over https"):
        resolve(COORDINATE, cache, repositories=["http://me:hunter2@maven.invalid/m2"])
    # Others are asked.
    with pytest.raises(JarNotFoundError, match=r"Cannot download .*127\.0\.0\.1"):
        resolve(COORDINATE, cache, repositories=["http://maven.invalid/m2", f"http://127.0.0.1:{closed_port()}/m2"])
    # Its digest is known.
    spark = SparkInstallation(Path("/spark"), "4.2.0", "2.13")
    with pytest.raises(JarNotFoundError, match="Cannot download"):
        resolve(DEFAULT_JAR, cache, installation=lambda: spark, repositories=["http://maven.invalid/m2"])
    with pytest.raises(JarNotFoundError, match="Cannot download"):
        resolve("http://maven.invalid/a.jar", cache)


@pytest.mark.spark
@pytest.mark.truth
def test_the_default_listener_is_in_maven_central(cache):
    def spark() -> SparkInstallation:
        return find_installation("spark-submit", {"PATH": os.environ["PATH"]})

    jar = resolve(DEFAULT_JAR, cache, installation=spark, repositories=(), timeout_seconds=120)
    assert Path(jar).name.startswith("openlineage-spark_2.13-1.53.0")
    with zipfile.ZipFile(jar) as archive:
        assert "io/openlineage/spark/agent/OpenLineageSparkListener.class" in archive.namelist()
