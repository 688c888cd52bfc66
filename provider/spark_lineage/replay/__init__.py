"""Sends events again that are kept beside the lineage of their launch: the command ``replay``."""
