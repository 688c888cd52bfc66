"""Which arguments of ``spark-submit`` lineage adds to those of the user, so that the log can show them apart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_lineage.inject.class_path import SubmitArguments

AddedArguments = Sequence[tuple[str, str]]
"""Flags and their values."""


def added_arguments(user: SubmitArguments, injected: SubmitArguments, properties_file: Path | None) -> AddedArguments:
    """Return what was injected where the user has given nothing; what joins something of theirs is not told apart.

    :param properties_file: None where the user has one, or nothing was injected by a file
    """
    added = [("--conf", f"{key}={value}") for key, value in injected.conf.items() if key not in user.conf]
    flags = (
        ("--properties-file", None, properties_file),
        ("--jars", user.jars, injected.jars),
        ("--driver-class-path", user.driver_class_path, injected.driver_class_path),
        ("--py-files", user.py_files, injected.py_files),
    )
    return [*added, *((flag, str(ours)) for flag, theirs, ours in flags if ours and not theirs)]


def without(command: Sequence[str], added: AddedArguments) -> list[str]:
    """Return the command that the user would have got."""
    pairs, kept, arguments = set(added), [], iter(enumerate(command))
    for at, argument in arguments:
        if tuple(command[at : at + 2]) in pairs:
            next(arguments)
        else:
            kept.append(argument)
    return kept
