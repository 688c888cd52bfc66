"""One launch of a task, shared by all packages: its record, its files, its time, its log.

``launch`` is the record by which a later process finds the job, ``stores`` keeps it in Airflow and closes a try once,
``driver`` is what is known of the driver. ``directory`` makes the files of a launch, ``line`` decodes them, ``lock``
guards those that processes share, ``retention`` removes them. ``bounded_run`` limits the time of what may hang, and
``log`` writes without secrets, and guards the user's task from errors of lineage.
"""
