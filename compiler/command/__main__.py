"""`python -m compiler.command`: the same as `monocu`."""

import sys

from compiler.command.main import main

sys.exit(main())
