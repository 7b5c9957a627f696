# SPDX-License-Identifier: Apache-2.0
"""`trainer predict`: the same file on any ranks, after kills, and with lines that cannot be read."""

import json
import math
import random
import re
import signal
import time

from tests.end_to_end import runs
from tests.long import is_long
from tests.ports import free_port

RANKS = {
    "2 of DDP": ["launcher.processes=2"],
    "4 of DDP": ["launcher.processes=4"],
    "2 of FULL_SHARD": ["launcher.processes=2", "parallel.use_fsdp=true"],
    "4 of FULL_SHARD": ["launcher.processes=4", "parallel.use_fsdp=true"],
}
SEQUENCES = """\
name: supervised
task:
  name: sequence_to_sequence
  data:
    pairs: {files: [pairs.jsonl], input: "{q}", target: "{a}"}
    tokenizer: bytes
    end_of_text: 256
    input_length: 16
    target_length: 8
  generation: {max_new_tokens: 6}
model: {name: t5, vocab_size: 257, d_model: 16, d_kv: 8, d_ff: 24, num_layers: 1, num_heads: 2}
optimizer: {name: adamw, lr: 1.0e-2}
training: {max_steps: 5, batch_size: 4}
"""
INSTRUCTIONS = """\
name: supervised
task:
  name: instruction_tuning
  data:
    pairs: {files: [pairs.jsonl], input: "{q}=", target: "{a}", validation_fraction: 0.25}
    tokenizer: bytes
    end_of_text: 256
    sequence_length: 16
  generation: {max_new_tokens: 6}
model: {name: gpt2, vocab_size: 257, n_positions: 16, n_layer: 1, n_head: 2, n_embd: 16}
optimizer: {name: adamw, lr: 1.0e-2}
training: {max_steps: 60, batch_size: 4}
"""


class PredictTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=run", "training.max_steps=5"))
        self.lines = [f"{i}: fox {i * i}"[:2 + i % 13] for i in range(41)]
        self.write("lines.txt", "\n".join(self.lines) + "\n")
        self.write("lines.jsonl", "".join(json.dumps({"text": line}) + "\n" for line in self.lines))

    def predict(self, output, *arguments, code=0, run="run", data="lines.jsonl"):
        process = self.trainer("predict", run, data, f"--output={output}", *arguments, code=code)
        return (self.folder / output).read_text() if code == 0 else process.stderr

    def test_a_row_for_each_line_in_order(self):
        rows = [json.loads(line) for line in self.predict("out.jsonl").splitlines()]
        self.assertEqual([row["index"] for row in rows], list(range(len(self.lines))))
        self.assertEqual([row["tokens"] for row in rows], [len(line) - 1 for line in self.lines])
        for row in rows:
            self.assertLess(row["log_probability"], 0)
            perplexity = math.exp(-row["log_probability"] / row["tokens"])
            self.assertAlmostEqual(row["perplexity"] / perplexity, 1, delta=2e-5)
        self.assertEqual(self.predict("text.jsonl", data="lines.txt"), (self.folder / "out.jsonl").read_text())
        self.assertFalse(any(".part" in name for name in self.files()))

    def test_the_file_is_the_same_on_any_ranks(self):
        expected = self.predict("one.jsonl", "predict.batch_size=3")
        for name, ranks in RANKS.items():
            with self.subTest(name):
                self.assertEqual(self.predict(name + ".jsonl", "predict.batch_size=3", *ranks), expected)

    def test_sequences_are_the_same_on_any_ranks(self):
        self.write("pairs.jsonl", "".join(json.dumps({"q": f"{i} + {i}", "a": str(2 * i)}) + "\n" for i in range(40)))
        self.write("t5.yaml", SEQUENCES)
        self.trainer("t5.yaml", "exp_dir=t5")
        fields = ["predict.batch_size=3", "task.generation.temperature=1"]
        expected = self.predict("one.jsonl", *fields, run="t5", data="pairs.jsonl")
        rows = [json.loads(line) for line in expected.splitlines()]
        self.assertEqual(list(rows[0]), ["index", "generated", "generated_tokens", "finish_reason"])
        self.assertGreater(len({row["generated"] for row in rows}), 10)
        for name in ("2 of DDP", "2 of FULL_SHARD"):
            with self.subTest(name):
                self.assertEqual(self.predict(name, *fields, *RANKS[name], run="t5", data="pairs.jsonl"), expected)

    def test_a_hugging_face_folder_needs_a_task_and_no_training_data(self):
        expected = self.predict("out.jsonl")
        self.trainer("checkpoint", "export", "run", "hf")
        told = " ".join(self.predict("never", run="hf", code=2).split())
        self.assertIn("task.name=language_modeling for the probability of each line", told)
        self.assertIn("task.name=instruction_tuning", told)
        self.assertIn("'hf' holds no tokenizer", self.predict("never", "task=language_modeling", run="hf", code=2))
        self.assertEqual(self.predict("lm.jsonl", "--tokenizer=bytes", "task=language_modeling", run="hf"), expected)

        pairs = [json.dumps({"q": f"{i} + {i}", "a": "7"}) + "\n" for i in range(12)]
        self.write("pairs.jsonl", "".join(pairs))
        self.write("asked.jsonl", "".join(pairs[:4]))
        for model, config in (("t5", SEQUENCES), ("gpt2", INSTRUCTIONS)):
            self.write(f"{model}.yaml", config)
            self.trainer(f"{model}.yaml", f"exp_dir={model}", "training.max_steps=3")
            self.trainer("checkpoint", "export", model, f"{model}-hf")
            expected = self.predict(f"{model}.jsonl", run=model, data="asked.jsonl")
            task, text = ("instruction_tuning", "{q}=") if model == "gpt2" else ("sequence_to_sequence", "{q}")
            fields = ["--tokenizer=bytes", f"task.name={task}", "task.generation.max_new_tokens=6"]
            # The field of a line is to be named: `text` is what sequence_to_sequence reads by itself.
            told = "task.data.pairs.input: a mandatory value is missing" if model == "gpt2" else (
                "'asked.jsonl', line 1: the line has no field 'text': its fields are 'a', 'q' "
                "(task.data.pairs.input is '{text}': it names the fields that the model reads)")
            errors = self.predict("never", *fields, run=f"{model}-hf", data="asked.jsonl", code=2)
            self.assertIn(told, " ".join(errors.split()))
            found = self.predict(f"{model}-hf.jsonl", *fields, f'task.data.pairs.input="{text}"', run=f"{model}-hf",
                                 data="asked.jsonl")
            self.assertEqual(found, expected)
            self.write("use.yaml", f'task: {{name: {task}, generation: {{max_new_tokens: 6}}, '
                                   f'data: {{pairs: {{input: "{text}"}}}}}}\n')
            self.assertEqual(self.predict(f"{model}-by-file.jsonl", "--tokenizer=bytes", "--config=use.yaml",
                                          run=f"{model}-hf", data="asked.jsonl"), expected)
            # A checkpoint that is imported of the folder is used as the folder.
            self.trainer("checkpoint", "import", f"{model}-hf", f"{model}-imported")
            self.assertEqual(self.predict(f"{model}-imported.jsonl", *fields, f'task.data.pairs.input="{text}"',
                                          run=f"{model}-imported", data="asked.jsonl"), expected)
        # Plain text needs no field.
        self.write("asked.txt", "".join(f"{json.loads(pair)['q']}\n" for pair in pairs[:4]))
        self.assertEqual(self.predict("t5-plain.jsonl", "--tokenizer=bytes", "task.name=sequence_to_sequence",
                                      "task.generation.max_new_tokens=6", run="t5-hf", data="asked.txt"),
                         (self.folder / "t5.jsonl").read_text())

    def test_a_validation_scores_the_texts_that_predict_writes(self):
        pairs = [{"q": f"{i} + {i}", "a": "7" if i % 3 else "9"} for i in range(40)]
        lines = [json.dumps(pair) + "\n" for pair in pairs]
        self.write("pairs.jsonl", "".join(lines))
        self.write("held_out.jsonl", "".join(lines[-10:]))
        self.write("t5.yaml", SEQUENCES)
        self.write("gpt2.yaml", INSTRUCTIONS)
        fields = ["task.data.pairs.validation_fraction=0.25", "validation.generate.n=10"]
        for model in ("t5", "gpt2"):
            self.trainer(model + ".yaml", f"exp_dir={model}", "training.max_steps=60", *fields)
            logged = [row for row in self.rows(model) if row["phase"] == "validate"][-1]
            written = self.predict(model + "-written", run=model, data="held_out.jsonl")
            texts = [json.loads(line)["generated"] for line in written.splitlines()]
            exact = sum(text == pair["a"] for text, pair in zip(texts, pairs[-10:], strict=True)) / 10
            self.assertGreater(exact, 0, texts)
            for name, ranks in ({"1": []} | RANKS).items():
                if name.startswith("4"):
                    continue
                with self.subTest(name, model=model):
                    row, = [json.loads(line) for line in
                            self.trainer("evaluate", model, "--json", *ranks).stdout.splitlines()]
                    self.assertAlmostEqual(row["exact_match"], exact)
                    self.assertAlmostEqual(row["rouge1"], exact)  # A text of one word: all or nothing.
                    self.assertAlmostEqual(logged["exact_match"], exact)
            # Three lines leave nothing for the second rank.
            self.write("three.jsonl", "".join(lines[-10:-7]))
            for data, expected in (("held_out.jsonl", written), ("three.jsonl", "".join(written.splitlines(True)[:3]))):
                on_two = self.predict(f"{model}-{data}", *RANKS["2 of FULL_SHARD"], run=model, data=data)
                self.assertEqual(on_two, expected)
        self.trainer("t5.yaml", "exp_dir=sharded", "training.max_steps=4", "training.batch_size=2",
                     "validation.every_n_steps=2", *fields, *RANKS["2 of FULL_SHARD"])
        self.assertEqual([row["step"] for row in self.rows("sharded") if "rougeL" in row], [2, 4])
        told = self.trainer("tiny.yaml", "exp_dir=lm", "validation.generate.n=1", code=2)
        self.assertIn("validation.generate.n: the task writes no texts", told.stderr)
        self.assertNotIn("step 1/", told.stdout)

    def test_the_first_n_texts_of_a_validation_are_those_of_the_first_n_lines(self):
        # Later prompts of what is held back are longer, and the answer that is learned is theirs alone.
        pairs = [{"q": "q" * (1 + i % 10), "a": "7"} for i in range(30)]
        pairs += [{"q": "q" * (1 + i), "a": "7" if i > 4 else "9"} for i in range(10)]
        lines = [json.dumps(pair) + "\n" for pair in pairs]
        self.write("pairs.jsonl", "".join(lines))
        self.write("held_out.jsonl", "".join(lines[30:]))
        self.write("gpt2.yaml", INSTRUCTIONS)
        trained = self.trainer("gpt2.yaml", "exp_dir=gpt2", "validation.generate.n=4",
                               "validation.every_n_steps=15").stdout
        shares = [float(share) for share in re.findall(r"([-\d.]+)%", re.search(r"\n  time .*", trained)[0])]
        self.assertEqual(len(shares), 5)
        self.assertTrue(all(0 <= share <= 100 for share in shares), shares)
        self.assertAlmostEqual(sum(shares), 100, delta=0.3)
        texts = [json.loads(line)["generated"] for line in
                 self.predict("written", run="gpt2", data="held_out.jsonl").splitlines()]
        matches = [text == pair["a"] for text, pair in zip(texts, pairs[30:], strict=True)]
        self.assertNotEqual(sum(matches[:4]), sum(matches[-4:]), "the first and the longest must differ")
        logged = [row for row in self.rows("gpt2") if row["phase"] == "validate"][-1]
        self.assertAlmostEqual(logged["exact_match"], sum(matches[:4]) / 4)
        for n, ranks in [(1, "1"), (7, "1"), (3, "2 of DDP"), (20, "2 of FULL_SHARD")]:
            with self.subTest(n=n, ranks=ranks):
                process = self.trainer("evaluate", "gpt2", "--json", f"validation.generate.n={n}",
                                       *RANKS.get(ranks, []))
                first = matches[:n]
                self.assertAlmostEqual(json.loads(process.stdout)["exact_match"], sum(first) / len(first))

    def test_a_killed_command_goes_on(self):
        lines = self.lines * 150
        self.write("many.txt", "\n".join(lines) + "\n")
        fields = ["predict.batch_size=2"]
        expected = self.predict("whole.jsonl", *fields, data="many.txt")
        chosen = random.Random(4)
        part = self.folder / "out.jsonl.part"
        kills = 0
        for ranks in [[], RANKS["2 of DDP"], []] * (4 if is_long() else 1):
            before = part.stat().st_size if part.exists() else 0
            process = self.start("predict", "run", "many.txt", "--output=out.jsonl", *fields, *ranks)
            more = chosen.randrange(2000, 40000)
            deadline = time.monotonic() + runs.TIMEOUT_SECONDS
            while process.poll() is None and time.monotonic() < deadline:
                if part.exists() and part.stat().st_size > before + more:
                    break
                time.sleep(0.002)
            children = runs.children(process.pid) if process.poll() is None else []
            process.kill()
            for child in children:
                try:
                    runs.os.kill(child, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            process.communicate()
            if part.exists():
                kills += 1
                with part.open("a") as file:
                    file.write('{"index": 1, "log')  # Half a line, as a power cut leaves it.
        self.assertGreater(kills, 0)
        self.assertFalse((self.folder / "out.jsonl").exists())
        self.assertEqual(self.predict("out.jsonl", *fields, data="many.txt"), expected)

    def test_an_interrupt_leaves_what_the_next_command_goes_on_from(self):
        self.write("many.txt", "\n".join(self.lines * 150) + "\n")
        process = self.start("predict", "run", "many.txt", "--output=out.jsonl", "predict.batch_size=1")
        part = self.folder / "out.jsonl.part"
        while not part.exists() or part.stat().st_size < 2000:
            self.assertIsNone(process.poll())
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130, errors)
        self.assertRegex(errors, r"\d+ of 6150 lines are in 'out.jsonl.part'; the same command goes on from there")
        told = self.predict("out.jsonl", "predict.batch_size=2", data="many.txt", code=2)
        self.assertIn("is of another model, config or input", told)
        rows = self.predict("out.jsonl", "predict.batch_size=1", data="many.txt").splitlines()
        self.assertEqual(len(rows), 150 * len(self.lines))

    def test_lines_that_cannot_be_read(self):
        bad = ['{"text": "good"}', "", '{"text": "' + "long" * 10 + '"}', '{"text": ', '{"words": "x"}', '{"text": "g"}',
               '{"text": "fine"}']
        problems = {1: "the line is empty", 2: "the document has 40 tokens, and the model predicts at most 16: cut it",
                    3: "the line is no JSON", 4: "the line has no field 'text'", 5: "the document has no second token"}
        self.write("bad.jsonl", "\n".join(bad) + "\n")
        told = self.predict("out.jsonl", data="bad.jsonl", code=2)
        self.assertIn("'bad.jsonl', line 2: the line is empty", told)
        self.assertFalse(any(".part" in name for name in self.files()))
        self.write("late.jsonl", '{"text": "good"}\n' * 30 + "\n")
        for ranks in RANKS.values():
            self.assertIn("'late.jsonl', line 31", self.predict("out", *ranks, data="late.jsonl", code=2))
        self.assertFalse(any(".part" in name for name in self.files()))
        for number, ranks in enumerate([[], RANKS["2 of DDP"], RANKS["2 of FULL_SHARD"]]):
            marked = self.predict(f"marked{number}", "predict.on_error=mark", "predict.batch_size=1",
                                  "predict.max_marked=0.8", *ranks, data="bad.jsonl")
            rows = [json.loads(line) for line in marked.splitlines()]
            self.assertEqual([row["index"] for row in rows], list(range(len(bad))))
            for index, row in enumerate(rows):
                if index in problems:
                    self.assertIn(f"'bad.jsonl', line {index + 1}: {problems[index]}", row["error"])
                else:
                    self.assertIn("perplexity", row)

    def test_marked_lines_are_counted_and_too_many_are_a_failure(self):
        self.write("bad.jsonl", '{"text": "good"}\n' * 3 + "\n")
        command = ["predict", "run", "bad.jsonl", "--output=out", "predict.on_error=mark"]
        for ranks in RANKS.values():
            told = self.trainer(*command, *ranks, code=1).stderr
            self.assertIn("1 of 4 rows say why there is no prediction: more than predict.max_marked (0.1) allows", told)
            self.assertNotIn("error: ", told)  # the warning has said why
            self.assertEqual(len((self.folder / "out").read_text().splitlines()), 4)
            (self.folder / "out").unlink()
            told = self.trainer(*command, "predict.max_marked=0.25", *ranks).stderr
            self.assertIn("1 of 4 rows say why there is no prediction\n", told)
            (self.folder / "out").unlink()

    def test_marked_lines_of_an_earlier_part_count(self):
        self.write("bad.jsonl", "\n" + '{"text": "good"}\n' * 3000)
        command = ["predict", "run", "bad.jsonl", "--output=out", "predict.on_error=mark", "predict.batch_size=1",
                   "predict.max_marked=0"]
        process = self.start(*command)
        part = self.folder / "out.part"
        while not part.exists() or part.stat().st_size < 2000:
            self.assertIsNone(process.poll(), process.stderr.read() if process.poll() is not None else "")
            time.sleep(0.002)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=runs.TIMEOUT_SECONDS)
        for ranks in RANKS["2 of DDP"], []:
            self.assertTrue(part.exists())
            copies = {path: path.read_bytes() for path in (part, self.folder / "out.part.json")}
            told = self.trainer(*command, *ranks, code=1).stderr
            self.assertIn("1 of 3001 rows say why there is no prediction: more than predict.max_marked (0) allows", told)
            (self.folder / "out").unlink()
            for path, content in copies.items():
                path.write_bytes(content)

    def test_ranks_with_other_lines_are_noticed(self):
        environment = {**runs.os.environ, "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                       "MASTER_PORT": str(free_port())}
        self.write("other.jsonl", '{"text": "other"}\n')
        for command in (["predict", "run", "--output=out"], ["evaluate", "run"]):
            processes = [self.start(*command, name, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)})
                         for rank, name in enumerate(["lines.jsonl", "other.jsonl"])]
            errors = ""
            for process in processes:
                errors += process.communicate(timeout=runs.TIMEOUT_SECONDS)[1]
                self.assertEqual(process.returncode, 2, errors)
            self.assertIn("the data of rank 1 is not that of rank 0", errors)
            if "evaluate" in command:
                self.assertRegex(errors, r"rank 1: 'other\.jsonl', 18 bytes, checksum of its ends \w{16}")
            self.assertFalse(any(".part" in name for name in self.files()))

    def test_mistakes(self):
        self.write("empty.jsonl", "")
        for arguments, message in [
            (["run", "lines.txt"], "--output is missing"),
            (["run", "--output=out"], "name a file to make predictions of"),
            (["run", "nothing", "--output=out"], "there is no file 'nothing'"),
            (["run", "empty.jsonl", "--output=out"], "'empty.jsonl' is empty"),
            (["run", "lines.txt", "--output=text.txt"], "'text.txt' exists; remove it"),
            (["run", "lines.txt", "--output=out", "predict.batch_size=0"], "predict.batch_size"),
        ]:
            with self.subTest(arguments):
                self.assertIn(message, self.trainer("predict", *arguments, code=2).stderr)


if __name__ == "__main__":
    runs.main()
