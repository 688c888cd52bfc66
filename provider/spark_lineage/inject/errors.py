"""What this room raises; every text says what, where and what to do, and holds no secret."""

from __future__ import annotations


class InstallationNotFoundError(Exception):
    """No Spark installation belongs to the ``spark-submit`` binary; the text says where it was looked for."""


class JarNotFoundError(Exception):
    """The OpenLineage listener jar cannot be had; the text says the cause and the remedy."""


class PropertiesFileError(Exception):
    """A Spark properties file cannot be read or is malformed."""
