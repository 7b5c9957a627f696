# SPDX-License-Identifier: Apache-2.0
"""Which casts tools/aliasing finds."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()

# A file, its text, and the lines with a cast that is not allowed.
FILES = {
    # Rows were once written into a tensor of numbers in this way.
    "trainer/checkpoint/rows.cc": ("int a;\nRow* row = reinterpret_cast<Row*>(mine.mutable_data_ptr<int64_t>());\n", [2]),
    "models/m.h": ("const auto* x = reinterpret_cast<const std::uint32_t *>(floats);\n", [1]),
    "tasks/t.cc": ("auto& x =\n    reinterpret_cast<\n        double&>(number);\n", [2]),
    "tests/t.cc": ("f(reinterpret_cast<int16_t*>(p), reinterpret_cast<float*>(p));\n", [1, 1]),
    "trainer/characters.cc": ("reinterpret_cast<const char*>(&value); reinterpret_cast<unsigned char *>(p);\n"
                              "reinterpret_cast<std::byte*>(p); reinterpret_cast<const std::uint8_t*>(p);\n", []),
    "trainer/system.cc": ("reinterpret_cast<const sockaddr*>(&a); reinterpret_cast<sockaddr_in6&>(a);\n"
                          "reinterpret_cast<std::uintptr_t>(p); reinterpret_cast<void*>(&f);\n", []),
    "docs/page.md": ("reinterpret_cast<Row*>(p)\n", []),
    "third_party/x.cc": ("reinterpret_cast<Row*>(p)\n", []),
}


class AliasingTest(unittest.TestCase):

    def test_it_names_each_cast_that_is_not_allowed(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as scratch:
            folder = pathlib.Path(scratch)
            (folder / "tools").mkdir()
            tool = shutil.copy(TOOL, folder / "tools" / "aliasing")
            subprocess.run(["git", "init", "--quiet"], cwd=folder, check=True)
            for name, (text, _) in FILES.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                (folder / name).write_text(text, encoding="utf-8")
            done = subprocess.run([tool, "--check"], capture_output=True, text=True, check=False)
            found = sorted(line.split(": ")[0] for line in done.stdout.splitlines())
            expected = sorted(f"{name}:{line}" for name, (_, lines) in FILES.items() for line in lines)
            self.assertEqual(found, expected, done.stderr)
            self.assertEqual(done.returncode, 1)

            for name, (_, lines) in FILES.items():
                if lines:
                    (folder / name).unlink()
            done = subprocess.run([tool], capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (0, ""), done.stderr)


if __name__ == "__main__":
    unittest.main()
