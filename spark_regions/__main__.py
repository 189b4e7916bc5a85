from __future__ import annotations

import sys

from spark_regions.cli import main

sys.exit(main())
