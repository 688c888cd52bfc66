"""What the tab "Lineage" of Airflow shows: its data, and the module that draws it in the browser."""
