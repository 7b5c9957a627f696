# SPDX-License-Identifier: Apache-2.0
"""docs/coming_from.md names fields that config.md has, as they are written there."""

import pathlib
import re
import sys
import unittest

CONFIG = pathlib.Path(sys.argv.pop()).resolve()
PAGE = pathlib.Path(sys.argv.pop()).resolve()


def known(reference):
    """The fields and sections of the reference."""
    fields = set(re.findall(r"^\| `([a-z0-9_.\[\]]+)` \|", reference, re.MULTILINE))
    return fields | {name.removesuffix(".name") for name in fields}


def named_here(page):
    """What stands in the middle column of the tables."""
    for column in re.findall(r"^\| `[^|]*` \| ([^|]*) \| [^|]*\|$", page, re.MULTILINE):
        yield from re.findall(r"`([^`]+)`", column)


class ComingFromTest(unittest.TestCase):

    def test_every_field_is_one_of_the_reference(self):
        fields, named = known(CONFIG.read_text()), list(named_here(PAGE.read_text()))
        self.assertGreater(len(named), 400)
        self.assertEqual([name for name in named if name not in fields], [])

    def test_every_row_is_read(self):
        rows = [line for line in PAGE.read_text().splitlines() if re.match(r"\| `.*\|.*\|.*\|", line)]
        self.assertEqual([row for row in rows if not re.fullmatch(r"\| `[^|]*` \| [^|]* \| [^|]*\|", row)], [])

    def test_what_is_not_there_is_found(self):
        self.assertEqual(known("| `parallel` | a section |\n| `optimizer.name` | one of |\n"),
                         {"parallel", "optimizer.name", "optimizer"})
        self.assertEqual(list(named_here("| `ddp` | `parallel`, `parallel.time` | so |\n")),
                         ["parallel", "parallel.time"])


if __name__ == "__main__":
    unittest.main()
