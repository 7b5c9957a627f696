# SPDX-License-Identifier: Apache-2.0
"""Each row of docs/coming_from.md is pasted into a config, and given on the command line: the message has the row's
answer. A row whose key is a field here, too, is pasted into a section that nobody has.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
from collections import defaultdict

from tests.end_to_end import runs

PAGE = pathlib.Path(sys.argv[2])
CONFIG = """\
name: supervised
task: copying
model: {name: gpt2, vocab_size: 16, n_positions: 64, n_layer: 1, n_head: 1, n_embd: 8}
optimizer: {name: adamw, lr: 1.0e-3}
lr_scheduler: cosine
training: {max_steps: 1}
"""
KNOWN_AT_THE_TOP = ("mixed_precision", "strategy")


def tables(page):
    """For each trainer the answers of its words, as messages give them."""
    found = {}
    for chapter in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        rows = re.findall(r"^\| `([^`]+)` \| (.*?) \| (.*?) ?\|$", chapter, re.MULTILINE)
        answers = defaultdict(list)
        for there, here, note in rows:
            fields = here.replace("`", "")
            if fields == "-":
                answers[there].append(f"has no field here: {note}")
            else:
                answers[there].append(f"is here: {fields}" + (f" ({note})" if note else ""))
        if answers:
            found[chapter.splitlines()[0]] = answers
    return found


def place(word):
    return f"pasted.{word}" if word in KNOWN_AT_THE_TOP else word


def layers(words):
    """The words in groups that go into one config each: a section is no value as well."""
    values = [word for word in words if any(other.startswith(word + ".") for other in words)]
    return [group for group in (values, [word for word in words if word not in values]) if group]


def nested(words):
    tree = {}
    for word in words:
        *sections, name = place(word).split(".")
        section = tree
        for key in sections:
            section = section.setdefault(key, {})
        section[name] = 1
    return tree


class ComingFromTest(runs.RunTest):
    config = CONFIG

    def mistakes(self, *arguments):
        """What is said of each key, by its path."""
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        process = subprocess.run([runs.TRAINER, "tiny.yaml", *arguments], cwd=self.folder, text=True,
                                 env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                                 check=False, timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual((process.returncode, process.stdout), (2, ""), process.stderr)
        return dict(re.findall(r"^(?:error: )?(?:pasted\.yaml:\d+:\d+|command line, .*?, column \d+): "
                               r"([\w.]+): (unknown key.*)$", process.stderr, re.MULTILINE))

    def check(self, answers, words, said):
        for word in words:
            for answer in answers[word]:
                with self.subTest(word):
                    message = said.get(place(word), "")
                    self.assertIn(f"{word} (", message)
                    self.assertIn(answer, message)

    def test_every_row(self):
        found = tables(PAGE.read_text(encoding="utf-8"))
        self.assertEqual(len(found), 9)
        self.assertGreater(sum(len(answers) for answers in found.values()), 650)
        for trainer, answers in found.items():
            for words in layers(list(answers)):
                self.assertLess(len(words), 200, "as many as are told at once")
                with self.subTest(trainer):
                    self.write("pasted.yaml", json.dumps(nested(words), indent=1))
                    self.check(answers, words, self.mistakes("pasted.yaml"))
                    self.check(answers, words, self.mistakes(*(f"{place(word)}=1" for word in words)))

    def test_sections_whose_keys_are_all_known_are_not_spoken_of(self):
        said = self.mistakes("comm.train_timeout_seconds=1", "own.learning_rate=1", "own.other=1")
        self.assertEqual(sorted(said), ["comm.train_timeout_seconds", "own", "own.learning_rate"])

    def test_explain_has_the_answer(self):
        told = self.trainer("config", "explain", "learning_rate", code=2).stderr
        self.assertIn("there is no field 'learning_rate'; learning_rate (transformers) is here: optimizer.lr", told)


if __name__ == "__main__":
    runs.main()
