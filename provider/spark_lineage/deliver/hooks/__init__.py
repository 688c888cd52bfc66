"""Hooks of the connection types of this package."""
