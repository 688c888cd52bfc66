from __future__ import annotations

from lineage_backends.fixtures import certificates, data_rentgen, kafka, openlineage_backend, postgresql

__all__ = ["certificates", "data_rentgen", "kafka", "openlineage_backend", "postgresql"]
