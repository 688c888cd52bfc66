"""Listeners of jobs and of catalogs."""
