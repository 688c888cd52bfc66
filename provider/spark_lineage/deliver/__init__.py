"""Delivers events to backends, through an outbox that loses none."""
