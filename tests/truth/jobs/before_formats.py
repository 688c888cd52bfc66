"""An ORC file."""

from pathlib import Path

import pyarrow as pa
from pyarrow import orc

Path("stock").mkdir()
orc.write_table(pa.table({"sku": ["a", "b"], "count": [1, 2]}), "stock/part-0.orc")
