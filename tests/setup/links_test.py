# SPDX-License-Identifier: Apache-2.0
"""Which links of documents tools/links finds broken."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()


class LinksTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.write("docs/page.md", "# The page\n\n## `trainer new` and [others](other.md)\n\n## Twice\n\n## Twice\n")
        self.write("docs/other.md", "# Other\n\n```\n# no heading\n```\n")

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def links(self):
        ran = subprocess.run([TOOL, self.folder], check=False, capture_output=True, text=True)
        return ran.returncode, ran.stdout.splitlines()

    def test_what_leads_somewhere_is_right(self):
        self.write("README.md", "[a](docs/page.md) [b](docs/page.md#the-page) [c](#here) [`d`](https://x.invalid/y#z)\n"
                                "# Here\n[e](docs/page.md#trainer-new-and-others) [f](docs/page.md#twice-1) [g](docs)\n"
                                "```\n[i](nowhere.md)\n```\n")
        self.assertEqual(self.links(), (0, ["0 broken links"]))

    def test_what_leads_nowhere_is_named(self):
        self.write("docs/page.md", "# The page\n\n[a](missing.md) [b](other.md#no-heading)\n[c](#twice-2)\n")
        self.assertEqual(self.links(), (1, [
            "docs/page.md: [missing.md]: there is no such file",
            "docs/page.md: [other.md#no-heading]: there is no such heading",
            "docs/page.md: [#twice-2]: there is no such heading", "3 broken links"]))


if __name__ == "__main__":
    unittest.main()
