# SPDX-License-Identifier: Apache-2.0
"""`trainer evaluate`: the loss of the run's own validation, of other data, in text and in JSON."""

import json
import os
import shutil

from tests.end_to_end import byte_bpe, runs

FULL_SHARD = ["launcher.processes=2", "parallel.use_fsdp=true"]


class EvaluateTest(runs.RunTest):

    def evaluate(self, *arguments, folder="run"):
        # Texts of documents are tokenized into the cache.
        cache = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        told = self.trainer("evaluate", folder, *arguments, "--json", env=cache).stdout
        return [json.loads(line) for line in told.splitlines()]

    def last_validation(self, exp_dir):
        return [row for row in self.rows(exp_dir) if row["phase"] == "validate"][-1]["loss"]

    def test_it_is_the_runs_own_validation_to_the_last_bit(self):
        for name, ranks in [("one", []), ("ddp", ["launcher.processes=2"]), ("full", FULL_SHARD)]:
            with self.subTest(name):
                self.trainer("tiny.yaml", f"exp_dir={name}", "training.max_steps=10", *ranks)
                row, = self.evaluate(folder=name)
                self.assertEqual(row["loss"], self.last_validation(name))
                self.assertEqual(row["data"], "validation")
                self.assertIn("perplexity", row)

    def test_other_data_and_fewer_batches(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10", "validation.max_batches=null")
        self.write("a.txt", runs.TEXT[:3000])
        self.write("b.txt", "another text, of other words " * 40)
        a, b = self.evaluate("a.txt", "b.txt")
        self.assertEqual((a["data"], b["data"]), ("a.txt", "b.txt"))
        self.assertNotEqual(a["loss"], b["loss"])
        alone, = self.evaluate("task.data.validation_path=a.txt")
        self.assertEqual(alone["loss"], a["loss"])
        first, = self.evaluate("a.txt", "validation.max_batches=1")
        self.assertNotEqual(first["loss"], a["loss"])
        printed = self.trainer("evaluate", "run", "a.txt", "b.txt").stdout
        for row in (a, b):
            self.assertIn(row["data"] + "\n", printed)
            self.assertIn(str(row["loss"]), printed)

    def test_a_hugging_face_folder_without_a_tokenizer_needs_one_or_a_task(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        self.trainer("checkpoint", "export", "run", "exported")
        told = " ".join(self.trainer("evaluate", "exported", "text.txt", code=2).stderr.split())
        self.assertIn("'exported' holds no tokenizer", told)
        self.assertIn("--tokenizer=bytes if its tokens are bytes", told)
        self.write("short.txt", runs.TEXT[:3000])
        by_bytes = self.evaluate("short.txt", "--tokenizer=bytes", folder="exported")
        self.assertEqual(self.evaluate("short.txt", "task.data.source.tokenizer=bytes", folder="exported"), by_bytes)
        # 3,000 tokens are less than a micro-batch.
        self.assertEqual(self.evaluate("short.txt", "--tokenizer=bytes", "validation.max_batches=1",
                                       folder="exported"), by_bytes)
        one, = self.evaluate("short.txt", "--tokenizer=bytes", "validation.max_batches=1", "training.batch_size=1",
                             folder="exported")
        self.assertNotEqual(one["loss"], by_bytes[0]["loss"])
        fields = ["task.name=language_modeling", "task.data.path=text.txt", "task.data.sequence_length=16"]
        ours, = self.evaluate("text.txt", "validation.max_batches=null")
        theirs, = self.evaluate("text.txt", *fields, "training.batch_size=4", "validation.max_batches=null",
                                folder="exported")
        self.assertAlmostEqual(theirs["loss"], ours["loss"], places=5)

    def test_a_hugging_face_folder_with_its_tokenizer_needs_no_task(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2", "model.vocab_size=260")
        self.trainer("checkpoint", "export", "run", "exported")
        self.write("exported/tokenizer.json", byte_bpe.tokenizer_json())
        texts = ["the fox", "a quick brown the dog, and many of them", "x y"]
        self.write("texts.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in texts))
        self.write("short.jsonl", json.dumps({"text": texts[0]}) + "\n")
        whole, short = self.evaluate("texts.jsonl", "short.jsonl", folder="exported")
        self.assertEqual((whole["data"], short["data"]), ("texts.jsonl", "short.jsonl"))
        self.assertNotEqual(whole["loss"], short["loss"])
        asked = self.evaluate("texts.jsonl", "task={name: language_modeling, data: {source: {name: text, files: "
                              "[gone.jsonl], tokenizer: exported}, documents: padded, sequence_length: 16}}",
                              folder="exported")
        self.assertEqual(asked, [whole])
        # What the command line says counts.
        joined, = self.evaluate("texts.jsonl", "task.data.documents=joined", folder="exported")
        self.assertNotEqual(joined["loss"], whole["loss"])
        told = " ".join(self.trainer("evaluate", "exported", code=2).stderr.split())
        self.assertIn("says what the model is", told)
        self.assertIn("trainer evaluate exported FILE", told)
        # That of --tokenizer counts, not the folder's.
        by_bytes, = self.evaluate("short.jsonl", "--tokenizer=bytes", folder="exported")
        self.assertNotEqual(by_bytes["loss"], short["loss"])

    def test_templates_stand_in_a_file(self):
        self.write("pairs.jsonl", "".join(json.dumps({"q": f"{i} + {i}", "a": "7"}) + "\n" for i in range(12)))
        self.write("answers.yaml", """\
name: supervised
task:
  name: instruction_tuning
  data: {tokenizer: bytes, end_of_text: 256, sequence_length: 16,
         pairs: {files: [pairs.jsonl], input: "{q}=", target: "{a}", validation_fraction: 0.25}}
model: {name: gpt2, vocab_size: 257, n_positions: 16, n_layer: 1, n_head: 2, n_embd: 16}
optimizer: {name: adamw, lr: 1.0e-2}
training: {max_steps: 3, batch_size: 4}
""")
        self.trainer("answers.yaml", "exp_dir=run")
        self.trainer("checkpoint", "export", "run", "exported")
        self.write("use.yaml", 'task: {name: instruction_tuning, data: {pairs: {input: "{q}=", target: "{a}"}}}\n')
        other = 'task.data.pairs.input="{q}, {a}"'
        by_key = ["task.name=instruction_tuning", 'task.data.pairs.input="{q}="', 'task.data.pairs.target="{a}"']
        folder = {"folder": "exported"}
        asked = ["pairs.jsonl", "--tokenizer=bytes"]
        expected = self.evaluate(*asked, *by_key, **folder)
        self.assertEqual(self.evaluate(*asked, "--config=use.yaml", **folder), expected)
        # key=value counts more.
        changed = self.evaluate(*asked, "--config=use.yaml", other, **folder)
        self.assertEqual(changed, self.evaluate(*asked, *by_key[::2], other, **folder))
        self.assertNotEqual(changed, expected)
        # Of a run the file is laid over its config; a bound in it is the command's own.
        self.write("other.yaml", 'task: {data: {pairs: {input: "{q}, {a}"}}}\n')
        self.assertEqual(self.evaluate("pairs.jsonl", "--config=other.yaml"), self.evaluate("pairs.jsonl", other))
        self.write("bound.yaml", "validation: {max_batches: 1}\n")
        first = self.evaluate("pairs.jsonl", "validation.max_batches=1")
        self.assertEqual(self.evaluate("pairs.jsonl", "--config=bound.yaml"), first)
        self.assertNotEqual(first, self.evaluate("pairs.jsonl"))

    def test_a_file_of_fields_that_does_not_fit_is_refused_by_its_place(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        self.trainer("checkpoint", "export", "run", "exported")
        self.write("wrong.yaml", "validation: {max_batches: 1}\ntask: {dat: 1}\n")
        for command in (["run", "text.txt"], ["exported", "text.txt", "--tokenizer=bytes"]):
            for file, told in (("gone.yaml", "gone.yaml"), ("wrong.yaml", "wrong.yaml:2")):
                with self.subTest(command, file=file):
                    self.assertIn(told, self.trainer("evaluate", *command, f"--config={file}", code=2).stderr)

    def test_a_task_that_reads_no_files_refuses_them(self):
        self.write("copying.yaml", """\
name: supervised
task: {name: copying, symbols: 8, length: 4, training_samples: 64, validation_samples: 16}
model: {name: gpt2, vocab_size: 8, n_positions: 8, n_layer: 1, n_head: 2, n_embd: 16}
optimizer: {name: adamw, lr: 1.0e-3}
training: {max_steps: 2, batch_size: 8}
""")
        self.trainer("copying.yaml", "exp_dir=copying")
        self.assertIn("loss", self.evaluate(folder="copying")[0])
        self.write("file.csv", "a,b\n1,2\n")
        told = self.trainer("evaluate", "copying", "file.csv", code=2)
        self.assertIn("the task 'copying' reads no other data than what its config names", " ".join(told.stderr.split()))
        self.assertEqual(told.stdout, "")

    def test_a_tokenizer_that_has_moved_is_the_checkpoints_own(self):
        self.write("characters.txt", "".join(sorted(set(runs.TEXT))))
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2", "task.data.path=null",
                     "task.data.source={name: text, files: [text.txt], tokenizer: characters.txt, cache: cache}")
        expected = self.evaluate("text.txt")
        shutil.move(self.folder / "characters.txt", self.folder / "moved.txt")
        process = self.trainer("evaluate", "run", "text.txt", "--json")
        self.assertEqual([json.loads(line) for line in process.stdout.splitlines()], expected)
        self.assertIn("note: the tokenizer 'characters.txt' of the run's config is not there", process.stderr)
        told = self.trainer("evaluate", "run", "text.txt", "task.data.source.tokenizer=gone.txt", code=2).stderr
        self.assertIn("gone.txt", told)
        self.assertIn("gone.txt", self.trainer("evaluate", "run", "text.txt", "--tokenizer=gone.txt", code=2).stderr)

    def test_a_tokenizer_for_a_task_that_reads_without_is_refused(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=2")
        told = self.trainer("evaluate", "run", "text.txt", "--tokenizer=bytes", code=2).stderr
        self.assertIn("reads its data without a tokenizer", " ".join(told.split()))

    def test_an_imported_model_is_used_as_its_hugging_face_folder(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5")
        self.trainer("checkpoint", "export", "run", "hub")
        self.trainer("checkpoint", "import", "hub", "imported")
        what = "'imported' says what the model is, not what it is for: "
        for command, told in (
            (["evaluate", "imported"], what + "name a file to evaluate (trainer evaluate imported FILE), or name a "
                                              "task: task.name=language_modeling and its data, or "),
            (["evaluate", "imported"], "; or a config with the section task, by --config=FILE"),
            (["evaluate", "imported", "text.txt"], "'imported' holds no tokenizer: name the one "),
            (["predict", "imported", "text.txt", "--output=rows.jsonl"],
             what + "name a task: task.name=language_modeling for the probability of each line, or "),
        ):
            with self.subTest(command):
                self.assertIn(told, " ".join(self.trainer(*command, code=2).stderr.split()))
        self.write("short.txt", runs.TEXT[:3000])
        measured, = self.evaluate("short.txt", "--tokenizer=bytes", folder="imported")
        expected, = self.evaluate("short.txt", "--tokenizer=bytes", folder="hub")
        self.assertEqual(measured | {"model": "hub"}, expected)
        row, = self.evaluate("--config=tiny.yaml", folder="imported")
        self.assertEqual(row["loss"], self.evaluate()[0]["loss"])

    def test_training_data_is_not_needed(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5")
        shutil.move(self.folder / "text.txt", self.folder / "moved.txt")
        self.assertIn("loss", self.evaluate("moved.txt")[0])
        self.assertIn("text.txt", self.trainer("evaluate", "run", code=2).stderr)
        self.assertIn("there is no file 'nowhere'", self.trainer("evaluate", "run", "nowhere", code=2).stderr)


if __name__ == "__main__":
    runs.main()
