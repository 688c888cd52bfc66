"""Finds and masks secrets in texts, values, events and errors; a leaf."""
