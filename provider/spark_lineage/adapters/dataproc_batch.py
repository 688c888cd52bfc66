"""``DataprocCreateBatchOperator``: a batch, for which Dataproc makes a cluster of its own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_lineage.adapters.dataproc import ONCE, DataprocAdapter


class DataprocBatchAdapter(DataprocAdapter):
    """Adapts the methods of batches.

    A retry with the same ``batch_id`` attaches to the batch of the earlier try.
    """

    submit_method, get_method, noun = "create_batch", "get_batch", "batch"

    @staticmethod
    def message(given: Any) -> Any:
        """Return a copy of a batch."""
        from google.cloud.dataproc_v1 import Batch

        return Batch(given)

    @staticmethod
    def properties(message: Any) -> Any:
        """Return the properties of the runtime of a batch."""
        return type(message).pb(message).runtime_config.properties

    @staticmethod
    def state(answer: Any) -> tuple[str, str]:
        """Return the state of a batch."""
        return answer.state.name, answer.state_message

    @staticmethod
    def id_of(answer: Any) -> str:
        """Return the id of a batch, of its operation."""
        return str(answer.metadata.batch.rpartition("/")[2])

    def is_there(self, given: Mapping[str, Any]) -> bool:
        """Whether there is a batch of that id; where that is unknown, it is created."""
        if not given.get("batch_id"):
            return False
        try:
            self.get_stock(**{key: given[key] for key in ("batch_id", "region", "project_id")}, **ONCE)
        except Exception:
            return False
        return True
