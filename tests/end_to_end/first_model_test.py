# SPDX-License-Identifier: Apache-2.0
"""docs/first_model.md, followed line by line: its config and its commands, with few steps."""

import pathlib
import re
import shlex
import sys

from tests.end_to_end import runs

DOCUMENT = pathlib.Path(sys.argv.pop(2)).resolve().read_text(encoding="utf-8")

# What keeps the test short; each has to be in the page.
SHORTER = {
    "n_layer: 4, n_head: 4, n_embd: 128": "n_layer: 1, n_head: 2, n_embd: 16",
    "warmup_steps: 100": "warmup_steps: 1",
    "max_steps: 2000": "max_steps: 4",
    "every_n_steps: 200": "every_n_steps: 2",
    "tokens: 200": "tokens: 8",
    "training.max_steps=4000": "training.max_steps=6",
    "max_new_tokens=200": "max_new_tokens=8",
}


def blocks(language, text):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


class FirstModelTest(runs.RunTest):

    def test_the_page_can_be_followed(self):
        page = DOCUMENT
        for long, short in SHORTER.items():
            self.assertIn(long, page)
            page = page.replace(long, short)
        config, = blocks("yaml", page)
        self.write("my.yaml", config)
        for name in ("my_text/a.txt", "my_text/b.md", "another_text.txt"):
            self.write(name, runs.TEXT)
        commands = [shlex.split(line) for block in blocks("shell", page) for line in block.splitlines()]
        self.assertEqual({command[0] for command in commands}, {"trainer"})
        for command in commands:
            with self.subTest(" ".join(command)):
                self.trainer(*command[1:])
        self.assertEqual(self.rows("runs/my/run_0")[-1]["step"], 6)
        self.assertTrue((self.folder / "my_model" / "model.safetensors").exists())


if __name__ == "__main__":
    runs.main()
