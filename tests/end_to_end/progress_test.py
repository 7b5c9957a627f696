# SPDX-License-Identifier: Apache-2.0
"""How far evaluate, predict and generate are: a line that is rewritten on a terminal, lines elsewhere."""

import json
import os
import re
import signal
import subprocess

from tests.end_to_end import runs, terminals

LINES = 60_000  # more than any test waits for


class ProgressTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2", "lr_scheduler.warmup_steps=1",
                     "lr_scheduler.decay_steps=2")
        lines = [f"{i} the fox" for i in range(LINES)]
        self.write("long.txt", "\n".join(lines))
        self.write("prompts.jsonl", "\n".join(json.dumps({"prompt": line}) for line in lines))
        self.commands = {
            "evaluating": (["evaluate", "run", "long.txt", "validation.max_batches=null"], "micro-batches"),
            "predicting": (["predict", "run", "long.txt", "--output=scores.jsonl"], "predictions"),
            "writing": (["generate", "run", "--input=prompts.jsonl", "--output=texts.jsonl",
                         "max_new_tokens=4"], "texts"),
        }  # fmt: skip

    def test_a_terminal_shows_one_line_with_the_time_left(self):
        for what, (command, unit) in self.commands.items():
            with self.subTest(what):
                terminal = terminals.Terminal([str(runs.TRAINER), *command], 100, runs.TIMEOUT_SECONDS,
                                              cwd=self.folder, environment=dict(os.environ, TERM="xterm"))
                shown = rf"\r{what}  \d+%  \d+ of \d+ {unit}, [\ddhms]+ left\x1b\[K"
                seen = terminal.read_until(re.compile(f"{shown}.*{shown}", re.DOTALL).search)
                self.assertNotIn("\n", re.search(f"{shown}.*{shown}", seen, re.DOTALL)[0])
                terminal.type("\x03")
                try:
                    terminal.read_until(lambda _: False)
                except EOFError:
                    pass
                self.assertIn(terminal.end(), (-signal.SIGINT, 128 + signal.SIGINT))

    def test_one_text_that_goes_to_a_file_is_told_by_its_tokens(self):
        for output in [], ["--output=one.txt"]:
            with self.subTest(output), open(self.folder / "text", "w", encoding="utf-8") as file:
                command = ["generate", "run", "--prompt=the", f"max_new_tokens={LINES}", *output]
                with subprocess.Popen([runs.TRAINER, *command], cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                      stdout=file, stderr=subprocess.PIPE) as process:
                    told = next(line for line in process.stderr if line.startswith("writing"))
                    process.send_signal(signal.SIGTERM)
                self.assertRegex(told, rf"^writing  \d+%  [1-9]\d* of {LINES} tokens, [\ddhms]+ left\n$")

    def test_elsewhere_it_is_told_in_lines(self):
        for what, (command, unit) in self.commands.items():
            with self.subTest(what):
                process = self.start(*command)
                told = next(line for line in process.stderr if line.startswith(what))
                self.assertRegex(told, rf"^{what}  \d+%  \d+ of \d+ {unit}, [\ddhms]+ left\n$")
                process.send_signal(signal.SIGTERM)
                output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
                self.assertEqual(output, "", "results alone go to standard output")


if __name__ == "__main__":
    runs.main()
