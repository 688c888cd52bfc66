"""``python -m spark_lineage.cli``."""

import sys

from spark_lineage.cli import main

if __name__ == "__main__":
    sys.exit(main())
