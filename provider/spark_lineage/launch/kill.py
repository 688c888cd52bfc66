"""Whether the task is being killed, and how much time it has then."""

from __future__ import annotations

from spark_lineage.launch.deadline import KILLED_SECONDS, Deadline


class Kill:
    """Whether and why the end of the task was asked for, and the one ``deadline`` of all that is done for its lineage.

    What has ended by itself cannot be killed any more: then nothing ``is_asked``, but there is no more time either.
    """

    def __init__(self) -> None:
        self.why = ""
        self.is_asked = False
        self.deadline = Deadline()

    def ask(self, why: str, *, is_too_late: bool = False, is_hurried: bool = True) -> None:
        """Learn that the end is asked for; what is asked again changes nothing.

        :param is_hurried: whether Airflow is going to kill the process: then the time begins
        """
        if not self.why:
            self.why, self.is_asked = why, not is_too_late
        if is_hurried:
            self.deadline.hurry(KILLED_SECONDS)
