"""`python -m perflint`."""

# Modules that Python has loaded by itself. All others must wait, even `__future__`: with `-m` Python looks for modules
# in the working directory first. That may be a foreign checkout, whose modules must not run.
import os
import sys

try:
    if not sys.flags.safe_path and sys.path[0] == os.getcwd():
        del sys.path[0]
except FileNotFoundError:
    # The working directory was removed; Python did not enter it.
    pass

try:
    from perflint.cli.main import main
except KeyboardInterrupt:
    sys.exit(130)

sys.exit(main())
