"""Notifies plugged-in listeners of changes to a job and to catalogs."""
