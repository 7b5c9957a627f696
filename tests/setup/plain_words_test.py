# SPDX-License-Identifier: Apache-2.0
"""Which texts tools/plain_words reads, and which phrases it finds in them."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()

# A file, its text, and the lines with a phrase.
FILES = {
    "README.md": ("# Title\n\nIt tells of runs.\nNothing but\nfor this. But for that.\n",
                  [(3, "tells of"), (4, "but for"), (5, "but for")]),
    "docs/page.md": ("a loop of one's own\n\n```\nwhere  there is a file\n```\n",
                     [(1, "of one's own"), (4, "where there is")]),
    "docs/config.md": ("| it tells of fields |\n", []),
    "docs/deeper/page.md": ("It tells of nothing.\n", []),
    "CHANGELOG.md": ("It tells of changes.\n", []),
    "trainer/a.h": ("/// The last, where\n/// there is one.\nint tells_of;  ///< It tells\n"
                    "               ///< of this.\n\n// What but\n\n// for blank lines.\n",
                    [(1, "where there is"), (3, "tells of")]),
    "trainer/a.cc": ('const char* s = "what is meant "\n    "without";  // not but\nint f(char c = \'"\'); '
                     '// but for\nconst char* t = "but", *u = "for";\n'
                     'const char* raw = R"(a\n"tells" b\ntells of)";\nchar d = \'\\\'\';  /* but\n * for */\n',
                     [(1, "what is meant without"), (3, "but for"), (7, "tells of"), (8, "but for")]),
    "models/m.cc": ("// Tells of it.\n", [(1, "tells of")]),
    "tasks/t/t.h": ("// It foretells of but fortune.\n", []),
    "tests/t.cc": ("// It tells of tests.\n", []),
    "trainer/BUILD": ("# It tells of targets.\n", []),
    "trainer/ignored/x.cc": ("// It tells of builds.\n", []),
}


class PlainWordsTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.tool = self.folder / "tools" / "plain_words"
        self.tool.parent.mkdir()
        shutil.copy(TOOL, self.tool)
        self.write(".gitignore", "/trainer/ignored/\n")
        self.git("init", "--quiet")
        self.write("trainer/removed.cc", "// It tells of the past.\n")
        self.git("add", "trainer/removed.cc")  # the others are not known to git yet
        (self.folder / "trainer" / "removed.cc").unlink()

    def git(self, *arguments):
        subprocess.run(["git", *arguments], cwd=self.folder, check=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run_tool(self, *arguments):
        process = subprocess.run([self.tool, *arguments], check=False, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        return process.returncode, process.stdout.splitlines()

    def test_it_lists_each_phrase_with_its_line_in_both_modes(self):
        for name, (text, _) in FILES.items():
            self.write(name, text)
        expected = [f"{name}:{line}: '{phrase}'" for name, (_, found) in sorted(FILES.items())
                    for line, phrase in found]
        for arguments in ([], ["--check"]):
            code, lines = self.run_tool(*arguments)
            self.assertEqual([line.partition(": write ")[0] for line in lines[:-1]], expected)
            self.assertEqual((code, lines[-1]), (1, f"plain words: 6 files, {len(expected)} findings"))
        self.assertEqual((self.folder / "README.md").read_text(encoding="utf-8"), FILES["README.md"][0])

    def test_it_finds_nothing_in_plain_words(self):
        self.write("README.md", "It describes all runs but one, for example.\n")
        self.write("trainer/a.cc", "// Nothing, but\nint x;\n// for the rest.\n")
        for arguments in ([], ["--check"]):
            self.assertEqual(self.run_tool(*arguments), (0, ["plain words: 2 files, 0 findings"]))

    def test_it_refuses_what_it_does_not_know(self):
        self.assertEqual(self.run_tool("--chek"), (2, []))


if __name__ == "__main__":
    unittest.main()
