"""What every room knows of one launch of a task: its files, its time, and its troubles."""
