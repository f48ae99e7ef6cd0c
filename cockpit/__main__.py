"""`python -m cockpit` is `cockpit`."""

import sys

from cockpit.cli import main

if __name__ == "__main__":
    sys.exit(main())
