"""Seeds of random tests: fixed where every run must do the same, fresh where one is to find something new."""

import os
import random
import sys

FIXED = 1


def fixed_seed(variable: str) -> int:
    """Return the seed that a variable names, else the one that every run has; it is printed."""
    return _said(variable, int(os.environ.get(variable) or FIXED))


def fresh_seed(variable: str) -> int:
    """Return the seed that a variable names, else a new one; it is printed."""
    return _said(variable, int(os.environ.get(variable) or random.SystemRandom().randrange(1, 1 << 32)))


def _said(variable: str, seed: int) -> int:
    sys.stdout.write(f"\n{variable}={seed}\n")
    return seed
