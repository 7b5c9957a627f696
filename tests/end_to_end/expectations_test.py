# SPDX-License-Identifier: Apache-2.0
"""Help and errors on terminals of 80 and of 200 columns, letter by letter as in expected/.

After a change that is meant, `./bazelw run //tests:update_expected` writes what the program says now
into expected/; `git diff` shows what has changed.
"""

import os
import pathlib
import re
import signal
import subprocess
import sys

from tests.end_to_end import runs, terminals
from tests.fixed_trainer.config import CONFIG

EXPECTED = pathlib.Path(__file__).parent / "expected"
WIDTHS = (80, 200)

# Several mistakes of different kinds, one of them far to the right in a long line.
MISTAKES = """\
name: supervised
task: {name: reading, data: {path: text.txt, sequence_length: 16}, sample: {tokens: 8, seeed: 3}, validation: {every_n_steps: 10}}
model: {name: tower, n_layer: two}
optimizer: {name: no_such_optimizer, lr: 1.0e-3}
training: {max_step: 40, batch_size: 0}
checkpoint: {resume: maybe}
"""

# What is written for a width: the arguments, and how many lines of the output count (None: all).
CASES = {
    "help": (["--help"], None),
    "help_train": (["train", "--help"], 40),
    "help_config": (["config", "--help"], None),
    "help_config_print": (["config", "print", "--help"], None),
    "list": (["list"], None),
    "explain": (["config", "explain", "training"], None),
    "error_command": (["trian", "tiny.yaml"], None),
    "error_action": (["config", "pint", "tiny.yaml"], None),
    "error_flag": (["config", "print", "tiny.yaml", "--minimum"], None),
    "error_arguments": (["config", "diff", "tiny.yaml"], None),
    "error_file": (["missing.yaml"], None),
    "error_override": (["tiny.yaml", "optimizer.lr=[1, 2", "model.n_layer=0", "+training.seed=x"],
                       None),
    "error_config": (["mistakes.yaml"], None),
}


class ExpectationsTest(runs.RunTest):
    config = CONFIG
    shown = {}

    def setUp(self):
        super().setUp()
        self.write("mistakes.yaml", MISTAKES)

    def on_terminal(self, arguments, columns, **variables):
        environment = {"PATH": os.environ["PATH"], "TERM": "xterm", **variables}
        return terminals.run([str(runs.TRAINER), *arguments], columns, runs.TIMEOUT_SECONDS,
                             cwd=self.folder, environment=environment)

    def plain(self, case, columns):
        """What a case shows without colour, and its exit code; asked for once."""
        if (case, columns) not in self.shown:
            self.shown[case, columns] = self.on_terminal(CASES[case][0], columns, NO_COLOR="1")
        return self.shown[case, columns]

    def page(self, case, columns):
        """That, as far as it counts, with the exit code at the end."""
        output, code = self.plain(case, columns)
        kept = "".join(output.splitlines(keepends=True)[:CASES[case][1]])
        return f"{kept}[exit code {code}]\n"

    def test_pages_are_as_expected(self):
        for case in CASES:
            for columns in WIDTHS:
                with self.subTest(case, columns=columns):
                    expected = (EXPECTED / f"{case}_{columns}.txt").read_text()
                    self.assertEqual(self.page(case, columns), expected)

    def test_nothing_is_expected_that_is_not_shown(self):
        found = {path.name for path in EXPECTED.iterdir()}
        self.assertEqual(found, {f"{case}_{columns}.txt" for case in CASES for columns in WIDTHS})

    def test_no_line_is_wider_than_the_terminal(self):
        for case in CASES:
            for columns in (60, *WIDTHS):
                for line in self.page(case, columns).splitlines():
                    # Words are not broken: what is wider is one, such as a path, or an example.
                    if len(line) > columns and not line.startswith("  trainer "):
                        self.assertLessEqual(len(line.split()), 1, f"{case}, {columns}: {line}")

    def test_colour_is_added_to_the_same_text(self):
        for case in CASES:
            plain, code = self.plain(case, 80)
            self.assertNotIn("\x1b", plain)
            coloured, code_again = self.on_terminal(CASES[case][0], 80)
            self.assertEqual(code_again, code)
            self.assertIn("\x1b[", coloured, case)
            self.assertEqual(re.sub(r"\x1b\[\d*m", "", coloured), plain)
            if code != 0:
                self.assertTrue(re.match(r"(\x1b\[\d+m)+error: \x1b\[0m", coloured), coloured)
        for case in ("help", "error_command"):
            self.assertNotIn("\x1b", self.on_terminal(CASES[case][0], 80, TERM="dumb")[0])

    def test_what_trainers_share_is_told_once(self):
        text = self.trainer("train", "--help").stdout
        first, _, debug = text.partition("fields of a config for the trainer 'supervised_debug'")
        self.assertIn("fields of a config for the trainer 'supervised':\nname  (", first)
        self.assertTrue(debug.startswith(": those above, and:\nanomaly  ("), debug[:80])
        told = set(re.findall(r"^(\S+)  \(", debug, re.MULTILINE))
        self.assertTrue(told)
        self.assertEqual({path for path in told if not path.startswith("anomaly")}, set())

    def test_a_reader_that_has_seen_enough_is_no_error(self):
        read, write = os.pipe()
        os.close(read)  # as `head` does at last
        with subprocess.Popen([runs.TRAINER, "train", "--help"], cwd=self.folder, stdout=write,
                              stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            os.close(write)
            _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(errors, b"")
        self.assertEqual(process.returncode, 128 + signal.SIGPIPE)

    def test_elsewhere_errors_keep_their_lines_and_help_has_80_columns(self):
        error = self.trainer("trian", code=2, env={"COLUMNS": "30"}).stderr
        self.assertEqual(error.count("\n"), 1)
        self.assertNotIn("\x1b", error)
        self.assertEqual(self.trainer("--help", env={}).stdout + "[exit code 0]\n",
                         (EXPECTED / "help_80.txt").read_text())
        self.assertEqual(self.trainer("--help", env={"COLUMNS": "200"}).stdout + "[exit code 0]\n",
                         (EXPECTED / "help_200.txt").read_text())


def update():
    """Writes what the program says now into the source tree."""
    expected = pathlib.Path(os.environ["BUILD_WORKSPACE_DIRECTORY"]) / "tests/end_to_end/expected"
    expected.mkdir(exist_ok=True)
    for path in expected.iterdir():
        path.unlink()
    test = ExpectationsTest()
    test.setUp()
    for case in CASES:
        for columns in WIDTHS:
            (expected / f"{case}_{columns}.txt").write_text(test.page(case, columns))
    test.doCleanups()


if __name__ == "__main__":
    update() if "--update" in sys.argv else runs.main()
