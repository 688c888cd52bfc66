"""``python -m spark_lineage.cli``."""

import sys

from spark_lineage.cli import main

sys.exit(main())
