"""`python -m monocu`: the command."""

import sys

from compiler.command.main import main

sys.exit(main())
