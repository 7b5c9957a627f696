# SPDX-License-Identifier: Apache-2.0
"""What .ci/run's last line counts."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SUMMARY = pathlib.Path(sys.argv.pop(1)).resolve()

LOG = """\
INFO: Build completed
//tests/a:cases_test                 (cached) PASSED in 0.3s
//tests/a:script_test                         PASSED in 5.2s
//tests/b:broken_test                         FAILED in 1.0s
  /somewhere/bazel-testlogs/tests/b/broken_test/test.log
//tests/b:slow_test                          TIMEOUT in 60.0s
//tests/b:unbuilt_test                FAILED TO BUILD
//tests/b:waiting_test                NO STATUS

Executed 4 out of 5 tests: 2 tests pass, 1 fails to build and 2 fail locally.
"""
GTEST = """\
<testsuites tests="3"><testsuite name="A">
<testcase name="x" status="run" result="completed" />
<testcase name="y" status="run" result="skipped"><skipped message="no GPU" /></testcase>
<testcase name="z" status="notrun" result="suppressed" />
<testcase name="w" status="run" result="completed" />
</testsuite></testsuites>"""
SCRIPT = '<testsuites><testsuite name="s"><testcase name="s" status="run" /></testsuite></testsuites>'
PYTHON = """\
<testsuites><testsuite name="P"><testcase name="P" status="run" /><system-out>Generated test.log:
<![CDATA[test_a (__main__.P.test_a) ... ok
test_b (__main__.P.test_b) ... skipped 'needs clang'
test_c (__main__.P.test_c) ... FAIL

----------------------------------------------------------------------
Ran 5 tests in 38.206s

FAILED (failures=1, skipped=1)]]></system-out></testsuite></testsuites>"""
BROKEN = """\
<testsuites><testsuite name="B"><testcase name="x" status="run" />
<testcase name="y"><failure message="m" /></testcase>
<testcase name="z"><failure message="m" /></testcase></testsuite></testsuites>"""


class TestSummaryTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def summary(self, log, *options, **results):
        """The exit code and the last line for a log and {package__target: test.xml}."""
        (self.folder / "log").write_text(log)
        for name, text in results.items():
            file = self.folder / "testlogs" / "tests" / name.replace("__", "/") / "test.xml"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", errors="surrogateescape")
        process = subprocess.run(
            [sys.executable, SUMMARY, *options, self.folder / "log", self.folder / "testlogs"],
            check=False, text=True, stdout=subprocess.PIPE)
        print(process.stdout)
        self.lines = process.stdout.splitlines()
        return process.returncode, process.stdout.splitlines()[-1]

    def test_reads_what_is_no_xml_to_the_letter(self):
        # GoogleTest writes a parameter's bytes as they are; surrogateescape writes the lone byte.
        raw = GTEST.replace('name="x"', 'name="x" value_param="\x01 \udcc3("')
        log = "//tests/a:raw_test   PASSED in 0.3s\n"
        self.assertEqual(self.summary(log, "--exit-code=0", a__raw_test=raw)[1],
                         self.summary(log, "--exit-code=0", a__raw_test=GTEST)[1])

    def test_counts_cases_and_what_left_no_result(self):
        # Failed: two cases of broken_test, then the targets without a result, stale ones included.
        self.assertEqual(
            self.summary(LOG, "--exit-code=1", "--passed-checks=2", a__cases_test=GTEST,
                         a__script_test=SCRIPT, b__broken_test=BROKEN, b__unbuilt_test=SCRIPT,
                         b__removed_test=BROKEN),
            (1, "6 passed, 5 failed, 2 skipped"))

    def test_counts_the_cases_of_python_and_says_why_some_are_skipped(self):
        log = "//tests/a:p_test    FAILED in 5.2s\n//tests/a:cases_test   PASSED in 0.3s\n"
        self.assertEqual(self.summary(log, "--exit-code=3", a__p_test=PYTHON, a__cases_test=GTEST),
                         (1, "5 passed, 1 failed, 3 skipped"))
        self.assertEqual(self.lines[-4:-1], ["skipped: //tests/a:cases_test: no GPU",
                                             "skipped: //tests/a:p_test: needs clang",
                                             "failed: //tests/a:p_test (failed)"])
        ended = PYTHON.replace("FAILED (failures=1, skipped=1)", "OK")
        self.assertEqual(self.summary(log.replace("FAILED", "PASSED"), "--exit-code=0", a__p_test=ended,
                                      a__cases_test=GTEST)[1], "7 passed, 0 failed, 2 skipped")

    def test_tells_cases_and_seconds_by_room(self):
        log = """\
//docs:library_test                              PASSED in 7.0s
//tests/faults:soak_test                        TIMEOUT in 60.0s
//tests/faults:sharded_test                      PASSED in 4.2s
  Stats over 4 runs: max = 4.2s, min = 3.1s, avg = 3.5s, dev = 0.4s
//tests/trainer/parallel:ranks_test     (cached) PASSED in 0.3s
//tests/trainer/parallel/fsdp:fsdp_test          FAILED in 1 out of 2 in 5.0s
//tests/trainer:trainer_test            FAILED TO BUILD
"""
        self.summary(log, "--exit-code=1", trainer__parallel__ranks_test=GTEST,
                     trainer__parallel__fsdp__fsdp_test=BROKEN)
        self.assertEqual([line.split() for line in self.lines[:6]], [
            ["tests", "by", "component", "targets", "cases", "skipped", "seconds"],
            ["tests/faults", "2", "2", "0", "74.0"],
            ["docs", "1", "1", "0", "7.0"],
            ["tests/trainer/parallel", "2", "7", "2", "5.3"],
            ["tests/trainer", "1", "1", "0", "0.0"],
            ["total", "6", "11", "2", "86.3"]])
        self.assertEqual(self.lines[-1], "5 passed, 4 failed, 2 skipped")

    def test_seconds_that_bazel_does_not_know_are_those_of_the_cases(self):
        log = "".join(f"//tests/a:{name}_test   (cached) PASSED in 0.0s\n" for name in ("cases", "p", "script"))
        self.summary(log, "--exit-code=0", a__p_test=PYTHON, a__script_test=SCRIPT,
                     a__cases_test=GTEST.replace("<testsuites", '<testsuites time="1.25"', 1))
        self.assertEqual(self.lines[1].split(), ["tests/a", "3", "10", "3", "39.5"])

    def test_names_what_passed_at_a_second_attempt_alone(self):
        log = """\
//tests/a:cases_test          FLAKY, failed in 1 out of 2 in 5.0s
  Stats over 2 runs: max = 5.0s, min = 4.0s, avg = 4.5s, dev = 0.5s
  /somewhere/bazel-testlogs/tests/a/cases_test/test_attempts/attempt_1.log
//tests/a:script_test         FLAKY, failed in 1 out of 2 in 1.0s
//tests/b:broken_test         FAILED in 2 out of 2 in 1.0s
"""
        attempt = self.folder / "testlogs/tests/a/cases_test/test_attempts/attempt_1.log"
        attempt.parent.mkdir(parents=True)
        attempt.write_text("a port was taken")
        attempt.with_suffix(".xml").write_text(BROKEN)
        self.assertEqual(self.summary(log, "--exit-code=3", a__cases_test=GTEST, a__script_test=SCRIPT,
                                      b__broken_test=BROKEN), (1, "4 passed, 2 failed, 2 skipped"))
        self.assertEqual(self.lines[-4:-1], [f"flaky: //tests/a:cases_test, first attempt's log: {attempt}",
                                             "flaky: //tests/a:script_test, first attempt's log is gone",
                                             "failed: //tests/b:broken_test (failed)"])
        self.assertEqual(self.lines[1].split(), ["tests/a", "2", "5", "2", "10.0"])

    def test_all_passed(self):
        log = "//tests/a:script_test      PASSED in 5.2s\n"
        self.assertEqual(self.summary(log, "--exit-code=0", a__script_test=SCRIPT),
                         (0, "1 passed, 0 failed"))

    def test_a_failed_check_fails_it(self):
        log = "//tests/a:script_test      PASSED in 5.2s\n"
        self.assertEqual(
            self.summary(log, "--exit-code=0", "--passed-checks=1", "--failed-checks=lint",
                         a__script_test=SCRIPT), (1, "2 passed, 1 failed"))

    def test_a_bazel_that_did_not_get_to_the_tests_fails_it(self):
        self.assertEqual(self.summary("ERROR: no such package\n", "--exit-code=1"),
                         (1, "0 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
