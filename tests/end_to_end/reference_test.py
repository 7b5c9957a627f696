# SPDX-License-Identifier: Apache-2.0
"""docs/config.md is what the declarations say: `trainer config reference` makes it."""

import difflib
import pathlib
import subprocess
import sys
import unittest

TRAINER, PAGE = sys.argv[1:3]
del sys.argv[1:3]


class ReferenceTest(unittest.TestCase):
    def test_the_page_is_not_stale(self):
        made = subprocess.run([TRAINER, "config", "reference"], check=True, capture_output=True,
                              text=True, timeout=60).stdout
        kept = pathlib.Path(PAGE).read_text(encoding="utf-8")
        changes = list(difflib.unified_diff(kept.splitlines(), made.splitlines(), "docs/config.md",
                                            "trainer config reference", lineterm="", n=0))
        self.assertEqual(changes, [], "\n".join([
            "run: bazel-bin/trainer/trainer config reference > docs/config.md", *changes[:40]]))


if __name__ == "__main__":
    unittest.main()
