"""Looks for problems that would lose lineage: one module for each kind of check."""
