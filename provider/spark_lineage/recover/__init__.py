"""Tells the end of a try whose own process could not: what it left behind is found, read, judged and sent, once."""
