"""Tells listeners that others plug in what happens to a job and to the catalog."""
