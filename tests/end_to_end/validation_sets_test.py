# SPDX-License-Identifier: Apache-2.0
"""Validations of several named sets, evenly over what is bounded, and what is said without any data."""

import json
import signal
import struct

from tests.end_to_end import runs

SETS = ["validation.sets={a: [a.txt], b: [b.txt]}", "validation.max_batches=null"]


class ValidationSetsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("a.txt", runs.TEXT[:3000])
        self.write("b.txt", "another text, of other words " * 40)

    def evaluate(self, *arguments):
        return [json.loads(line) for line in self.trainer("evaluate", "run", *arguments, "--json").stdout.splitlines()]

    def validations(self, exp_dir):
        return [row for row in self.rows(exp_dir) if row["phase"] == "validate"]

    def test_each_set_has_its_own_values(self):
        told = self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=20", *SETS,
                            "checkpoint.keep_best={metric: b/loss}").stdout
        self.assertRegex(told, r"(?m)^data +\d+ training samples, \d+ validation samples, \d+ more in 2 sets$")
        self.assertRegex(told, r"(?m)^validation +\d+ micro-batches a rank; held back: .*\n"
                         r" +a: \d+ samples, \d+ micro-batches a rank\n +b: \d+ samples, \d+ micro-batches a rank$")
        self.trainer("tiny.yaml", "exp_dir=plain", "training.max_steps=20", "validation.max_batches=null")
        rows = self.validations("run")
        self.assertEqual([row["loss"] for row in rows], [row["loss"] for row in self.validations("plain")])
        a, b = self.evaluate("a.txt", "b.txt")
        for name, alone in (("a", a), ("b", b)):
            self.assertEqual(rows[-1][name + "/loss"], alone["loss"])
            self.assertEqual(rows[-1][name + "/bits_per_byte"], alone["bits_per_byte"])
        of_run, = self.evaluate()
        self.assertEqual((of_run["loss"], of_run["a/loss"]), (rows[-1]["loss"], a["loss"]))
        self.assertIn(" best ", self.trainer("checkpoint", "list", "run").stdout)

    def test_ranks_measure_the_same(self):
        for name, ranks in (("one", []), ("two", ["launcher.processes=2", "training.batch_size=2"])):
            self.trainer("tiny.yaml", f"exp_dir={name}", "training.max_steps=10", "model.embd_pdrop=0",
                         "model.attn_pdrop=0", "model.resid_pdrop=0", *SETS, *ranks)
        one, two = self.validations("one")[-1], self.validations("two")[-1]
        for key in ("a/loss", "b/loss"):
            self.assertAlmostEqual(one[key], two[key], delta=1e-4)

    def test_tensorboard_shows_each_value(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10", *SETS)
        events, = (self.folder / "run/logs").glob("events.out.tfevents.*")
        content = events.read_bytes()
        for tag in (b"validate/loss", b"validate/a/loss", b"validate/b/loss", b"validate/b/bits_per_byte"):
            self.assertIn(tag, content)

    def test_a_validation_that_is_stopped_within_a_set_is_made_again(self):
        self.write("long.txt", runs.TEXT[:1000] * 2000)
        sets = ["validation.sets={a: [a.txt], long: [long.txt]}", "training.max_steps=5", "lr_scheduler.warmup_steps=1",
                "lr_scheduler.decay_steps=5", "validation.every_n_steps=3", "checkpoint.save_every_n_steps=null"]
        self.trainer("tiny.yaml", "exp_dir=whole", *sets, "validation.max_batches=5")
        process = self.start("tiny.yaml", "exp_dir=run", *sets, "validation.max_batches=null")
        for line in process.stdout:  # the first sets take no two seconds
            if line.startswith("validation  ") and " micro-batches, " in line:
                break
        process.send_signal(signal.SIGTERM)
        output, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM, errors)
        self.assertIn("validation  of this step given up", output)
        self.assertEqual(self.validations("run"), [])
        self.trainer("tiny.yaml", "exp_dir=run", *sets, "validation.max_batches=5")
        names = ["step", "loss", "a/loss", "long/loss"]
        resumed, whole = ([[row[name] for name in names] for row in self.validations(run)] for run in ("run", "whole"))
        self.assertEqual(resumed, whole)
        self.assertEqual([step for step, *_ in whole], [3, 5])

    def test_a_set_of_megatron_is_named_by_its_prefix(self):
        tokens = runs.TEXT.encode()
        (self.folder / "books.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        # One sequence of 16-bit tokens, that is one document.
        (self.folder / "books.idx").write_bytes(
            b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 1, 2) + struct.pack("<iqqq", len(tokens), 0, 0, 1))
        self.write("indexed.yaml", self.config.replace(
            "path: text.txt", "source: {name: megatron, files: [books]}").replace("sample: {tokens: 8}", "sample: null"))
        self.trainer("indexed.yaml", "exp_dir=run", "training.max_steps=5", "validation.sets={books: [books]}")
        self.assertIn("books/loss", self.validations("run")[-1])

    def test_other_data_needs_no_file_of_a_set(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5", *SETS)
        (self.folder / "b.txt").unlink()
        self.write("lines.jsonl", '{"text": "some words"}\n')
        self.assertEqual(len(self.evaluate("a.txt")), 1)
        self.trainer("predict", "run", "lines.jsonl", "--output=out")
        self.trainer("generate", "run", "--prompt=some", "max_new_tokens=2")
        self.assertIn("validation.sets.b: ", self.trainer("evaluate", "run", code=2).stderr)

    def test_sets_alone_are_enough(self):
        told = self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10", *SETS[:1], "validation.max_batches=2",
                            "task.data.validation_fraction=0", "checkpoint.keep_best={metric: a/loss}").stdout
        self.assertRegex(told, r"(?m)^validation +a: \d+ samples, 2 micro-batches a rank of \d+ "
                         r"\(validation\.max_batches\)\n +b: ")
        self.assertNotIn("loss", self.validations("run")[-1])
        self.assertIn("a/loss", self.validations("run")[-1])

    def test_mistakes_are_told_before_the_first_step(self):
        for arguments, message in [
            ([*SETS, "checkpoint.keep_best={metric: c/loss}"], "gives no 'c/loss'"),
            (["validation.sets={a: [missing.txt]}"], "validation.sets.a: "),
            (["validation.sets={a/b: [a.txt]}"], "is no name of a set"),
            (["validation.sets={a: []}"], "sets.a names no files"),
        ]:
            with self.subTest(arguments):
                told = self.trainer("tiny.yaml", "exp_dir=new", *arguments, code=2)
                self.assertIn(message, told.stderr)
                self.assertNotIn("step 1", told.stdout)
                self.assertFalse((self.folder / "new").exists())
        self.write("short.txt", "short")
        told = self.trainer("tiny.yaml", "exp_dir=new", "validation.sets={a: [a.txt], b: [short.txt]}", code=2)
        self.assertIn("error: validation.sets.b: the text in 'short.txt' holds 5 bytes, but one sequence needs ",
                      told.stderr)
        told = self.trainer("tiny.yaml", "exp_dir=new", "launcher.processes=2",
                            "validation.sets={a: ['none-*.txt']}", code=2)
        self.assertEqual(told.stderr, "error: validation.sets.a: there is no 'none-*.txt' on this host\n")

    def test_texts_without_data_of_the_task_are_told_with_a_remedy(self):
        told = self.trainer("tiny.yaml", "exp_dir=run", *SETS, "task.data.validation_fraction=0",
                            "validation.generate.n=1", code=2)
        self.assertIn("set validation.generate.n=0, or give the task validation data", told.stderr)

    def test_broken_samples_name_their_set(self):
        tokens = list(runs.TEXT.encode())
        (self.folder / "x.bin").write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        (self.folder / "y.bin").write_bytes(struct.pack("<200H", *[65] * 100, *[400] * 100))
        self.write("x.yaml", self.config.replace(
            "path: text.txt", "source: {name: nanogpt, files: [x.bin]}, validation_fraction: 0").replace(
                "sample: {tokens: 8}", "sample: null"))
        told = self.trainer("x.yaml", "exp_dir=run", "validation.sets={y: [y.bin]}", "validation.max_batches=null",
                            "task.data.loader.max_broken=1", code=1)
        self.assertIn("validation.sets.y: broken samples: ", told.stderr)

    def test_a_bound_takes_evenly(self):
        # The second half is another text: the first micro-batches alone would say nothing of it.
        self.write("halves.txt", runs.TEXT[:4000] + "ZQXJ" * 1000)
        self.write("first.txt", runs.TEXT[:4000])
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=40")
        whole, begins = self.evaluate("halves.txt", "first.txt")
        bounded, = self.evaluate("halves.txt", "validation.max_batches=10")
        self.assertLess(abs(bounded["loss"] - whole["loss"]), 0.3 * abs(begins["loss"] - whole["loss"]))

    def test_files_are_read_whole_whatever_bounds_the_run(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=10", "validation.max_batches=1")
        whole, = self.evaluate("a.txt", "validation.max_batches=null")
        self.assertEqual(self.evaluate("a.txt")[0]["loss"], whole["loss"])
        self.assertNotEqual(self.evaluate("a.txt", "validation.max_batches=1")[0]["loss"], whole["loss"])

    def test_a_bound_is_told_for_each_set(self):
        self.trainer("tiny.yaml", "exp_dir=run", "training.max_steps=5", SETS[0], "validation.max_batches=2")
        bound = r"samples \(validation\.max_batches=2; null takes all\) of "
        told = self.trainer("evaluate", "run").stderr
        self.assertRegex(told, r"(?m)^evaluating 8 of \d+ " + bound + "what is held back for validation: the last ")
        for name in "a", "b":
            self.assertRegex(told, rf"(?m)^evaluating 8 of \d+ {bound}the set {name}$")
        # Files are read whole; a bound on the command line is told for each.
        self.assertNotIn("null takes all", self.trainer("evaluate", "run", "a.txt", "b.txt").stderr)
        told = self.trainer("evaluate", "run", "a.txt", "b.txt", "validation.max_batches=2").stderr
        for name in "a", "b":
            self.assertRegex(told, rf"(?m)^evaluating 8 of \d+ {bound}{name}\.txt$")

    def test_a_mixture_is_told_how_to_read_a_file(self):
        tokens = runs.TEXT.encode()
        for name in ("x.bin", "y.bin"):
            (self.folder / name).write_bytes(struct.pack(f"<{len(tokens)}H", *tokens))
        mixture = "mixture: [" + ", ".join(
            f"{{source: {{name: nanogpt, files: [{name}], end_of_text: null}}}}" for name in ("x.bin", "y.bin")) + "]"
        self.write("mix.yaml", self.config.replace("path: text.txt", mixture).replace("sample: {tokens: 8}",
                                                                                      "sample: null"))
        self.trainer("mix.yaml", "exp_dir=run", "training.max_steps=5")
        row, = self.evaluate("a.txt", "task.data.validation_source={name: bytes, files: [a.txt]}")
        self.assertEqual(row["data"], "a.txt")
        self.assertLess(row["loss"], 6)

    def test_a_validation_without_data_is_told(self):
        none = ["task.data.validation_fraction=0", "training.max_steps=2"]
        told = self.trainer("tiny.yaml", "exp_dir=run", *none).stdout
        self.assertIn("warning: validation is asked for, and there is no validation data", told)
        self.assertNotIn("keep_best", told)
        told = self.trainer("tiny.yaml", "exp_dir=best", *none, "checkpoint.keep_best={metric: loss}").stdout
        self.assertIn("warning: checkpoint.keep_best is set (command line), and there is no validation data", told)
        told = self.trainer("tiny.yaml", "exp_dir=never", "training.max_steps=2", "validation.every_n_steps=null",
                            "validation.at_end=false", "checkpoint.keep_best={metric: loss}").stdout
        self.assertIn("warning: checkpoint.keep_best is set (command line), and nothing says when to validate", told)


if __name__ == "__main__":
    runs.main()
