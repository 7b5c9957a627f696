# SPDX-License-Identifier: Apache-2.0
"""benchmarks/large_data measured in parts: each adds to one page, and a reading that fails has its row."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

LARGE_DATA = Path(sys.argv.pop()).resolve()
# It trains a step or tokenizes at once.
TRAINER = """\
#!/usr/bin/env python3
import sys, time
from pathlib import Path
if sys.argv[1] == "tokenize":
    Path("tokens").mkdir()
else:
    Path("run/logs").mkdir(parents=True)
    Path("run/logs/metrics.jsonl").write_text("{}\\n")
    time.sleep(60)
"""
# It reads lines; of documents only small ones.
DATASETS = """\
from pathlib import Path
def load_dataset(kind, data_dir, sample_by, cache_dir, split):
    files = list(Path(data_dir).rglob("*.txt"))
    if sample_by == "document" and sum(file.stat().st_size for file in files) > 1_500_000:
        raise MemoryError("of the test")
    return [{"text": "read"} for file in files]
"""


class LargeDataTest(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = Path(holder.name)
        (self.folder / "datasets.py").write_text(DATASETS)
        self.trainer = self.folder / "trainer"
        self.trainer.write_text(TRAINER)
        self.trainer.chmod(0o755)

    def measure(self, *options, code=0):
        """Runs a part on 5 files and a text of 2 MB."""
        command = [sys.executable, LARGE_DATA, "--files=5", "--gigabytes=0.002", f"--results={self.folder}",
                   f"--folder={self.folder}", "--date=day", f"--trainer={self.trainer}", *options]
        result = subprocess.run(command, capture_output=True, text=True, check=False,
                                env=os.environ | {"PYTHONPATH": str(self.folder)})
        self.assertEqual(result.returncode, code, result.stderr)
        return result.stderr

    def rows(self):
        """The first cells of the page's rows by its titles."""
        found = {}
        for line in (self.folder / "day-large-data.md").read_text().splitlines():
            if line.startswith("## "):
                rows = found.setdefault(line[3:], [])
            elif line.startswith("| ") and not line.startswith("| |"):
                rows.append(line.split(" | ")[0][2:])
        return found

    def test_parts_add_to_one_page(self):
        peer = ("--python", sys.executable)
        self.measure("--shapes", "files", "--ways", "path", "tokenize")
        self.measure("--add", "--shapes", "text", "--ways", "source")
        self.measure("--add", "--shapes", "text", "--ways", "documents", "lines", *peer)
        self.measure("--add", "--shapes", "files", "--ways", "documents", "--starts", "1", *peer)
        documents, lines = "`datasets`, a document a sample", "`datasets`, a line a sample"
        self.assertEqual(self.rows(), {
            "A small text, 1 MB": ["`path`", "source `text`", "`tokenize`", documents, lines],
            "5 files, 0 MB": ["`path`", "`tokenize`", documents],
            "One text of 0.002 GB, 2 MB": ["source `text`", documents, lines]})
        costs = json.loads((self.folder / "day-large-data.json").read_text())["shapes"]
        self.assertEqual({way: len(found) for way, found in costs["5 files"]["costs"].items()},
                         {"path": 2, "tokenize": 1, "documents": 1})
        page = (self.folder / "day-large-data.md").read_text()
        self.assertIn("- `datasets`, a document a sample: MemoryError: of the test", page)
        self.assertEqual(page.count("(failed)"), 1)

    def test_without_add_the_page_is_new(self):
        self.measure("--shapes", "files", "--ways", "path")
        self.measure("--shapes", "files", "--ways", "tokenize")
        self.assertEqual(self.rows()["5 files, 0 MB"], ["`tokenize`"])

    def test_a_reading_by_datasets_has_a_limit(self):
        (self.folder / "datasets.py").write_text("import time\ntime.sleep(60)\n")
        self.measure("--shapes", "files", "--ways", "lines", "--python", sys.executable, "--minutes", "0.001")
        self.assertIn("ended after 0.001 minutes", (self.folder / "day-large-data.md").read_text())

    def test_other_tokens_are_not_added(self):
        self.measure("--shapes", "files", "--ways", "tokenize")
        error = self.measure("--add", "--tokenizer=other.json", "--shapes", "files", "--ways", "tokenize", code=1)
        self.assertIn("is of each byte a token, this is of tokenizer other.json: choose another --date", error)


if __name__ == "__main__":
    unittest.main()
