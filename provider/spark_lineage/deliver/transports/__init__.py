"""Transports that raise unless the backend accepted the event, and their configuration from Airflow connections."""
