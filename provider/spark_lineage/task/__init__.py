"""The story of one task, from its settings to its end."""
