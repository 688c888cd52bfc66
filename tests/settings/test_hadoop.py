"""ResourceManagers in Hadoop's own configuration, which has them in several ways."""

from __future__ import annotations

from pathlib import Path

import pytest
from lineage_backends.hadoop import write_site

from spark_lineage.settings.hadoop import history_server, name_nodes, resource_managers

MANAGER = "yarn.resourcemanager"
SEVERAL = {f"{MANAGER}.ha.enabled": "true", f"{MANAGER}.ha.rm-ids": "rm1, rm2"}


@pytest.mark.parametrize(
    ("properties", "urls"),
    [
        ({}, ()),
        ({f"{MANAGER}.hostname": "rm"}, ("http://rm:8088",)),
        ({f"{MANAGER}.webapp.address": "rm:1"}, ("http://rm:1",)),
        ({f"{MANAGER}.hostname": "rm", f"{MANAGER}.webapp.address": f"${{{MANAGER}.hostname}}:2"}, ("http://rm:2",)),
        ({f"{MANAGER}.webapp.address": "${of.nobody}:2"}, ()),
        ({f"{MANAGER}.webapp.address": "${a}", "a": "${a}"}, ()),
        ({f"{MANAGER}.webapp.address": "someone:secret@rm:1"}, ()),
        ({f"{MANAGER}.hostname": "rm", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:8090",)),
        ({f"{MANAGER}.webapp.https.address": "rm:3", "yarn.http.policy": "HTTPS_ONLY"}, ("https://rm:3",)),
        (
            {**SEVERAL, f"{MANAGER}.webapp.address.rm1": "a:1", f"{MANAGER}.hostname.rm2": "b"},
            ("http://a:1", "http://b:8088"),
        ),
        ({**SEVERAL, f"{MANAGER}.hostname.rm2": "b"}, ("http://b:8088",)),
    ],
)
def test_addresses(tmp_path: Path, properties: dict[str, str], urls: tuple[str, ...]) -> None:
    write_site(tmp_path, "yarn-site", {"yarn.acl.enable": "false", **properties})
    assert resource_managers({"HADOOP_CONF_DIR": str(tmp_path)}) == urls


def test_the_first_directory_that_has_the_file_counts(tmp_path: Path) -> None:
    for name in ("hadoop", "yarn"):
        write_site(tmp_path / name, "yarn-site", {f"{MANAGER}.hostname": name})
    env = {"HADOOP_CONF_DIR": str(tmp_path / "hadoop"), "YARN_CONF_DIR": str(tmp_path / "yarn")}
    assert resource_managers(env) == ("http://hadoop:8088",)
    (tmp_path / "hadoop" / "yarn-site.xml").rename(tmp_path / "hadoop" / "core-site.xml")
    assert resource_managers(env) == ("http://yarn:8088",)
    write_site(tmp_path / "yarn", "yarn-site", {f"{MANAGER}.webapp.address": f"${{{MANAGER}.hostname}}:1"})
    assert resource_managers(env) == ("http://hadoop:1",), "a variable of core-site.xml"


def test_what_cannot_be_read_names_nothing(tmp_path: Path) -> None:
    env = {"HADOOP_CONF_DIR": str(tmp_path), "YARN_CONF_DIR": ""}
    assert resource_managers(env) == resource_managers({}) == ()
    (tmp_path / "yarn-site.xml").write_text("<configuration><property>")
    assert resource_managers(env) == ()


NAMES = "dfs.namenode"
OF_TWO = {"dfs.nameservices": "lake, other", "dfs.ha.namenodes.lake": "nn1,nn2"}


@pytest.mark.parametrize(
    ("url", "properties", "urls"),
    [
        ("hdfs://nn:8020/logs", {}, ("http://nn:9870",)),
        ("hdfs:///logs", {f"{NAMES}.http-address": "0.0.0.0:1"}, ("http://nn:1",)),
        ("/logs", {f"{NAMES}.http-address": "web:1"}, ("http://web:1",)),
        ("", {"dfs.http.policy": "HTTPS_ONLY"}, ("https://nn:9871",)),
        ("hdfs://of.others:8020/logs", {f"{NAMES}.http-address": "web:1"}, ()),
        ("hdfs://nn2:9000/logs", {f"{NAMES}.rpc-address": "nn2:9000"}, ("http://nn2:9870",)),
        ("s3a://bucket/logs", {f"{NAMES}.http-address": "web:1"}, ()),
        (
            "hdfs://lake/logs",
            {**OF_TWO, f"{NAMES}.http-address.lake.nn1": "a:1", f"{NAMES}.rpc-address.lake.nn2": "b:8020"},
            ("http://a:1", "http://b:9870"),
        ),
        ("hdfs://other/logs", {**OF_TWO, f"{NAMES}.http-address.other": "${x}:3", "x": "c"}, ("http://c:3",)),
        ("hdfs://lake/logs", OF_TWO, ()),
        ("hdfs://nn:8020/logs", {f"{NAMES}.http-address": "someone:secret@nn:1"}, ()),
    ],
)
def test_name_nodes_of_a_url(tmp_path: Path, url: str, properties: dict[str, str], urls: tuple[str, ...]) -> None:
    write_site(tmp_path, "core-site", {"fs.defaultFS": "hdfs://nn:8020"})
    write_site(tmp_path, "hdfs-site", properties)
    assert name_nodes({"HADOOP_CONF_DIR": str(tmp_path)}, url) == urls
    assert name_nodes({}, url) == ()


@pytest.mark.parametrize(
    ("address", "url"),
    [
        ("history:18080", "http://history:18080"),
        ("https://history:18480/", "https://history:18480"),
        ("${hadoopconf-yarn.resourcemanager.hostname}:18080", "http://rm:18080"),
        ("${spark.of.nobody}:18080", ""),
        ("http://someone:secret@history:18080", ""),
        ("", ""),
    ],
)
def test_history_server_of_spark_properties(tmp_path: Path, address: str, url: str) -> None:
    write_site(tmp_path, "yarn-site", {f"{MANAGER}.hostname": "rm"})
    properties = {"spark.eventLog.enabled": "true", "spark.yarn.historyServer.address": address}
    assert history_server({"HADOOP_CONF_DIR": str(tmp_path)}, properties) == url
    assert history_server({}, {**properties, "spark.eventLog.enabled": "false"}) == ""
