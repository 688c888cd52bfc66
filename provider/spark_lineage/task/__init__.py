"""One task, from its settings to its end: ``session`` leads it through ``prepared``, ``running`` and ``ended``.

``task_events`` makes and sends its events, ``tracking`` says when those come that it sends while it runs, ``links`` is
what its page in Airflow shows, and ``last_end`` remembers the program for its next run.
"""
