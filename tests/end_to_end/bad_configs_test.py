# SPDX-License-Identifier: Apache-2.0
"""The table of bad configs through the real binary: each one's message to the letter, exit code 2,
and no file made, no process started.

After a change that is meant, `./bazelw run //tests:update_expected` writes the messages of now.
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from tests.end_to_end import bad_configs, runs, sandbox

UPDATE = "--update" in sys.argv
TABLE = bad_configs.table()
SHARD, SHARDS = (int(os.environ.get(f"TEST_{name}", default))
                 for name, default in [("SHARD_INDEX", 0), ("TOTAL_SHARDS", 1)])

GOOD = """\
name: supervised
task: {name: echoing}
model: {name: tower, n_layer: 1, n_head: 1, n_embd: 8}
optimizer: means
training: {max_steps: 1}
"""


class BadConfigsTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        scratch = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def trainer(self, arguments, environment):
        inherited = {name: value for name, value in os.environ.items()
                     if name not in ("BUILD_WORKING_DIRECTORY", "COLUMNS")}
        return subprocess.run([runs.TRAINER, *arguments], cwd=self.folder,
                              env=inherited | environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              timeout=runs.TIMEOUT_SECONDS, preexec_fn=sandbox.enter)

    def contents(self):
        return {str(path.relative_to(self.folder)): path.read_bytes() if path.is_file() else None
                for path in self.folder.rglob("*")}

    def run_case(self, case):
        """What the case says on stderr, once everything else about it is right."""
        for name, data in case.files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        before = self.contents()
        process = self.trainer(case.arguments, case.environment)
        said = process.stderr.decode(errors="backslashreplace")
        self.assertEqual(process.returncode, 2, said)
        self.assertEqual(process.stdout, b"")
        self.assertEqual(self.contents(), before)
        return said

    def test_table(self):
        several = 0
        cases = [(path, case) for path in TABLE for case in bad_configs.read(path)]
        self.assertGreaterEqual(len(cases), 150)
        messages = {}
        for number, (path, case) in enumerate(cases):
            several += " mistakes in the config" in case.message
            if number % SHARDS != SHARD:
                continue
            with self.subTest(f"{path.stem}: {case.title}"):
                self.setUp()
                message = self.run_case(case)
                messages[path.name, case.title] = message
                if not UPDATE:
                    self.assertEqual(message, case.message)
                self.doCleanups()
        if UPDATE:
            self.update(messages)
            return
        self.assertGreaterEqual(several, 10)

    def update(self, messages):
        folder = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"], "tests/end_to_end/bad_configs")
        for path in TABLE:
            own = {title: text for (name, title), text in messages.items() if name == path.name}
            bad_configs.rewrite(folder / path.name, own)

    def test_titles_are_unique(self):
        for path in TABLE:
            titles = [case.title for case in bad_configs.read(path)]
            self.assertEqual(len(titles), len(set(titles)), path)

    def test_a_good_config_dies_where_it_starts_a_process(self):
        (self.folder / "good.yaml").write_text(GOOD)
        process = self.trainer(["good.yaml", "launcher.processes=2"], {})
        self.assertEqual(process.returncode, sandbox.DEATH, process.stderr)
        self.assertEqual(list(self.contents()), ["good.yaml"])

    def test_a_good_config_dies_where_it_makes_a_folder(self):
        (self.folder / "good.yaml").write_text(GOOD)
        process = self.trainer(["good.yaml"], {})
        self.assertEqual(process.returncode, sandbox.DEATH, process.stderr)
        self.assertEqual(list(self.contents()), ["good.yaml"])


def note_shards():
    """Bazel wants to see that a test knows of its shards."""
    status = os.environ.get("TEST_SHARD_STATUS_FILE")
    if status:
        pathlib.Path(status).touch()


if __name__ == "__main__":
    note_shards()
    runs.main()
