"""Apache Atlas: a task's events as a process between its datasets, over REST v2 or the notifications of hooks."""
