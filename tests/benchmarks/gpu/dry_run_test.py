# SPDX-License-Identifier: Apache-2.0
"""benchmarks/gpu_checklist.sh on the CPU: no item fails by its script, and each leaves its line."""

import json
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest

CHECKLIST, *BINARIES = (pathlib.Path(argument).absolute() for argument in sys.argv[1:])
del sys.argv[1:]

SECONDS = 250  # for all items; they take some 100 of one core
LARGEST_FILE, MOST_FILES = 16 << 20, 8
TEXT = "".join(f"{i}: the quick brown fox jumps over {i * i % 97} lazy dogs.\n" for i in range(1000))
ROW = {"item", "result", "seconds", "reason", "figures", "log"}


def checklist(*arguments, code=0):
    process = subprocess.run([CHECKLIST, *arguments], env=os.environ | {"PHALANX_PYTHON": sys.executable},
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             check=False)
    if process.returncode != code:
        raise AssertionError(f"{arguments}: {process.returncode}\n{process.stdout}")
    return process.stdout


class DryRunTest(unittest.TestCase):

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.out = self.folder / "out"
        binaries = self.folder / "kit/bin"
        binaries.mkdir(parents=True)
        for binary in BINARIES:
            (binaries / binary.name.removesuffix("_for_tests")).symlink_to(binary.resolve())
        (self.folder / "kit/text").write_text(TEXT)

    def run_dry(self, *more, code=0):
        output = checklist("run", "--dry-run", f"--kit={self.folder / 'kit'}", f"--out={self.out}", "--jobs=1", *more,
                           code=code)
        lines = (self.out / "summary.jsonl").read_text().splitlines()
        return output, [json.loads(line) for line in lines]

    def test_each_item_passes_and_has_a_line(self):
        names = [line.split()[0] for line in checklist("run", "--list").splitlines()]
        output, rows = self.run_dry(f"--seconds={SECONDS}")
        print(output)
        self.assertEqual([row["item"] for row in rows], names)
        self.assertEqual({row["item"]: row["result"] for row in rows}, dict.fromkeys(names, "pass"))
        for row in rows:
            self.assertEqual(set(row), ROW)
            self.assertTrue(row["figures"], row["item"])
        files = [path for path in self.out.rglob("*") if path.is_file()]
        self.assertLessEqual(len(files), MOST_FILES)
        for path in files:
            self.assertEqual(path.parent, self.out)
            self.assertLessEqual(path.stat().st_size, LARGEST_FILE)
        self.assertIn(f"{len(names)} pass", (self.out / "table.txt").read_text().splitlines()[-1])
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"{used.ru_utime + used.ru_stime:.0f} s of the processor")

    def test_items_at_once_share_what_they_compare_with(self):
        names = ["two-ranks.full-shard", "two-ranks.no-shard", "races.blocking"]
        output, rows = self.run_dry("--jobs=2", "--only", *names)
        self.assertEqual({row["item"]: row["result"] for row in rows}, dict.fromkeys(names, "pass"), output)
        log = (self.out / "log.txt").read_text()
        for folder in ("nccl", "one", "two-full-shard", "blocking"):
            self.assertEqual(len(re.findall(rf"^\$ .*/{folder}/config.yaml", log, re.MULTILINE)), 1, folder)

    def test_what_is_not_packed_is_missing_and_ends_nothing(self):
        (self.folder / "kit/bin/device_test").unlink()
        _, rows = self.run_dry("--only", "parts", code=1)
        self.assertEqual({row["item"]: row["result"] for row in rows},
                         {"parts.load-test": "pass", "parts.device-test": "missing",
                          "parts.gpu-batches-test": "pass", "parts.backends-test": "pass",
                          "parts.token-loss-gpu-test": "pass"})

    def test_without_time_items_are_skipped_with_a_reason(self):
        output, rows = self.run_dry("--seconds=0", code=1)
        self.assertEqual({row["result"] for row in rows}, {"skip"})
        self.assertEqual({row["reason"] for row in rows}, {"the time of the run was over"})
        self.assertIn(f"{len(rows)} skip", output.splitlines()[-1])

    def test_mistakes_are_named(self):
        self.assertIn("no such item: speed.our", checklist("run", "--only", "speed.our", code=2))
        self.assertIn("--jobs: 0 items", checklist("run", "--jobs=0", code=2))
        self.assertIn("gpu_checklist.sh pack", checklist(code=2))
        if not any(entry.name.startswith("nvidia") for entry in pathlib.Path("/dev").iterdir()):
            self.assertIn("no NVIDIA GPU", checklist("run", code=2))


if __name__ == "__main__":
    unittest.main(verbosity=2)
