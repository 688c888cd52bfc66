"""One piece of Spark work seen from outside: ``submission`` has its lineage files, its event logs and its status.

``collector`` reads what lies in the directory of the launch. What is elsewhere is copied into it: by ``event_channel``
the events of the listener (``driver_log``, ``received_events``), and by ``log_mirror`` Spark's event log
(``stored_event_log``, ``delivered_logs``, ``history_log``). ``declared`` adds what the DAG itself declares.
"""
