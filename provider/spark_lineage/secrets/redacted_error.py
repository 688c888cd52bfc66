"""Makes exceptions fit to be shown, in place: Airflow logs their text and sends it in ``errorMessage``."""

from __future__ import annotations

from spark_lineage.secrets.redaction import redact, redact_value


def explain_error(error: BaseException, cause: str) -> None:
    """Put why the application failed before the text of an exception, which is the command and the end of its log."""
    if cause and error.args and isinstance(error.args[0], str) and cause not in error.args[0][: len(cause)]:
        error.args = (f"{cause}\n{error.args[0]}", *error.args[1:])


def redact_error(error: BaseException) -> None:
    """Redact an exception, what it was raised from, its notes, and the members of a group.

    So are texts, lists and maps among its attributes, of which it may make its text (``CalledProcessError.cmd``). Other
    objects stay what they are.
    """
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.args = tuple(redact_value(arg) for arg in current.args)
        if isinstance(current, OSError):
            # Its text comes from these, which no longer follow its arguments.
            for name in ("strerror", "filename", "filename2"):
                text = getattr(current, name)
                if isinstance(text, str):
                    setattr(current, name, redact(text))
        own = {key: value for key, value in vars(current).items() if isinstance(value, (str, list, tuple, dict))}
        # Not by setattr: a property may stand before it.
        vars(current).update(redact_value(own))
        if notes := getattr(current, "__notes__", None):
            current.__notes__ = [redact(str(note)) for note in notes]
        if isinstance(current, BaseExceptionGroup):
            todo.extend(current.exceptions)
        todo += [current.__cause__, current.__context__]
