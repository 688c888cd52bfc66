"""One launch of a task, shared by all rooms: its files, its time, its log."""
