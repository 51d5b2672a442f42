"""`python -m ade` is `ade`."""

import sys


def main() -> None:
    """Run the command line, if what it needs is installed."""
    try:
        from ade.cli import main as run
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        print("ade: commands need more: pip install 'ade-client[cli]'", file=sys.stderr)
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
