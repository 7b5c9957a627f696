# SPDX-License-Identifier: Apache-2.0
"""docs/names.md names fields and presets that config.md has, as they are written there."""

import pathlib
import re
import sys
import unittest

CONFIG = pathlib.Path(sys.argv.pop()).resolve()
NAMES = pathlib.Path(sys.argv.pop()).resolve()


def known(reference):
    """The fields and, as "section=preset", the presets of the reference."""
    found = set(re.findall(r"^\| `([a-z_.\[\]]+)` \|", reference, re.MULTILINE))
    for section, row in re.findall(r"^\| `([a-z_]+)` \|(.*)$", reference, re.MULTILINE):
        found |= {f"{section}={preset}" for preset in re.findall(r"<br>preset `([^`]+)`", row)}
    return found


def named_here(page):
    """What stands in the last column of the tables and looks like a field: "a.b", "a=b"."""
    for row in re.findall(r"^\| .* \| (.*) \|$", page, re.MULTILINE):
        yield from re.findall(r"`([a-z_]+(?:\.[a-z_]+)+|[a-z_]+=[a-z0-9_]+)`", row)


class NamesTest(unittest.TestCase):

    def test_every_field_is_one_of_the_reference(self):
        fields, named = known(CONFIG.read_text()), list(named_here(NAMES.read_text()))
        self.assertGreater(len(named), 60)
        self.assertEqual([name for name in named if name not in fields], [])

    def test_what_is_not_there_is_found(self):
        fields = known("| `parallel` | a section |  | ranks<br>preset `ddp`: whole |\n| `parallel.timeout` | a |\n")
        self.assertEqual(fields, {"parallel", "parallel=ddp", "parallel.timeout"})
        self.assertEqual(list(named_here("| `ddp` | `parallel=ddp`, `parallel.time` |\n")),
                         ["parallel=ddp", "parallel.time"])


if __name__ == "__main__":
    unittest.main()
