# SPDX-License-Identifier: Apache-2.0
"""tools/includes: what it finds in small trees, and that it finds nothing in this one."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL, FILE_OF_THE_TREE = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])

TABLE = """\
| component | what lives there | may use |
|---|---|---|
| `low` | | |
| `middle` | | low |
| `high` | | middle |
"""

TREE = {
    "docs/architecture.md": TABLE,
    "low/BUILD": 'cc_library(name = "low", hdrs = ["low.h"])',
    "low/low.h": "",
    "middle/BUILD": 'cc_library(name = "middle", srcs = ["middle.cc"], hdrs = ["middle.h"], deps = ["//low"])',
    "middle/middle.h": '#include "low/low.h"\n',
    "middle/middle.cc": '#include "middle/middle.h"\n\n#include <string>\n',
    "high/BUILD": 'cc_library(name = "high", srcs = ["high.cc"], deps = ["//middle"])',
    "high/high.cc": '#include "middle/middle.h"\n',
}


class Includes(unittest.TestCase):
    def findings(self, changed):
        """What the tool prints of the tree with these files in place of its own, without the summary."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**TREE, **changed}.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([TOOL, folder], capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")
        *found, summary = run.stdout.splitlines()
        self.assertEqual(run.returncode, 1 if found else 0)
        self.assertTrue(summary.endswith(f"{len(found)} findings"), summary)
        return found

    def test_a_sound_tree_has_none(self):
        self.assertEqual(self.findings({}), [])

    def test_a_header_that_only_deps_of_deps_have(self):
        self.assertEqual(self.findings({"high/high.cc": '#include "middle/middle.h"\n#include "low/low.h"\n'}),
                         ["high/high.cc:2: low/low.h is of //low:low, which is no dep of //high:high"])

    def test_a_header_of_another_project(self):
        found = self.findings({"low/low.h": "#include <fmt/format.h>\n"})
        self.assertEqual(found, ["low/low.h:1: fmt/format.h is of @fmt, which is no dep of //low:low"])
        build = 'cc_library(name = "low", hdrs = ["low.h"], deps = ["@fmt"])'
        self.assertEqual(self.findings({"low/low.h": "#include <fmt/format.h>\n", "low/BUILD": build}), [])

    def test_a_dep_that_nothing_includes(self):
        self.assertEqual(self.findings({"high/high.cc": "\n"}),
                         ["high/BUILD: //high:high includes nothing of //middle:middle: remove it from the deps"])

    def test_a_dep_that_registers_something(self):
        registering = 'cc_library(name = "middle", srcs = ["middle.cc"], hdrs = ["middle.h"], deps = ["//low"], alwayslink = True)'
        self.assertEqual(self.findings({"high/high.cc": "\n", "middle/BUILD": registering}), [])

    def test_targets_of_one_list_share_their_deps(self):
        build = '[cc_test(name = n, srcs = [n + ".cc"], deps = ["//low", "//middle"]) for n in ["high", "other"]]'
        other = {"high/BUILD": build, "high/other.cc": '#include "low/low.h"\n', "docs/architecture.md": TABLE + "| `high` | | everything |"}
        self.assertEqual(self.findings(other), [])

    def test_a_room_that_the_table_does_not_let_it_use(self):
        both = 'cc_library(name = "high", srcs = ["high.cc"], deps = ["//low", "//middle"])'
        found = self.findings({"high/BUILD": both, "high/high.cc": '#include "low/low.h"\n#include "middle/middle.h"\n'})
        self.assertEqual(found, ["high/BUILD: //high:high depends on //low:low: docs/architecture.md does not let high use low"])

    def test_a_folder_in_no_room(self):
        found = self.findings({"new/BUILD": 'cc_library(name = "new", hdrs = ["new.h"])', "new/new.h": ""})
        self.assertEqual(found, ["new/BUILD: //new:new is in no component of docs/architecture.md"])

    def test_macros_and_globs(self):
        macro = 'def rooms(names):\n    for name in names:\n        native.cc_library(name = name, srcs = native.glob([name + ".cc"]), deps = ["//middle"])\n'
        changed = {"high/BUILD": 'load("//high:rooms.bzl", "rooms")\nrooms(["high"])', "high/rooms.bzl": macro}
        self.assertEqual(self.findings(changed), [])
        changed["high/high.cc"] = '#include "low/low.h"\n#include "middle/middle.h"\n'
        self.assertEqual(len(self.findings(changed)), 1)

    def test_this_tree(self):
        run = subprocess.run([TOOL, FILE_OF_THE_TREE.parent], capture_output=True, text=True, check=False)
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
