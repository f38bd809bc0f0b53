"""each.py - runs test functions, each in a folder of its own, and counts them."""
import pathlib
import sys
import tempfile
import traceback

sys.dont_write_bytecode = True


def passes(test):
    with tempfile.TemporaryDirectory() as folder:
        try:
            test(pathlib.Path(folder))
        except Exception as problem:        # any exception is a failed test
            print(f"FAIL  {test.__name__.replace('_', ' ')}")
            place = traceback.extract_tb(problem.__traceback__)[-1]
            print(f"      line {place.lineno}: {type(problem).__name__}: {str(problem)[:1000]}")
            return False
    print(f"ok    {test.__name__.replace('_', ' ')}")
    return True


def run(tests):
    """Prints the results and "N passed, M failed"; does not come back."""
    results = [passes(test) for test in tests]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if all(results) else 1)
