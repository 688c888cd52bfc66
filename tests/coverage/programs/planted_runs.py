"""Runs of the installation, with the XComs that tasks leave for the tab: ``EVENT`` is the event of a real driver."""

import json
import os
from datetime import timedelta

from airflow import settings
from airflow._shared.timezones import timezone
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.xcom import XComModel
from airflow.utils.state import DagRunState, TaskInstanceState
from airflow.utils.types import DagRunTriggeredByType, DagRunType
from sqlalchemy.orm import Session

from spark_lineage.deliver.outbox import default_directory
from spark_lineage.deliver.outgoing import Outgoing
from spark_lineage.deliver.spool import Spool
from spark_lineage.view import LIMIT_BYTES, XCOM_KEY, compact

EVENT = json.loads(os.environ["EVENT"])
WHOLE = compact(EVENT, LIMIT_BYTES)
WHY = "No lineage came from the driver: no event log of it in /shared/spark-events."
LEFT = {
    "unread": {"inputs": [], "outputs": [], "why": WHY},
    "log_off": {"inputs": [], "outputs": [], "evidence": []},
    "counting": {"unknown": [["execute_update_command", 2]], "unread": [["CoolVendorJoinIndex", 1]]},
    "undelivered": {"run_id": os.environ["UNDELIVERED"]},
}
NOTHING = {"left_nothing", "off", "refusing", "clashing"}

with Session(settings.engine) as session:
    for dag in SerializedDagModel.read_all_dags(session=session).values():
        if dag.dag_id == "paused":
            continue
        for number in range(5):
            now = timezone.utcnow() - timedelta(hours=5 - number)
            run = dag.create_dagrun(
                run_id=f"r{number}",
                logical_date=now,
                data_interval=(now, now),
                run_after=now,
                run_type=DagRunType.MANUAL,
                triggered_by=DagRunTriggeredByType.TEST,
                state=DagRunState.SUCCESS,
                session=session,
            )
            for one in run.get_task_instances(session=session):
                if one.task_id == "never_ran":
                    continue
                one.state = TaskInstanceState.SUCCESS
                session.flush()
                fields = dag.get_task(one.task_id).template_fields
                if "lineage_dir" not in fields or one.task_id in NOTHING:
                    continue
                # What older runs counted is no matter; of a mapped task one index left nothing.
                view = WHOLE | (LEFT.get(one.task_id, {}) if number > 1 else {"unknown": [["of old", 9]]})
                key = {"dag_id": one.dag_id, "task_id": one.task_id, "run_id": one.run_id, "map_index": one.map_index}
                if (one.map_index, number) != (1, 4):
                    XComModel.set(XCOM_KEY, view, **key, session=session)
        session.commit()

EVENT["run"]["runId"] = os.environ["UNDELIVERED"]
spool = Spool(default_directory() / "marquez")
spool.put(Outgoing.of(json.dumps(EVENT).encode()))
spool.refuse(spool.waiting()[0], "400")
