"""The durable outbox: an event is on disk before it is sent, and leaves when the backend has taken it."""
