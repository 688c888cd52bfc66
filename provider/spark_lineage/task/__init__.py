"""One task, from its settings to its end."""
