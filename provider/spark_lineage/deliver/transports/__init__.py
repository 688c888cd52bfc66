"""Transports that raise unless the backend said yes, and how the fields of an Airflow connection configure them."""
