"""`python -m tianji` is the same as `tianji`."""

import sys

from tianji.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
