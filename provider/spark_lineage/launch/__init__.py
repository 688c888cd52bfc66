"""One launch of a task, shared by all packages: its files, its time, its log."""
