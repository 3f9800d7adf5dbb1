"""Run the command line as ``python -m irtaudit``."""

from irtaudit.cli import main

if __name__ == "__main__":
    main(prog_name="irtaudit")
