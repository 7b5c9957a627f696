# SPDX-License-Identifier: Apache-2.0
"""Tests `trainer generate`: prompts, standard input, JSONL, terminals, interrupts, errors."""

import json
import os
import shutil
import signal
import subprocess
import time

from tests.end_to_end import byte_bpe, runs, terminals

ENDLESS = "max_new_tokens=1000000"
FULL_SHARD = ["launcher.processes=2", "parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"]


class GenerateTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=run", "training.max_steps=10", "use_double_weight_precision=true"))

    def generate(self, *arguments, code=0, folder="run"):
        return self.trainer("generate", folder, *arguments, code=code)

    def rows(self, *arguments, folder="run"):
        return [json.loads(line) for line in self.generate(*arguments, folder=folder).stdout.splitlines()]

    def prompts(self, *rows):
        self.write("prompts.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        return "--input=prompts.jsonl"

    def test_a_prompt_goes_on(self):
        text = self.generate("--prompt=0: the", "max_new_tokens=20").stdout
        self.assertTrue(text.startswith("0: the"), text)
        self.assertTrue(text.endswith("\n"))
        row, = self.rows(self.prompts({"prompt": "0: the"}), "max_new_tokens=20")
        self.assertEqual(text, "0: the" + row["generated"] + "\n")
        self.assertEqual(row["generated_tokens"], 20)
        self.assertEqual(row["finish_reason"], "length")

    def test_standard_input_is_a_prompt(self):
        expected = self.generate("--prompt=0: the", "max_new_tokens=5").stdout
        found = subprocess.run([runs.TRAINER, "generate", "run", "max_new_tokens=5"], input="0: the\n", text=True,
                               cwd=self.folder, capture_output=True, check=True, timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(found.stdout, expected)
        self.write("prompt.txt", "0: the")
        self.assertEqual(self.generate("--input=prompt.txt", "max_new_tokens=5").stdout, expected)

    def test_draws_follow_the_seed(self):
        draws = ["temperature=1", "max_new_tokens=30", "--prompt=1"]
        self.assertEqual(self.generate(*draws, "seed=1").stdout, self.generate(*draws, "seed=1").stdout)
        self.assertNotEqual(self.generate(*draws, "seed=1").stdout, self.generate(*draws, "seed=2").stdout)

    def test_lines_come_back_in_order_whatever_batches_and_ranks(self):
        asked = [{"id": i, "prompt": f"{i}: the quick"[:3 + i % 7], "z": None, "a": [1]} for i in range(11)]
        fields = [self.prompts(*asked), "max_new_tokens=12", "temperature=1", "seed=3"]
        expected = self.rows(*fields, "batch_size=1")
        self.assertEqual([{key: row[key] for key in asked[0]} for row in expected], asked)
        self.assertEqual(list(expected[0])[:4], ["id", "prompt", "z", "a"])
        self.assertGreater(len({row["generated"] for row in expected}), 5)
        self.assertEqual(self.rows(*fields, "batch_size=4"), expected)
        self.assertEqual(self.rows(*fields, "batch_size=2", "launcher.processes=2"), expected)
        self.assertEqual(self.rows(*fields, "batch_size=3", *FULL_SHARD), expected)

    def test_output_goes_to_a_file(self):
        asked = self.prompts({"prompt": "a"}, {"prompt": "b"})
        printed = self.generate(asked, "max_new_tokens=4").stdout
        self.assertEqual(self.generate(asked, "max_new_tokens=4", "--output=texts.jsonl").stdout, "")
        self.assertEqual((self.folder / "texts.jsonl").read_text(), printed)

    def test_a_killed_or_interrupted_command_goes_on(self):
        asked = self.prompts(*({"id": i, "prompt": f"{i}: the"} for i in range(40)))
        fields = [asked, "max_new_tokens=100", "temperature=1", "batch_size=2"]
        expected = self.generate(*fields).stdout
        part = self.folder / "out.jsonl.part"
        for number, (ranks, sent) in enumerate([([], signal.SIGKILL), (FULL_SHARD, signal.SIGINT)]):
            process = self.start("generate", "run", *fields, "--output=out.jsonl", *ranks)
            before = part.stat().st_size if part.exists() else 0
            while process.poll() is None and not (part.exists() and part.stat().st_size > before):
                time.sleep(0.002)
            process.send_signal(sent)
            _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
            self.assertEqual(process.returncode, -9 if sent == signal.SIGKILL else 130, errors)
            lines = part.read_text().splitlines(keepends=True)
            self.assertEqual("".join(lines), expected[:len("".join(lines))])
            self.assertIn(len(lines), range(1, 40), number)
            self.assertFalse((self.folder / "out.jsonl").exists())
        self.assertIn(f"{len(lines)} of 40 lines are in 'out.jsonl.part'; the same command goes on", errors)
        told = self.generate(*fields, "--output=out.jsonl", "seed=1", code=2).stderr
        self.assertIn("'out.jsonl.part' is of another model, config or input", told)
        self.generate(*fields, "--output=out.jsonl", "batch_size=3")
        self.assertEqual((self.folder / "out.jsonl").read_text(), expected)
        self.assertFalse(any(".part" in name for name in self.files()))

    def test_texts_end_at_a_stop_or_an_end_of_text(self):
        text = self.rows(self.prompts({"prompt": "0: the"}), "max_new_tokens=20")[0]["generated"]
        row, = self.rows("--input=prompts.jsonl", f"stop=[{json.dumps(text[4:6])}]")
        self.assertEqual((row["generated"], row["finish_reason"]), (text[:text.index(text[4:6])], "stop"))
        row, = self.rows("--input=prompts.jsonl", f"eos_token_id=[{ord(text[5])}]")
        self.assertEqual((row["generated"], row["finish_reason"]), (text[:text.index(text[5])], "eos"))

    def test_a_line_end_is_a_stop_text(self):
        long = ["--input=prompts.jsonl", "max_new_tokens=60", "temperature=1"]
        self.prompts({"prompt": "0: the"})
        text = self.rows(*long)[0]["generated"]
        escaped = self.generate(*long, 'stop=["\\n"]')
        self.assertIn("between quotes \\n is a backslash and the letter n", escaped.stderr)
        self.assertEqual(json.loads(escaped.stdout)["generated"], text)
        self.write("stop.yaml", f"stop: [{json.dumps(text[4:6])}]\n")
        row, = self.rows(*long, "--config=stop.yaml")
        self.assertEqual((row["generated"], row["finish_reason"]), (text[:text.index(text[4:6])], "stop"))
        # The run knows its corpus: a prompt at a line's end goes on with the next line.
        self.write("stop.yaml", 'stop: ["\\n"]\n')
        self.prompts({"prompt_token_ids": [10]})
        row, = self.rows(*long, "--config=stop.yaml", "temperature=0")
        self.assertNotIn(10, row["generated_token_ids"])

    def test_a_file_holds_the_fields(self):
        self.write("draws.yaml", "temperature: 1\nmax_new_tokens: 30\nseed: 1\n")
        by_key = ["temperature=1", "max_new_tokens=30", "--prompt=1"]
        self.assertEqual(self.generate("--prompt=1", "--config=draws.yaml").stdout,
                         self.generate(*by_key, "seed=1").stdout)
        self.assertEqual(self.generate("--prompt=1", "--config=draws.yaml", "seed=2").stdout,
                         self.generate(*by_key, "seed=2").stdout)

    def test_an_empty_prompt_is_one_failed_line(self):
        asked = self.prompts({"prompt": "a"}, {"prompt": ""}, {"prompt": "b"}, {"prompt_token_ids": []})
        for ranks in ([], ["launcher.processes=2"]):
            told = self.generate(asked, "max_new_tokens=3", *ranks, code=1)
            rows = [json.loads(line) for line in told.stdout.splitlines()]
            self.assertEqual(["error" in row for row in rows], [False, True, False, True])
            self.assertIn("nothing is written for 2 of 4, prompts 2, 4", told.stderr)
            self.assertNotIn("error: ", told.stderr)  # the warning has said why
        self.generate(asked, "max_new_tokens=3", "--output=texts.jsonl", code=1)
        self.assertEqual((self.folder / "texts.jsonl").read_text(), told.stdout)

    def test_an_empty_prompt_begins_with_the_start_token(self):
        self.trainer("checkpoint", "export", "run", "hf")
        config = self.folder / "hf/config.json"
        config.write_text(json.dumps({**json.loads(config.read_text()), "bos_token_id": ord("0")}))
        fields = ["--tokenizer=bytes", "max_new_tokens=5"]
        text = self.generate("--prompt=", *fields, folder="hf").stdout
        self.assertEqual("0" + text, self.generate("--prompt=0", *fields, folder="hf").stdout)

    def test_long_prompts_are_named_by_number(self):
        asked = self.prompts(*({"prompt": "a" * length} for length in (3, 17, 18, 4, 20)))
        told = self.generate(asked, "max_new_tokens=1").stderr
        self.assertIn("prompts 2-3, 5 have more tokens than the model sees, the last 16 of a text; the first is "
                      "'prompts.jsonl', line 2", told)

    def test_a_checkpoint_by_itself_and_a_hugging_face_folder_write_the_same(self):
        asked = [self.prompts({"prompt": "0: the"}, {"prompt": "2"}), "max_new_tokens=9"]
        expected = self.rows(*asked)
        shutil.copytree(self.folder / "run/checkpoints/step-00000010", self.folder / "moved")
        self.assertEqual(self.rows(*asked, "--tokenizer=bytes", folder="moved"), expected)
        self.trainer("checkpoint", "export", "run", "exported")
        self.assertEqual(self.rows(*asked, "--tokenizer=bytes", "use_double_weight_precision=true", folder="exported"),
                         expected)

    def test_a_run_whose_data_has_moved_writes_with_its_checkpoints_tokenizer(self):
        self.write("characters.txt", "".join(sorted(set(runs.TEXT))))
        source = "task.data.source={name: text, files: [text.txt], tokenizer: characters.txt, cache: cache}"
        self.trainer("tiny.yaml", "exp_dir=own", "training.max_steps=2", "task.data.path=null", source)
        expected = self.generate("--prompt=0: the", folder="own").stdout
        (self.folder / "characters.txt").rename(self.folder / "moved.txt")
        self.assertEqual(self.generate("--prompt=0: the", folder="own").stdout, expected)
        told = self.generate("--prompt=a", "task.data.source.tokenizer=caracters.txt", folder="own", code=2).stderr
        self.assertIn("caracters.txt", told)

    def test_special_tokens_in_prompts_are_what_they_are_for_the_run(self):
        self.write("tok/tokenizer.json", byte_bpe.tokenizer_json(("<|endoftext|>", "<|user|>", "<|im_end|>")))
        prompts = ["<|user|>the fox<|im_end|>", "a <|im_end|> b", "no such token"]
        self.write("asked.jsonl", "".join(json.dumps({"prompt": prompt, "answer": "b"}) + "\n" for prompt in prompts))
        self.write("chat.yaml", """\
name: supervised
model: {name: gpt2, vocab_size: 262, n_positions: 64, n_layer: 2, n_head: 2, n_embd: 16, initializer_range: 0.5}
optimizer: {name: adamw, lr: 1.0e-30}
training: {max_steps: 1, batch_size: 2}
task:
  name: instruction_tuning
  data: {tokenizer: tok, end_of_text: 261, sequence_length: 64, pairs: {files: [asked.jsonl], input: "{prompt}",
         target: "{answer}", special_tokens: true, validation_fraction: 0}}
  generation: {max_new_tokens: 16}
""")
        self.trainer("chat.yaml", "exp_dir=chat")
        asked = ["--input=asked.jsonl", "max_new_tokens=16"]
        self.trainer("predict", "chat", "asked.jsonl", "--output=predicted.jsonl")
        expected = [json.loads(line)["generated"] for line in (self.folder / "predicted.jsonl").read_text().splitlines()]
        as_text = self.rows(*asked, "task.data.pairs.special_tokens=false", folder="chat")
        differing = sum(row["generated"] != text for row, text in zip(as_text, expected, strict=True))
        self.assertEqual(differing, 2, "two of the prompts hold such tokens")
        (self.folder / "tok").rename(self.folder / "moved")
        for tokenizer in (["--tokenizer=moved"], []):  # The other is the checkpoint's own.
            self.assertEqual([row["generated"] for row in self.rows(*asked, *tokenizer, folder="chat")], expected)
        (self.folder / "moved").rename(self.folder / "tok")
        self.assertEqual([row["generated"] for row in self.rows(*asked, folder="chat")], expected)
        self.assertEqual(self.rows(*asked, "special_tokens=false", folder="chat"), as_text)
        # An export has no task that could say so.
        self.trainer("checkpoint", "export", "chat", "chat_hf")
        self.assertEqual(self.rows(*asked, folder="chat_hf"), as_text)
        special = self.rows(*asked, "special_tokens=true", folder="chat_hf")
        self.assertEqual([row["generated"] for row in special], expected)

    def test_what_a_hugging_face_folder_has_no_run_for_is_refused(self):
        self.trainer("checkpoint", "export", "run", "exported")
        for override, place in [
            ("task.data.pairs.special_tokens=true", "take special_tokens=true"),
            ("task.data.tokenizer=bytes", "take --tokenizer"),
            ("task.generation.top_k=5", "take top_k"),
            ("+optimizer.lr=1", ""),
            ("training.max_steps=3", ""),
            ("~lr_scheduler", ""),
        ]:
            with self.subTest(override):
                told = " ".join(self.generate("--prompt=a", "--tokenizer=bytes", override, folder="exported",
                                              code=2).stderr.split())
                self.assertIn(f"{override.strip('+~').split('=')[0]}: generate does not read it", told)
                self.assertIn(place, told)
        self.generate("--prompt=a", "--tokenizer=bytes", "max_new_tokens=1", "training.seed=3", folder="exported")

    def test_mistakes_are_told_before_anything_is_written(self):
        self.write("broken.jsonl", '{"prompt": "a"}\n\n{"prompt": \n')
        self.write("other.jsonl", '{"prompt": "a"}\n{"text": "b"}\n')
        self.write("ids.jsonl", '{"prompt_token_ids": [1, "2"]}\n')
        self.write("large.jsonl", '{"prompt_token_ids": [1, 256]}\n')
        self.write("empty.jsonl", "\n")
        self.write("empty.txt", "")
        self.write("wrong.yaml", "temperature: 1\nmax_length: 3\n")
        self.write("bpe/tokenizer.json", byte_bpe.tokenizer_json())
        for arguments, message in [
            (["--input=broken.jsonl"], "'broken.jsonl', line 3"),
            (["--input=other.jsonl"], "'other.jsonl', line 2: the line has neither 'prompt', a text"),
            (["--input=ids.jsonl"], "'ids.jsonl', line 1: its 'prompt_token_ids' is no list of tokens"),
            (["--input=large.jsonl"], "the token 256 is not in the model's vocabulary of 256"),
            (["--prompt=the", "--tokenizer=bpe"],
             "--prompt: the token 257 is not in the model's vocabulary of 256 (model.vocab_size): the tokenizer that "
             f"reads the prompt has {byte_bpe.END + 1} tokens: name the one that the model was trained with by "
             "--tokenizer"),
            (["--input=empty.jsonl"], "'empty.jsonl' has no prompts"),
            (["--input=empty.txt"], "'empty.txt': it has no tokens, and the model names none that begins a text"),
            (["--input=missing"], "there is no file 'missing'"),
            (["--prompt="], "--prompt: it has no tokens"),
            (["--prompt=a", "--input=empty.txt"], "drop one"),
            (["--prompt=a", "temperature=-1"], "temperature"),
            (["--prompt=a", "temperatur=1"], "'temperatur' is no field of generate; did you mean temperature?; they are: "
                                             "batch_size, dtype, early_stopping, eos_token_id, length_penalty"),
            (["--prompt=a", "max_new_token=1"], "did you mean max_new_tokens?"),
            (["--prompt=a", "max_length=1"], "did you mean max_new_tokens?"),
            (["--prompt=a", "--config=wrong.yaml"], "wrong.yaml:2:1: max_length: 'max_length' is no field of generate; "
                                                    "did you mean max_new_tokens?"),
            (["--prompt=a", "--config=missing.yaml"], "missing.yaml"),
            (["--prompt=a", "num_beams=2", "temperature=1"], "num_beams searches the likeliest text"),
            (["--prompt=a", "stop=['']"], "stop: an empty text"),
            (["--prompt=a", "--tokenizer=nowhere"], "--tokenizer"),
            (["--prompt=a", "task.data.tokeniser=bytes"], "task.data.tokeniser"),
            (["--prompt=a", "optimizer.lrr=1"], "optimizer.lrr"),
            (["--prompt=a", "dtype=bfloat16", "launcher.processes=2"], "dtype is for one process"),
        ]:
            with self.subTest(arguments):
                process = self.generate(*arguments, "--output=never", code=2)
                self.assertIn(message, process.stderr)
                self.assertFalse((self.folder / "never").exists())
        self.assertIn("nowhere", self.generate("--prompt=a", folder="nowhere", code=2).stderr)

    def terminal(self, columns, *arguments):
        return terminals.Terminal([str(runs.TRAINER), "generate", "run", *arguments], columns, runs.TIMEOUT_SECONDS,
                                  cwd=self.folder, environment=dict(os.environ, TERM="xterm"))

    def test_a_terminal_shows_the_text_as_it_comes_and_ctrl_c_keeps_it(self):
        expected = self.generate("--prompt=0: the", "max_new_tokens=60").stdout
        for columns in (80, 12):  # The terminal breaks lines, not the program.
            terminal = self.terminal(columns, "--prompt=0: the", ENDLESS)
            text = terminal.read_until(lambda shown: len(shown.replace("\r", "")) > 200 + columns)
            terminal.type("\x03")
            try:
                terminal.read_until(lambda _: False)
            except EOFError:
                pass
            rest = terminal.output
            self.assertEqual(terminal.end(), 130)
            shown = (text + rest).replace("\r\n", "\n")
            self.assertIn(expected[:40], shown)
            self.assertTrue(shown.endswith("\n"), repr(shown[-20:]))

    def test_without_a_terminal_an_interrupt_keeps_the_text(self):
        process = self.start("generate", "run", "--prompt=0: the", ENDLESS)
        shown = process.stdout.read(50)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130, errors)
        self.assertTrue((shown + rest).startswith("0: the"))
        self.assertNotIn("\x1b", shown + rest)

    def test_an_interrupt_ends_all_ranks(self):
        process = self.start("generate", "run", "--prompt=0: the", ENDLESS, *FULL_SHARD)
        process.stdout.read(30)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 130, errors)


if __name__ == "__main__":
    runs.main()
