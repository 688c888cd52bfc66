"""Operators as people derive them from ``LivyOperator``, and from the one with lineage."""

from __future__ import annotations

from airflow.providers.apache.livy.hooks.livy import LivyHook
from airflow.providers.apache.livy.operators.livy import LivyOperator

from spark_lineage.operators.lineage_livy import LineageLivyOperator


class OwnLivy(LivyOperator):
    """Makes a hook each time that it needs one."""

    @property
    def hook(self) -> LivyHook:
        """The hook."""
        return LivyHook(self._livy_conn_id)


class OwnLineageLivy(LineageLivyOperator):
    """Makes a hook each time that it needs one."""

    @property
    def hook(self) -> LivyHook:
        """The hook."""
        return LivyHook(self._livy_conn_id)
