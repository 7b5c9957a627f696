# SPDX-License-Identifier: Apache-2.0
"""tools/repeat with a fake Bazel: what it asks of it, what it says of the runs, and that loads end."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

REPEAT, ROOMS = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
del sys.argv[1:3]

PATIENCE_SECONDS = 60
TAGGED = r'attr(tags, "\bprocesses\b", tests(//...))'

# Stands in for bazelw: logs its arguments, answers a query, and as a test writes the build events that
# FAKE_EVENTS holds, then the processes that its parent started beside it. With FAKE_STARTED it reports there
# (a FIFO) that it runs, and waits for SIGINT.
FAKE_BAZELW = """\
#!/usr/bin/python3
import json, os, pathlib, signal, sys
def interrupted(number, frame):
    sys.exit(8)
signal.signal(signal.SIGINT, interrupted)
with open(os.environ["FAKE_LOG"], "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "query":
    print(os.environ["FAKE_TARGETS"])
if sys.argv[1] == "test":
    for argument in sys.argv:
        if argument.startswith("--build_event_json_file="):
            pathlib.Path(argument.partition("=")[2]).write_text(os.environ["FAKE_EVENTS"])
    parent = os.getppid()
    others = [child for task in pathlib.Path(f"/proc/{parent}/task").iterdir()
              for child in (task / "children").read_text().split() if int(child) != os.getpid()]
    pathlib.Path(os.environ["FAKE_LOADS"]).write_text(" ".join(others))
    if "FAKE_STARTED" in os.environ:
        with open(os.environ["FAKE_STARTED"], "w") as started:
            started.write("started")
        while True:
            signal.pause()
sys.exit(int(os.environ.get("FAKE_" + sys.argv[1].upper() + "_EXIT", "0")))
"""


def event(target, run, status="PASSED", milliseconds=1000, shard=1):
    return json.dumps({
        "id": {"testResult": {"label": target, "run": run, "shard": shard, "attempt": 1}},
        "testResult": {"status": status, "testAttemptDurationMillis": str(milliseconds), "testActionOutput": [
            {"name": "test.log", "uri": f"file:///logs/a%20b/run_{run}/test.log"}, {"name": "test.xml", "uri": "x"}]}})


OTHER_EVENT = json.dumps({"id": {"started": {}}, "started": {"uuid": "x"}})
EVENTS = "\n".join([
    OTHER_EVENT, event("//a:x", 1, milliseconds=900), event("//a:x", 2, milliseconds=1250),
    event("//a:flaky", 1), event("//a:flaky", 2, "FAILED", 2000),
    event("//a:sharded", 1, shard=1), event("//a:sharded", 1, "TIMEOUT", 61000, shard=2),
    event("//a:sharded", 2, shard=1), event("//a:sharded", 2, "FAILED", 100, shard=2), '{"id": {"testRes'])


class RepeatTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "tools").mkdir()
        for file in (REPEAT, ROOMS):
            shutil.copy(file, self.folder / "tools")
        self.fake = self.folder / "bazelw"
        self.fake.write_text(FAKE_BAZELW)
        self.fake.chmod(0o755)
        self.log, self.loads = self.folder / "log", self.folder / "loads"

    def start(self, *arguments, **environment):
        self.log.write_text("")
        return subprocess.Popen(
            [self.folder / "tools" / "repeat", *arguments], text=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={
                "PATH": "/usr/bin:/bin", "FAKE_LOG": str(self.log), "FAKE_LOADS": str(self.loads),
                "FAKE_TARGETS": "//a:x\n//a:flaky\n//a:sharded\n//a:unbuilt", "FAKE_EVENTS": EVENTS, **environment})

    def end(self, process):
        """The exit code, and the lines of both outputs."""
        out, err = process.communicate(timeout=PATIENCE_SECONDS)
        print(f"exit {process.returncode}:\n{out}{err}")
        return process.returncode, out.splitlines(), err.splitlines()

    def bazel(self):
        """What was asked of Bazel, without the name of the file of events."""
        return [[argument.partition("_json_file=")[0] for argument in json.loads(line)]
                for line in self.log.read_text().splitlines()]

    def assert_no_loads(self, count):
        """So many loads there were, and there are none any more."""
        loads = self.loads.read_text().split()
        self.assertEqual(len(loads), count)
        end = time.monotonic() + PATIENCE_SECONDS
        while any(pathlib.Path(f"/proc/{load}").exists() for load in loads):
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def test_it_runs_the_tagged_tests_beside_two_loads_and_tells_how_they_ended(self):
        code, lines, _ = self.end(self.start(FAKE_TEST_EXIT="3"))
        targets = ["//a:x", "//a:flaky", "//a:sharded", "//a:unbuilt"]
        self.assertEqual(self.bazel(), [
            ["query", "--noshow_progress", TAGGED], ["build", *targets],
            ["test", "--runs_per_test=10", "--cache_test_results=no", "--keep_going", "--test_output=summary",
             "--test_summary=none", "--build_event", *targets]])
        self.assertEqual((code, [line.split() for line in lines[2:6]]), (1, [
            ["//a:sharded", "2", "2", "61.0", "s"], ["//a:flaky", "2", "1", "2.0", "s"],
            ["//a:unbuilt", "0", "0", "not", "run"], ["//a:x", "2", "0", "1.2", "s"]]))
        self.assertEqual(lines[6:], [
            "failed: //a:flaky, run 2, 2.0 s: /logs/a b/run_2/test.log",
            "failed: //a:sharded, run 1, 61.0 s: /logs/a b/run_1/test.log",
            "failed: //a:sharded, run 2, 0.1 s: /logs/a b/run_2/test.log",
            "4 targets, 6 runs, 3 failed"])
        self.assert_no_loads(2)

    def test_it_takes_numbers_targets_and_options_of_bazel(self):
        code, lines, _ = self.end(self.start("--runs=3", "--load=1", "//a/...", "//b:y", "--", "--config=tsan",
                                             FAKE_TARGETS="//a:x", FAKE_EVENTS=event("//a:x", 1)))
        self.assertEqual((code, lines[-1]), (0, "1 targets, 1 runs, 0 failed"))
        query, build, test = self.bazel()
        self.assertEqual(query[-1], "tests(set(//a/... //b:y))")
        self.assertEqual(build, ["build", "--config=tsan", "//a:x"])
        self.assertIn("--runs_per_test=3", test)
        self.assertEqual(test[-2:], ["--config=tsan", "//a:x"])
        self.assert_no_loads(1)

    def test_a_build_that_fails_runs_nothing(self):
        code, lines, _ = self.end(self.start(FAKE_BUILD_EXIT="1"))
        self.assertEqual((code, lines[-1]), (1, "4 targets, 0 runs, 0 failed"))
        self.assertEqual([line[0] for line in self.bazel()], ["query", "build"])

    def test_a_query_that_fails_is_told(self):
        code, _, errors = self.end(self.start("//no:such", FAKE_QUERY_EXIT="7"))
        self.assertEqual((code, errors), (2, ["repeat: Bazel names no test to run"]))

    def test_wrong_numbers_are_refused(self):
        for argument in ("--runs=0", "--load=-1", "--runs=x"):
            self.assertEqual(self.end(self.start(argument))[0], 2)
        self.assertEqual(self.bazel(), [])

    def start_and_wait_for_the_tests(self):
        started = self.folder / "started"
        os.mkfifo(started)
        process = self.start("--load=3", FAKE_STARTED=str(started))
        self.assertEqual(started.read_text(), "started")
        started.unlink()
        return process

    def test_a_signal_ends_bazel_and_the_loads_and_tells_what_has_run(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.start_and_wait_for_the_tests()
            process.send_signal(number)
            code, lines, _ = self.end(process)
            self.assertEqual((code, lines[-1]), (128 + number, "4 targets, 6 runs, 3 failed"))
            self.assert_no_loads(3)

    def test_loads_end_after_a_kill(self):
        process = self.start_and_wait_for_the_tests()
        loads = set(self.loads.read_text().split())
        bazel = {child for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir()
                 for child in (task / "children").read_text().split()} - loads
        process.kill()
        for child in bazel:  # which holds the pipes
            os.kill(int(child), signal.SIGKILL)
        self.end(process)
        self.assert_no_loads(3)


if __name__ == "__main__":
    unittest.main()
