"""An operator as people derive it from ``LivyOperator``, for the policy to give lineage to."""

from __future__ import annotations

from airflow.providers.apache.livy.hooks.livy import LivyHook
from airflow.providers.apache.livy.operators.livy import LivyOperator


class OwnLivy(LivyOperator):
    """Makes a hook each time that it needs one."""

    @property
    def hook(self) -> LivyHook:
        """The hook."""
        return LivyHook(self._livy_conn_id)
