"""Run the command line, as ``irtaudit`` or as ``python -m irtaudit``."""

from __future__ import annotations

import sys


def run() -> None:
    """Run the command line; ctrl-C while it is being imported ends it as ctrl-C later does."""
    try:
        from irtaudit.cli import main
    except KeyboardInterrupt:
        sys.stderr.write("irtaudit: error: interrupted.\n")
        sys.exit(130)
    main(prog_name="irtaudit")


if __name__ == "__main__":
    run()
