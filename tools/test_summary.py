"""Counts the test cases of a `bazel test`: the last line is `N passed, N failed[, N skipped]`.

    test_summary.py --exit-code=N [--passed-checks=N] [--failed-checks="NAME ..."] LOG TESTLOGS

LOG is what Bazel printed: its summary says how each target ended, so that results of earlier runs are
not counted. TESTLOGS is bazel-testlogs: each target's test.xml says how its cases ended. A target
without results (it did not build, it ran out of time) counts as one failed case, a check named on the
command line as one case. Exits 1 if anything failed, or Bazel did.
"""

import argparse
import pathlib
import re
import sys
import xml.etree.ElementTree
from collections import Counter

# //tests/setup:install_test   (cached) PASSED in 7.8s
_TARGET = re.compile(r"^(//[^\s:]*:\S+)\s+(?:\(cached\) )?([A-Z][A-Z ]*[A-Z])\b")

_NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def statuses(log):
    """How each target ended, by Bazel's summary."""
    found = (_TARGET.match(line) for line in log.splitlines())
    return {match.group(1): match.group(2) for match in found if match}


def parse(file):
    """A test.xml, without what XML forbids: GoogleTest writes the bytes of parameters as they are."""
    text = file.read_bytes().decode("utf-8", errors="replace")
    return xml.etree.ElementTree.fromstring(_NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text))


def cases(folder):
    """The cases of one target's test.xml files: one, or one a shard."""
    counts = Counter()
    for file in sorted(folder.glob("**/test.xml")):
        if "test_attempts" in file.parts:
            continue
        for case in parse(file).iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                counts["failed"] += 1
            elif case.find("skipped") is not None or case.get("result") in ("skipped", "suppressed") \
                    or case.get("status") == "notrun":
                counts["skipped"] += 1
            else:
                counts["passed"] += 1
    return counts


def target_counts(target, status, testlogs):
    """The cases of one target, with at least one failed if the target did not pass."""
    package, name = target.removeprefix("//").split(":")
    passed = status in ("PASSED", "FLAKY")
    counts = cases(testlogs / package / name) if passed or status == "FAILED" else Counter()
    if not passed and not counts["failed"]:
        counts["failed"] += 1
    if passed and not counts.total():
        counts["passed"] += 1
    return counts


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("--passed-checks", type=int, default=0)
    parser.add_argument("--failed-checks", default="")
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("testlogs", type=pathlib.Path)
    options = parser.parse_args()

    targets = statuses(options.log.read_text(errors="replace"))
    total = Counter(passed=options.passed_checks)
    failures = options.failed_checks.split()
    total["failed"] += len(failures)
    for target, status in sorted(targets.items()):
        counts = target_counts(target, status, options.testlogs)
        total += counts
        if counts["failed"]:
            failures.append(f"{target} ({status.lower()})")
    if options.exit_code != 0 and not failures:
        total["failed"] += 1
        failures.append(f"bazel (exit code {options.exit_code})")
    for failure in failures:
        print(f"failed: {failure}")
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
