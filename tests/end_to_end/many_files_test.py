# SPDX-License-Identifier: Apache-2.0
"""More data files than a process may have open: as path, as source text, in tokenize and data inspect."""

import resource

from tests.end_to_end import runs

FILES = 1500
OPEN = 256  # At most; the trainer itself has some tens open.
STEPS = ("training.max_steps=3", "validation.every_n_steps=2")


def limit_open_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN, OPEN))


class ManyFilesTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        for number in range(FILES):
            self.write(f"many/{number % 10}/{number}.txt", f"{number} is a number.\n" * (1 + number % 3))

    def trainer(self, *arguments, **options):
        return super().trainer(*arguments, preexec_fn=limit_open_files, **options)

    def test_as_path(self):
        result = self.trainer("tiny.yaml", "exp_dir=path", "task.data.path=many", *STEPS)
        self.assertIn("perplexity", result.stdout)

    def test_as_source_text(self):
        self.write("text.yaml", self.config.replace(
            "path: text.txt", "source: {name: text, files: [many], tokenizer: bytes, cache: cache}"))
        for exp_dir in ("first", "second"):
            self.trainer("text.yaml", f"exp_dir={exp_dir}", *STEPS)
            self.assertEqual(len(list(self.folder.glob("cache/*/tokens.json"))), 1)
        notes = [path for path in self.folder.glob("cache/contents/**/*") if path.is_file()]
        self.assertEqual(len(notes), 1)

    def test_in_tokenize(self):
        out = self.trainer("tokenize", "many", "--tokenizer=bytes", "--output=tokens").stdout
        self.assertIn(f"tokens: {FILES} documents", out)
        self.trainer("data", "inspect", "many")


if __name__ == "__main__":
    runs.main()
