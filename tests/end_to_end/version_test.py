# SPDX-License-Identifier: Apache-2.0
"""`trainer --version` of the program as it is built for users, with the commit."""

import pathlib
import re

from tests.end_to_end import runs


class VersionTest(runs.RunTest):

    def test_it_names_the_commit_and_the_versions_of_the_wheel(self):
        text = self.trainer("--version").stdout
        print(text, flush=True)
        self.assertRegex(text, re.compile(
            r"\Aphalanx \d+\.\d+\.\d+, commit ([0-9a-f]{7,40}(-dirty)?|unknown)\n"
            r"LibTorch \d+\.\d+\.\d+\nCUDA \d+\.\d+\nNCCL \d+\.\d+\.\d+\n\Z"))

    def test_it_is_the_newest_version_of_the_changelog(self):
        newest = re.search(r"^## (\S+) - ", pathlib.Path("CHANGELOG.md").read_text(), re.MULTILINE)[1]
        self.assertTrue(self.trainer("--version").stdout.startswith(f"phalanx {newest}, "), newest)


if __name__ == "__main__":
    runs.main()
