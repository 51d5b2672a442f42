"""`python -m ade` is `ade`."""

from ade.cli import main

if __name__ == "__main__":
    main()
