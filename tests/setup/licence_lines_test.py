# SPDX-License-Identifier: Apache-2.0
"""Which files tools/licence_lines takes for sources, and where it puts the line."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()

C_LINE = "// SPDX-License-Identifier: Apache-2.0\n"
LINE = "# SPDX-License-Identifier: Apache-2.0\n"
# The text before, and after.
SOURCES = {
    "a/x.h": ("#pragma once\n", C_LINE + "#pragma once\n"),
    "a/x.cc": ("// What it is for.\n\n#include <a>\n", C_LINE + "// What it is for.\n\n#include <a>\n"),
    "a/BUILD": ("cc_library()\n", LINE + "cc_library()\n"),
    "a/other.BUILD": ("", LINE),
    "WORKSPACE": ("workspace()\n", LINE + "workspace()\n"),
    "a/rules.bzl": ('"""Rules."""\n', LINE + '"""Rules."""\n'),
    "a/b.py": ('"""Doc."""\n', LINE + '"""Doc."""\n'),
    "a/script.py": ("#!/usr/bin/python3\nimport os\n", "#!/usr/bin/python3\n" + LINE + "import os\n"),
    "a/sourced.sh": ("# To be sourced.\n", LINE + "# To be sourced.\n"),
    "a/completion.bash": ("f() { :; }\n", LINE + "f() { :; }\n"),
    "wrapper": ("#!/bin/sh", "#!/bin/sh\n" + LINE),
    ".ci/run": ("#!/bin/bash\n# Runs.\nrun\n", "#!/bin/bash\n" + LINE + "# Runs.\nrun\n"),
    "a/raw.cc": ("char c = '\udcff';\n", C_LINE + "char c = '\udcff';\n"),
}
OTHERS = {
    "a/data": "plain\n",
    "a/golden.txt": "#!/bin/sh\n",
    "config.yaml": "a: 1\n",
    ".bazelrc": "build\n",
    "README.md": "# Title\n",
    "ignored/x.cc": "int x;\n",
    "a/theirs.h": "// SPDX-License-Identifier: BSD-3-Clause\n#pragma once\n",
}


class LicenceLinesTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.tool = self.folder / "tools" / "licence_lines"
        self.tool.parent.mkdir()
        shutil.copy(TOOL, self.tool)
        self.write(".gitignore", "/ignored/\n")
        for name, (before, _) in SOURCES.items():
            self.write(name, before)
        for name, text in OTHERS.items():
            self.write(name, text)
        (self.folder / "a" / "link.cc").symlink_to("x.cc")
        self.git("init", "--quiet")
        self.git("add", "a")  # the others are not known to git yet
        self.write("a/removed.cc", "int x;\n")
        self.git("add", "a/removed.cc")
        (self.folder / "a" / "removed.cc").unlink()

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.folder, check=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")

    def texts(self):
        return {name: (self.folder / name).read_text(encoding="utf-8", errors="surrogateescape")
                for name in [*SOURCES, *OTHERS]}

    def run_tool(self, *arguments):
        process = subprocess.run([self.tool, *arguments], check=False, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        return process.returncode, process.stdout.splitlines()

    def test_checking_changes_nothing_and_names_the_files(self):
        before = self.texts()
        code, lines = self.run_tool("--check")
        self.assertEqual((code, sorted(lines[1:])), (1, sorted(SOURCES)))
        self.assertEqual(self.texts(), before)

    def test_it_puts_the_line_first_or_below_the_interpreter(self):
        self.assertEqual(self.run_tool()[0], 0)
        after = {name: text for name, (_, text) in SOURCES.items()} | OTHERS
        self.assertEqual(self.texts(), after)
        self.assertTrue((self.folder / "a" / "link.cc").is_symlink())
        self.assertEqual(self.run_tool("--check"), (0, [f"licence: {len(SOURCES) + 2} files checked"]))
        self.assertEqual(self.run_tool()[0], 0)
        self.assertEqual(self.texts(), after)

    def test_it_keeps_who_may_run_a_script(self):
        (self.folder / "wrapper").chmod(0o755)
        self.run_tool()
        self.assertEqual((self.folder / "wrapper").stat().st_mode & 0o777, 0o755)

    def test_it_refuses_what_it_does_not_know(self):
        self.assertEqual(self.run_tool("--chek"), (2, []))


if __name__ == "__main__":
    unittest.main()
