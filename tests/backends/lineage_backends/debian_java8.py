"""Java 8 for servers that run on nothing newer: a package of Debian unstable in the cache, not installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from lineage_backends.processes import BackendError, NotInstalledError, cache_directory, run

# Unstable's Java wants a newer C library than the system may have: that comes beside it.
PACKAGES = ("openjdk-8-jre-headless", "libc6")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def java8() -> list[str]:
    """The command that runs Java 8: that of ``JAVA8_HOME``, else Debian's, which is fetched the first time."""
    if home := os.environ.get("JAVA8_HOME"):
        return [f"{home}/bin/java"]
    root = cache_directory() / "java8"
    if not root.is_dir():
        with tempfile.TemporaryDirectory(dir=root.parent) as workspace:
            unpacked = _unpacked(Path(workspace))
            try:
                unpacked.rename(root)
            except OSError:  # another test run was quicker
                if not root.is_dir():
                    raise
    program = _only(root, "usr/lib/jvm/java-8-openjdk-*/jre/bin/java")
    library = _only(root, "usr/lib/*/libc.so.6").parent
    launcher = _only(program.parents[1], "lib/*/jli/libjli.so").parent
    return [str(program.parent / "loader"), "--library-path", f"{library}:{launcher}", str(program)]


def _unpacked(workspace: Path) -> Path:
    root = workspace / "root"
    for package in _download(workspace):
        run("dpkg", ["dpkg", "-x", package, root], env={"PATH": os.defpath})
    for link in root.rglob("*"):
        if link.is_symlink() and (target := link.readlink()).is_relative_to("/etc"):  # Java's own settings
            link.unlink()
            link.symlink_to(os.path.relpath(root / target.relative_to("/"), link.parent))
    # Java looks for itself beside the program that the kernel started, which is the loader.
    loader = _only(root, "usr/lib/*/ld-linux-*.so.*").resolve()
    shutil.copy(loader, _only(root, "usr/lib/jvm/java-8-openjdk-*/jre/bin") / "loader")
    return root


def _download(workspace: Path) -> Sequence[Path]:
    """The packages, by an apt with a state of its own: the system's is neither changed nor asked."""
    if not shutil.which("apt-get") or not KEYRING.exists():
        raise NotInstalledError("Atlas needs Java 8. This is no Debian, which has it: set JAVA8_HOME.")
    for directory in ("state/lists/partial", "cache/archives/partial"):
        (workspace / directory).mkdir(parents=True)
    sources = workspace / "sources.list"
    sources.write_text(f"deb [signed-by={KEYRING}] {_mirror()} unstable main\n")
    options = {
        "Dir::State": workspace / "state",
        "Dir::State::status": workspace / "status",
        "Dir::Cache": workspace / "cache",
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "APT::Sandbox::User": "",  # the account of apt cannot write here
        "Debug::NoLocking": "1",
    }
    (workspace / "status").touch()
    apt = ["apt-get", "-q", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]
    env = dict(os.environ)
    run("apt-get update", [*apt, "update"], env=env, cwd=workspace)
    run("apt-get download", [*apt, "download", *PACKAGES], env=env, cwd=workspace)
    return sorted(workspace.glob("*.deb"))


def _mirror() -> str:
    """Where the system's own packages come from."""
    release = dict(line.split("=", 1) for line in Path("/etc/os-release").read_text().splitlines() if "=" in line)
    targets = ["apt-get", "indextargets", "--format", "$(RELEASE) $(SITE)", "Created-By: Packages"]
    for line in run("apt-get indextargets", targets, env=dict(os.environ)).splitlines():
        name, _, site = line.partition(" ")
        if name in {release.get("VERSION_CODENAME"), "stable", "testing", "unstable", "sid"}:
            return site
    raise NotInstalledError("Atlas needs Java 8, and apt names no mirror of Debian to fetch it from: set JAVA8_HOME.")


def _only(root: Path, pattern: str) -> Path:
    found = sorted(root.glob(pattern))
    if not found:
        raise BackendError(f"Java 8 was unpacked into {root} without {pattern}.")
    return found[0]
