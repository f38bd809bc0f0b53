"""python -m tenon and the command tenon: the tool that the package carries."""

import os
import sys


def main() -> None:
    """Replace this process by the tool."""
    tool = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "tenon")
    os.execv(tool, ["tenon", *sys.argv[1:]])


if __name__ == "__main__":
    main()
