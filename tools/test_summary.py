# SPDX-License-Identifier: Apache-2.0
"""Counts the test cases of a `bazel test`, component by component: the last line is `N passed, N failed[, N skipped]`.

    test_summary.py --exit-code=N [--passed-checks=N] [--failed-checks="NAME ..."] LOG TESTLOGS

LOG is what Bazel printed: its summary says how each target ended, so that results of earlier runs are
not counted. TESTLOGS is bazel-testlogs: each target's test.xml says how its cases ended. A target
without results (it did not build, it ran out of time) counts as one failed case, a check named on the
command line as one case. A target that failed at first and passed at a second attempt counts as passed; a line
`flaky: ` names it and the log of the first. The seconds of a target are those that its test took when it ran,
shards added up. Of results that another clone left in the cache Bazel does not know them: they are what the
tests counted themselves.
Exits 1 if anything failed, or Bazel did.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree
from collections import Counter, defaultdict

from rooms import folder_of_target, room_of, table

# //tests/setup:install_test   (cached) PASSED in 7.8s
_TARGET = re.compile(r"^(//[^\s:]*:\S+)\s+(?:\(cached\) )?([A-Z][A-Z ]*[A-Z])\b")

_SECONDS = re.compile(r" in (\d+\.\d+)s$")
# With several shards, the line above has the longest time, and the next line follows:
_STATS = re.compile(r"^ +Stats over (\d+) runs: .*\bavg = (\d+\.\d+)s")

# The end of what Python's unittest prints: how many ran, and how they ended.
_UNITTEST = re.compile(r"^Ran (\d+) tests? in (.*)s\n\n(?:OK|FAILED)(.*)$", re.MULTILINE)
_SKIPPED = re.compile(r"(?:\.\.\. |^)skipped (['\"])(.*)\1$", re.MULTILINE)

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def statuses(log):
    """How each target ended, by Bazel's summary."""
    found = (_TARGET.match(line) for line in log.splitlines())
    return {match.group(1): match.group(2) for match in found if match}


def seconds(log):
    """How long the test of each target took, by the same summary."""
    found, target = {}, None
    for line in log.splitlines():
        if match := _TARGET.match(line):
            target = match.group(1)
            took = _SECONDS.search(line)
            found[target] = float(took.group(1)) if took else 0.0
        elif target and (match := _STATS.match(line)):
            found[target] = int(match.group(1)) * float(match.group(2))
    return found


def parse(file):
    """A test.xml, without what XML forbids: GoogleTest writes the bytes of parameters as they are."""
    text = file.read_bytes().decode("utf-8", errors="replace")
    return xml.etree.ElementTree.fromstring(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def results(folder):
    """The test.xml files of one target: one, or one a shard."""
    return [parse(file) for file in sorted(folder.glob("**/test.xml")) if "test_attempts" not in file.parts]


def printed(result):
    """What a test has printed, where Bazel wrote its test.xml."""
    return "".join(text.text or "" for text in result.iter("system-out"))


def unittest_cases(result):
    """The cases of a test in Python, which are one to Bazel; nothing where it is none."""
    told = _UNITTEST.findall(printed(result))
    if not told:
        return None
    count, _, details = told[-1]
    ended = {name: int(number) for name, number in re.findall(r"(\w+)=(\d+)", details)}
    counts = Counter(skipped=ended.get("skipped", 0),
                     failed=ended.get("failures", 0) + ended.get("errors", 0))
    counts["passed"] = max(0, int(count) - counts.total())
    return counts


def skipped_for(result):
    """Why cases were skipped."""
    reasons = [reason for _, reason in _SKIPPED.findall(printed(result))]
    return reasons + [skipped.get("message", "").strip() for skipped in result.iter("skipped")]


def counted_seconds(folder):
    """How long the cases of one target took by GoogleTest's or unittest's own count; 0 where neither ran."""
    total = 0.0
    for result in results(folder):
        of_python = _UNITTEST.findall(printed(result))
        total += float(of_python[-1][1]) if of_python else float(result.get("time", 0))
    return total


def cases(folder):
    """How the cases of one target ended."""
    counts = Counter()
    for result in results(folder):
        if (of_python := unittest_cases(result)) is not None:
            counts += of_python
            continue
        for case in result.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
            elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed") \
                    or case.get("status") == "notrun":
                counts["skipped"] += 1
            else:
                counts["passed"] += 1
    return counts


def folder_of(target, testlogs):
    package, name = target.removeprefix("//").split(":")
    return testlogs / package / name


def first_log(target, testlogs):
    """Where a target has failed that passed at a later attempt; of several shards all that have."""
    logs = sorted(folder_of(target, testlogs).glob("**/test_attempts/attempt_1.log"))
    return f"first attempt's log: {', '.join(map(str, logs))}" if logs else "first attempt's log is gone"


def target_reasons(target, testlogs):
    return [reason for result in results(folder_of(target, testlogs)) for reason in skipped_for(result)]


def target_counts(target, status, testlogs):
    """The cases of one target, with at least one failed if the target did not pass."""
    passed = status in ("PASSED", "FLAKY")
    counts = cases(folder_of(target, testlogs)) if passed or status == "FAILED" else Counter()
    if not passed and not counts["failed"]:
        counts["failed"] += 1
    if passed and not counts.total():
        counts["passed"] += 1
    return counts


def by_room(counts, took):
    """The lines of a table of rooms, the slowest first, of each target's cases and seconds."""
    rooms = defaultdict(Counter)
    for target, of_target in counts.items():
        room = rooms[room_of(folder_of_target(target))]
        room.update({"targets": 1, "cases": of_target.total(), "skipped": of_target["skipped"],
                     "seconds": took[target]})
    total = sum(rooms.values(), Counter())
    ordered = sorted(rooms.items(), key=lambda each: (-each[1]["seconds"], each[0]))
    return table(["tests by component", "targets", "cases", "skipped", "seconds"],
                 [[name, room["targets"], room["cases"], room["skipped"], f"{room['seconds']:.1f}"]
                  for name, room in [*ordered, ("total", total)]])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("--passed-checks", type=int, default=0)
    parser.add_argument("--failed-checks", default="")
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("testlogs", type=pathlib.Path)
    options = parser.parse_args()

    log = options.log.read_text(errors="replace")
    targets = statuses(log)
    counts = {target: target_counts(target, status, options.testlogs) for target, status in sorted(targets.items())}
    total = Counter(passed=options.passed_checks)
    failures = options.failed_checks.split()
    total["failed"] += len(failures)
    for target, of_target in counts.items():
        total += of_target
        if of_target["failed"]:
            failures.append(f"{target} ({targets[target].lower()})")
    if options.exit_code != 0 and not failures:
        total["failed"] += 1
        failures.append(f"bazel (exit code {options.exit_code})")
    if targets:
        took = {target: counted_seconds(folder_of(target, options.testlogs))
                if targets[target] == "PASSED" and not spent else spent for target, spent in seconds(log).items()}
        print("\n".join(by_room(counts, took)))
    for target in sorted(targets):
        for reason in sorted(set(target_reasons(target, options.testlogs))):
            print(f"skipped: {target}: {reason}")
    for target, status in sorted(targets.items()):
        if status == "FLAKY":
            print(f"flaky: {target}, {first_log(target, options.testlogs)}")
    for failure in failures:
        print(f"failed: {failure}")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
