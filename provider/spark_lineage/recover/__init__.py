"""Sends the end of a try whose own process could not: finds and reads what it left behind, once."""
