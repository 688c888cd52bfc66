"""Finds and masks what must not be told: in texts, values, events and errors; a leaf."""
