# SPDX-License-Identifier: Apache-2.0
"""Writes the golden files anew, from what the fixed trainer says now: `git diff` shows what has changed.

    ./bazelw run //tests:update_expected
"""

import pathlib
import subprocess
import sys

TESTS = ("bad_configs_test", "expectations_test")


def main(trainer):
    for test in TESTS:
        path = pathlib.Path(__file__).parent / f"{test}.py"
        subprocess.run([sys.executable, path, trainer, "--update"], check=True)


if __name__ == "__main__":
    main(sys.argv[1])
