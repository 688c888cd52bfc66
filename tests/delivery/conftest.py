"""A task with a connection to a strict backend."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass
class Shop:
    """The bench of ``tests/adapters``, whose task names the connection ``shop``."""

    bench: Any
    python: Any

    def run(self, **scenario: Any) -> Any:
        """Run the task as the bench does."""
        return self.bench.run(**scenario)

    def connect(self, conn_id: str, url: str, **extra: Any) -> None:
        """Give Airflow a connection to a backend."""
        connection = {"conn_type": "openlineage", "host": url, "extra": extra}
        self.bench.env[f"AIRFLOW_CONN_{conn_id.upper()}"] = json.dumps(connection)

    @property
    def outbox(self) -> Path:
        """The directory of this user's outbox."""
        return Path(self.bench.root / "outbox" / str(os.getuid()))

    def flush(self) -> None:
        """Have the outbox delivered, as an administrator does."""
        roots = [str(ROOT / root) for root in ("provider", "operators", "listeners")]
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(roots),
            "AIRFLOW_HOME": str(self.bench.root),
            **self.bench.env,
        }
        done = self.python.run("-m", "spark_lineage.cli", "outbox", "flush", env=env)
        assert done.returncode == 0, done.stdout + done.stderr

    @property
    def kept(self) -> list[Any]:
        """The events that are kept beside the lineage."""
        files = self.bench.lineage_dir.glob("*/*/*/*/*/run-events.jsonl")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture
def shop(bench: Any, openlineage_backend: Any, warm_python: Any) -> Shop:
    """A task that sends to the backend."""
    shop = Shop(bench, warm_python)
    shop.connect("shop", openlineage_backend.url)
    bench.env["AIRFLOW__SPARK_LINEAGE__OUTBOX_DIR"] = str(shop.outbox.parent)
    bench.env["AIRFLOW__SPARK_LINEAGE__LINEAGE_CONN_ID"] = "shop"
    return shop
