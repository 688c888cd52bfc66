"""``kube-apiserver`` and ``etcd``, built from the Go module proxy into the cache: 8 minutes on two cores, once."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from lineage_backends.processes import NotInstalledError, cache_directory, run

VERSION = "1.33.0"
ETCD_VERSION = "3.5.21"
NAMES = ("kube-apiserver", "etcd")
_COMPONENT = "k8s.io/component-base/version"
_ETCD = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""


def binaries() -> Path:
    """Return the folder in the cache with both programs; builds them where they are missing.

    :raises NotInstalledError: when they are missing, and so is Go
    """
    folder = _folder()
    if not are_built():
        if shutil.which("go") is None:
            raise NotInstalledError("kube-apiserver is built with Go 1.24 or newer, and there is no go on the PATH")
        folder.mkdir(exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not are_built():
                _build(folder)
    return folder


def are_built() -> bool:
    """Whether both are in the cache."""
    return all((_folder() / name).exists() for name in NAMES)


def _folder() -> Path:
    return cache_directory() / f"kubernetes-{VERSION}"


def _build(folder: Path) -> None:
    env = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off", "CGO_ENABLED": "0"}
    major, minor, _ = VERSION.split(".")
    stamps = {"gitVersion": f"v{VERSION}", "gitMajor": major, "gitMinor": minor}
    stamped = " ".join(["-s -w", *(f"-X {_COMPONENT}.{key}={value}" for key, value in stamps.items())])
    with tempfile.TemporaryDirectory(prefix="kubernetes-", dir=folder) as place:
        found = run("go mod download", ["go", "mod", "download", "-json", f"k8s.io/kubernetes@v{VERSION}"], env=env)
        source = Path(place, "kubernetes")
        shutil.copytree(json.loads(found)["Dir"], source, copy_function=shutil.copy)
        run("chmod", ["chmod", "-R", "u+w", source], env=env)
        for name in ("go.work", "go.work.sum"):
            (source / name).unlink(missing_ok=True)
        # The module has none of the parts that its repository holds in a folder: they are modules of their own.
        module = source / "go.mod"
        text = re.sub(r"=> \./staging/src/(\S+)", rf"=> \1 v0.{minor}.0", module.read_text())
        module.write_text(text)
        command = ["go", "build", "-ldflags", stamped, "-o", folder / "kube-apiserver", "./cmd/kube-apiserver"]
        run("go build", command, env=env, cwd=source)
        etcd = Path(place, "etcd")
        etcd.mkdir()
        (etcd / "main.go").write_text(_ETCD)
        for command in (
            ["go", "mod", "init", "etcd"],
            ["go", "get", f"go.etcd.io/etcd/server/v3@v{ETCD_VERSION}"],
            ["go", "build", "-ldflags", "-s -w", "-o", folder / "etcd", "."],
        ):
            run("go", command, env=env, cwd=etcd)
