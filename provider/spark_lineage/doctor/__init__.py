"""Looks for what would lose lineage before it does: one module for each kind of check."""
