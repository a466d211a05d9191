"""`python -m perflint`."""

from __future__ import annotations

import sys

from perflint.cli.main import main

sys.exit(main())
