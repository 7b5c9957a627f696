# SPDX-License-Identifier: Apache-2.0
"""What tools/build_minutes makes of profiles of builds."""

import gzip
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(sys.argv.pop(1)).resolve()

SECOND = 1_000_000


def action(name, begin, seconds, ran=True, thread=1, waited=0):
    """An action as Bazel records it; one that a cache had has no command that ran within."""
    events = [{"cat": "action processing", "name": name, "ph": "X", "tid": thread, "ts": begin * SECOND,
               "dur": seconds * SECOND},
              {"cat": "remote action cache check", "name": "check cache hit", "ph": "X", "tid": thread,
               "ts": begin * SECOND, "dur": 1}]
    if ran:
        events.append({"cat": "local action execution", "name": "x", "ph": "X", "tid": thread,
                       "ts": begin * SECOND + 5, "dur": seconds * SECOND - 10})
    if waited:
        events.append({"cat": "action resource lock", "name": name, "ph": "X", "tid": thread,
                       "ts": begin * SECOND + 10, "dur": waited * SECOND})
    return events


class BuildMinutesTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def profile(self, name, *actions, compress=True):
        events = [{"name": "thread_name", "ph": "M", "tid": 0, "args": {"name": "Critical Path"}},
                  {"cat": "gc notification", "name": "minor GC", "ph": "X", "tid": 1, "ts": 0, "dur": 5 * SECOND},
                  {"name": "CPU usage", "ph": "C", "tid": 1, "ts": 0, "args": {"cpu": "1.5"}},
                  *(event for events in actions for event in events)]
        data = json.dumps({"otherData": {"build_id": "x"}, "traceEvents": events}).encode()
        path = self.folder / name
        path.write_bytes(gzip.compress(data) if compress else data)
        return path

    def run_tool(self, *paths):
        process = subprocess.run([TOOL, *paths], check=False, text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        print(process.stdout + process.stderr)
        self.errors = process.stderr
        return process.returncode, process.stdout.splitlines()

    def test_minutes_by_room(self):
        code, lines = self.run_tool(self.profile(
            "build.gz",
            action("Compiling trainer/parallel/fsdp/fsdp.cc", 0, 120),
            action("Compiling trainer/parallel/ddp/ddp.cc", 121, 60),
            action("Compiling trainer/config/tree/node.cc", 0, 30, thread=2),
            action("Compiling tests/trainer/parallel/fsdp/fsdp_test.cc", 40, 90, thread=2),
            action("Compiling fmt.cc [for host]", 200, 6),
            action("Compiling trainer/main.cc", 300, 50, ran=False),
            action("Linking tests/trainer/parallel/fsdp/fsdp_test", 400, 13, waited=10),
            action("Testing //tests/trainer/parallel/fsdp:fsdp_test", 500, 60),
            action("Testing //tests/faults:soak_test (shard 1 of 2)", 600, 30),
            action("Testing //tests/faults:soak_test (shard 2 of 2)", 600, 30, thread=2),
            action("Testing //docs:library_test", 700, 1, ran=False),
            action("Creating runfiles tree bazel-out/x", 800, 60)))
        self.assertEqual(code, 0)
        self.assertEqual([line.split() for line in lines[:7]], [
            ["minutes", "by", "component", "compile", "link", "test", "all"],
            ["trainer/parallel", "3.00", "0.00", "0.00", "3.00"],
            ["tests/trainer/parallel", "1.50", "0.05", "1.00", "2.55"],
            ["tests/faults", "0.00", "0.00", "1.00", "1.00"],
            ["trainer/config", "0.50", "0.00", "0.00", "0.50"],
            ["external", "0.10", "0.00", "0.00", "0.10"],
            ["total", "5.10", "0.05", "2.00", "7.15"]])
        self.assertEqual([line.split() for line in lines[7:]], [
            ["slowest", "files:"],
            ["120.0", "s", "compile", "trainer/parallel/fsdp/fsdp.cc"],
            ["90.0", "s", "compile", "tests/trainer/parallel/fsdp/fsdp_test.cc"],
            ["60.0", "s", "compile", "trainer/parallel/ddp/ddp.cc"],
            ["30.0", "s", "compile", "trainer/config/tree/node.cc"],
            ["6.0", "s", "compile", "fmt.cc"],
            ["slowest", "targets:"],
            ["60.0", "s", "test", "//tests/trainer/parallel/fsdp:fsdp_test"],
            ["60.0", "s", "test", "//tests/faults:soak_test"],
            ["3.0", "s", "link", "tests/trainer/parallel/fsdp/fsdp_test"],
            "ran here: compile 5 of 6, link 1 of 1, test 3 of 4; the others came out of a cache".split()])

    def test_several_profiles_are_added_and_fifteen_files_named(self):
        files = [action(f"Compiling trainer/loop/f{number}.cc", 100 * number, 6 + number) for number in range(20)]
        code, lines = self.run_tool(self.profile("one.gz", *files), self.profile("two.json", *files, compress=False))
        self.assertEqual((code, lines[1].split()), (0, ["trainer/loop", "10.33", "0.00", "0.00", "10.33"]))
        listed = lines[4:-1]
        self.assertEqual((len(listed), listed[0].split()), (15, ["50.0", "s", "compile", "trainer/loop/f19.cc"]))

    def test_a_build_of_cached_results_takes_no_minutes(self):
        code, lines = self.run_tool(self.profile("cached.gz", action("Compiling a/b/c.cc", 0, 9, ran=False)))
        self.assertEqual((code, lines), (0, [
            "minutes by component  compile  link  test   all",
            "total                    0.00  0.00  0.00  0.00",
            "ran here: compile 0 of 1, link 0 of 0, test 0 of 0; the others came out of a cache"]))

    def test_what_is_no_profile_is_told(self):
        whole = self.profile("whole.gz").read_bytes()
        for name, data in (("cut.gz", whole[:len(whole) // 2]), ("empty.gz", b""), ("other.json", b"{}"),
                           ("list.json", b"[]")):
            (self.folder / name).write_bytes(data)
            self.assertEqual(self.run_tool(self.folder / name), (1, []))
            self.assertIn(f"{name} is no whole profile of Bazel's", self.errors)
        self.assertEqual(self.run_tool(self.folder / "none.gz"), (1, []))
        self.assertEqual(self.run_tool(), (2, []))


if __name__ == "__main__":
    unittest.main()
