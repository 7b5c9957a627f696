# SPDX-License-Identifier: Apache-2.0
"""What tools/tested_pages finds wrong in the table of what tests hold of the pages."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()
TABLE = """\
# What the tests hold

| page | code blocks | commands | table rows | links | held by | not held |
|---|---|---|---|---|---|---|
"""
FIRST = "| [first.md](first.md) | 1/2 | 2/3 | 0/2 | 1 | `//tests/room:first_test: test_it` | one block |"
SECOND = "| [second.md](second.md) | 0/0 | 0/0 | 1/1 | 0 | `//tests/room:second_test: Suite.Case`, `tools/x` | |"
GUIDE = "| [add_a_thing.md](add_a_thing.md) | 1/1 | 0/0 | 0/0 | 0 | `//docs:add_a_thing_test` | |"
RIGHT = [FIRST, SECOND, GUIDE]


class TestedPagesTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.write("docs/first.md", "# First\n[a](b)\n\n| x | y |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n\n"
                                    "```shell\n# a comment\na \\\n  b\n\nc\n```\n\n```text\ntrainer x\nits output\n| z |\n```\n")
        self.write("docs/second.md", "| x |\n|:-:|\n| 1 |\n")
        self.write("docs/add_a_thing.md", "```cpp file=x.cc\n[x](y)\n```\n")
        self.write("docs/BUILD", "[user_workspace_test(name = name) for name in glob(['add_*.md'])]\n")
        self.write("tests/room/BUILD", 'x(name = "first_test")\nx(name = "second_test")\n')
        self.write("tests/room/first_test.py", "def test_it(self):\n")
        self.write("tests/room/second_test.cc", "TEST(Suite, Case) {\n")
        self.write("tools/x", "")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def findings(self, rows, *flags):
        self.write("docs/tested_pages.md", TABLE + "\n".join(rows) + "\n")
        ran = subprocess.run([TOOL, *flags, self.folder], check=False, capture_output=True, text=True)
        *found, last = ran.stdout.splitlines()
        self.assertEqual((ran.returncode, last), (1 if found else 0, f"{len(found)} findings about tested pages"), ran)
        return [line.removeprefix("docs/tested_pages.md") for line in found]

    def test_a_right_table_has_no_finding(self):
        self.assertEqual(self.findings(RIGHT, "--check"), [])

    def test_each_page_has_one_row(self):
        self.assertEqual(self.findings([FIRST, GUIDE, GUIDE], "--check"),
                         [": second.md has no row", ": add_a_thing.md has 2 rows"])
        (self.folder / "docs/second.md").unlink()
        self.assertEqual(self.findings(RIGHT, "--check"), [":6: second.md: there is no such page"])

    def test_counts_are_those_of_the_page(self):
        other = FIRST.replace("1/2 | 2/3 | 0/2 | 1", "1/3 | 2/4 | 0/1 | 7")
        self.assertEqual(self.findings([other, SECOND, GUIDE], "--check"), [
            ":5: first.md: it has 2 code blocks, not 3", ":5: first.md: it has 3 commands, not 4",
            ":5: first.md: it has 2 table rows, not 1", ":5: first.md: it has 1 links, not 7"])

    def test_without_check_it_writes_the_counts(self):
        other = FIRST.replace("1/2 | 2/3 | 0/2 | 1", "1/3 | 2/4 | 0/1 | 7")
        self.assertEqual(self.findings([other, SECOND, GUIDE]), [])
        self.assertEqual((self.folder / "docs/tested_pages.md").read_text(), TABLE + "\n".join(RIGHT) + "\n")

    def test_no_more_is_held_than_there_is(self):
        self.assertEqual(self.findings([FIRST.replace("2/3", "4/3"), SECOND, GUIDE], "--check"),
                         [":5: first.md: 4 of 3 commands cannot be held"])
        self.assertEqual(self.findings([FIRST, SECOND, "| [add_a_thing.md](add_a_thing.md) | 1/1 | 0/0 | 0/0 | 0 | | |"]),
                         [":7: add_a_thing.md: it names no test that holds what it counts"])

    def test_what_a_row_names_is_there(self):
        for old, new, finding in (
                ("first_test: ", "third_test: ", ":5: first.md: no BUILD file has //tests/room:third_test"),
                ("room:first", "nowhere:first", ":5: first.md: no BUILD file has //tests/nowhere:first_test"),
                ("test_it", "test_that", ":5: first.md: //tests/room:first_test has no case test_that"),
                ("Suite.Case", "Suite.Other", ":6: second.md: //tests/room:second_test has no case Suite.Other"),
                ("tools/x", "tools/y", ":6: second.md: there is no tools/y"),
                ("docs:add_a_thing_test", "docs:add_a_word_test",
                 ":7: add_a_thing.md: no BUILD file has //docs:add_a_word_test"),
                ("| [second.md](second.md) | 0/0", "| [second.md](second.md) | none",
                 ":6: this is no row of the table")):
            with self.subTest(new):
                self.assertIn(finding, self.findings([row.replace(old, new) for row in RIGHT], "--check"))


if __name__ == "__main__":
    unittest.main()
