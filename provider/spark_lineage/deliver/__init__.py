"""Delivers events to backends, through an outbox that loses none.

A task's ``ConnectionSender`` (for all other events of Airflow the ``ConnectionTransport``) stores each ``Outgoing``
event in the ``Spool`` of its destination, and calls the ``Courier``, which sends it by a ``Sender``:

- on disk first, in order, no run opened again, at most 500 MB: ``Spool``
- at least once, also after a kill, and couriers that outlive the task: ``courier``
- pauses of a backend or of one run: ``Pauses``; which answer means which: ``rejection_of`` in ``sender``
- bounded waits, and events that cannot be stored: ``ConnectionSender``
- one end of a run: ``append_end`` in ``outgoing``
- commands and servers: ``Outbox``; forms and *Test connection*: ``hooks``
"""
