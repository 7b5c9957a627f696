# SPDX-License-Identifier: Apache-2.0
"""How an item ended: one word, and why."""

import math
import re
import signal

PASS, FAIL, TIMEOUT, SKIP = "pass", "fail", "timeout", "skip"
OUT_OF_MEMORY, MISSING = "out-of-memory", "missing"

_MISSING = re.compile(r"error while loading shared libraries|cannot open shared object file|ModuleNotFoundError"
                      r"|could not be loaded: |version `GLIBC\w*_[\d.]+' not found")
_OUT_OF_MEMORY = re.compile(r"out of memory|OutOfMemory|bad_alloc|CUBLAS_STATUS_ALLOC_FAILED|Cannot allocate memory",
                            re.IGNORECASE)
_COMMAND_NOT_FOUND = 127
_SIGNALLED = 128  # a shell, and the trainer, end so much above the number of a signal


class Ended(Exception):
    """Ends an item with another result than a pass."""

    def __init__(self, result, reason):
        super().__init__(reason)
        self.result, self.reason = result, reason


def crash(number):
    try:
        return f"crash({signal.Signals(number).name})"
    except ValueError:
        return f"crash({number})"


def classify(returncode, output):
    """The result of a process, by its exit code and what it printed."""
    if returncode == 0:
        return PASS
    if returncode == _COMMAND_NOT_FOUND or _MISSING.search(output):
        return MISSING
    if _OUT_OF_MEMORY.search(output):
        return OUT_OF_MEMORY
    if returncode < 0:
        return crash(-returncode)
    if returncode > _SIGNALLED:
        return crash(returncode - _SIGNALLED)
    return FAIL


def largest(differences):
    """The largest; NaN if one is: max() passes it over, and so would a limit."""
    differences = list(differences)
    return math.nan if any(map(math.isnan, differences)) else max(differences)


def require(condition, reason):
    """Ends the item as failed unless the condition holds."""
    if not condition:
        raise Ended(FAIL, reason)
