# SPDX-License-Identifier: Apache-2.0
"""Arguments that a newcomer writes: paths that lead nowhere, flags for fields, a run whose config is lost. Each is
refused with what is there and what to write."""

import json
import shutil
import subprocess

from tests.end_to_end import runs
from tests.end_to_end.bad_inputs_test import LFS_POINTER

STEPS = ("training.max_steps=5", "lr_scheduler.decay_steps=40")
HUB = ": if it names a model of Hugging Face's hub, download it first (`hf download "


class WrongArguments(runs.RunTest):

    def refused(self, *arguments):
        return " ".join(self.trainer(*arguments, code=2).stderr.split())

    def train(self):
        self.once(["tiny.yaml", "exp_dir=runs/tiny/run_0", *STEPS])

    def test_a_path_that_does_not_exist_is_told_as_that(self):
        gone = "'gpt2' does not exist" + HUB + "gpt2 --local-dir gpt2`)"
        for arguments in (["tiny.yaml", "checkpoint.load_from=gpt2"], ["evaluate", "gpt2"],
                          ["generate", "gpt2", "--prompt=a"], ["checkpoint", "export", "gpt2", "out"],
                          ["checkpoint", "list", "gpt2"], ["checkpoint", "import", "gpt2", "out"],
                          ["tokenize", "text.txt", "--tokenizer=gpt2", "--output=tokens"],
                          ["tiny.yaml", "~task.data.path", "task.data.source={name: text, files: [text.txt], "
                                                           "tokenizer: gpt2}"]):
            with self.subTest(arguments):
                self.assertIn(gone, self.refused(*arguments))
        self.assertIn("'org/name' does not exist" + HUB + "org/name --local-dir name`)",
                      self.refused("tokenize", "text.txt", "--tokenizer=org/name", "--output=tokens"))
        told = self.refused("evaluate", "runs/none/run_1")
        self.assertIn("'runs/none/run_1' does not exist: name a run's folder", told)
        self.assertNotIn("hub", told)
        self.train()
        told = self.refused("tiny.yaml", "checkpoint.load_from=runs/tiny/run_O")
        self.assertIn("checkpoint.load_from (command line): 'runs/tiny/run_O' does not exist: name a run's folder, "
                      "its checkpoints folder or one checkpoint in it; did you mean 'runs/tiny/run_0'?", told)
        told = self.refused("checkpoint", "list", "runs/tiny/run_0/checkpoints/step-00000008")
        self.assertRegex(told, "did you mean 'runs/tiny/run_0/checkpoints/step-0000000\d'")

    def test_a_folder_without_checkpoints_is_told_by_what_it_holds(self):
        self.train()
        self.trainer("tiny.yaml", "exp_dir=runs/tiny/run_1", *STEPS)
        shutil.rmtree(self.folder / "runs/tiny/run_1/checkpoints", ignore_errors=True)
        (self.folder / "runs/tiny/run_1/checkpoints").mkdir()
        self.assertIn("'runs/tiny' is a folder of runs: name one of 'runs/tiny/run_0', 'runs/tiny/run_1'",
                      self.refused("evaluate", "runs/tiny"))
        self.assertIn("'runs' is a folder of runs: name one of 'runs/tiny/run_0', 'runs/tiny/run_1'",
                      self.refused("generate", "runs", "--prompt=a"))
        self.assertIn("the run 'runs/tiny/run_1' has saved no checkpoint yet: train it on "
                      "(exp_dir=runs/tiny/run_1)", self.refused("evaluate", "runs/tiny/run_1"))
        self.assertIn("'runs/tiny/run_0@last' names no checkpoint: behind @ stands best or a step, as in "
                      "runs/tiny/run_0@best; the newest is runs/tiny/run_0",
                      self.refused("evaluate", "runs/tiny/run_0@last"))

    def test_a_flag_that_is_a_field_is_told_as_a_field(self):
        self.train()
        run = "runs/tiny/run_0"
        self.assertIn("fields are set by key=value: write max_new_tokens=4",
                      self.refused("generate", run, "--max_new_tokens=4"))
        self.assertIn("fields are set by key=value: write training.batch_size=4",
                      self.refused("evaluate", run, "--training.batch_size=4"))
        self.assertIn("training.max_steps=9", self.refused("tiny.yaml", "--max-steps=9"))
        self.assertNotIn("fields are set",
                         self.refused("tokenize", "text.txt", "--vocab-size=3"))
        self.assertIn("'The king' is no key=value: for a prompt write --prompt='The king'",
                      self.refused("generate", run, "The king"))

    def test_a_key_of_another_class_is_told_by_that_class(self):
        self.train()
        told = self.refused("generate", "runs/tiny/run_0", "--prompt=a", "task.data.pairs.special_tokens=true")
        self.assertIn("unknown key in the section 'task.data'; it belongs to task 'instruction_tuning', "
                      "task 'sequence_to_sequence'.", told)
        self.assertNotIn("did you mean", told)

    def test_a_key_of_the_chosen_class_is_looked_for_within_it(self):
        self.assertIn("task.loader: unknown key in task 'language_modeling'; did you mean 'task.data.loader'?",
                      self.refused("tiny.yaml", "task.loader.num_workers=2"))
        self.assertIn("num_workers (PyTorch DDP) is here: task.data.loader.num_workers",
                      self.refused("tiny.yaml", "num_workers=2"))
        told = self.refused("tiny.yaml", "task={name: copying, data: {loader: {num_workers: 2}}}")
        self.assertIn("task.data: unknown key in task 'copying'; did you mean 'task.loader'?", told)
        self.assertNotIn("is here", told)

    def test_a_mistake_is_told_at_its_own_place(self):
        self.write("best.yaml", self.config.replace(
            "{save_every_n_steps: 5}", "{save_every_n_steps: 5, keep_best: {metric: loss, mode: min}}"))
        self.assertIn("command line, argument 'checkpoint.keep_best.metric=accuracy'",
                      self.refused("best.yaml", "checkpoint.keep_best.metric=accuracy"))
        told = self.refused("tiny.yaml", "task={name: instruction_tuning}", "task.data.tokenizer=bytes",
                            "task.data.pairs.input='{a}'", "task.data.pairs.target='{b}'")
        self.assertIn("error: task.data.pairs.files: a mandatory value is missing", told)
        self.write("text.txt", LFS_POINTER)
        self.assertIn("task.data.path: 'text.txt' is a Git LFS pointer", self.refused("tiny.yaml"))
        self.write("text.txt", runs.TEXT)
        self.write("weights/model.safetensors", LFS_POINTER)
        self.assertRegex(self.refused("tiny.yaml", "checkpoint.load_from=weights"),
                         r"checkpoint\.load_from \(.*\): '[^']*weights/model.safetensors' is a Git LFS pointer")

    def test_a_lost_or_damaged_config_is_written_anew_from_a_checkpoint(self):
        self.train()
        run = "runs/tiny/run_0"
        config = self.folder / run / "config.yaml"
        restore = f"trainer checkpoint inspect {run} --config | tail -n 1 > {run}/config.yaml"
        config.write_text("")
        for arguments in (["tiny.yaml", f"exp_dir={run}"], ["evaluate", run]):
            told = self.refused(*arguments)
            self.assertIn("the file is empty", told)
            self.assertIn("the run's own config.yaml is damaged: repair it, or write it anew from the newest "
                          "checkpoint: trainer checkpoint inspect ", told)
        config.unlink()
        self.assertIn(f"{run} holds a run whose config.yaml is lost: bring it back, or write it anew from the newest "
                      f"checkpoint: {restore}", self.refused("tiny.yaml", f"exp_dir={run}"))
        subprocess.run(["bash", "-c", restore.replace("trainer", str(runs.TRAINER), 1)], cwd=self.folder, check=True,
                       timeout=60)
        self.trainer("tiny.yaml", f"exp_dir={run}", "training.max_steps=6", "lr_scheduler.decay_steps=40")
        self.assertEqual(self.rows(run)[-1]["step"], 6)

    def test_other_spellings_are_answered_with_ours(self):
        self.train()
        self.assertIn("'5 min' is not a duration; write 5m",
                      self.refused("tiny.yaml", "training.max_seconds=5 min"))
        self.assertIn("did you mean 'bf16'?", self.refused("tiny.yaml", "mixed_precision=bfloat16"))
        self.assertIn("unknown value of --dtype 'bfloat16'; did you mean 'bf16'? There are: ",
                      self.refused("checkpoint", "export", "runs/tiny/run_0", "out", "--dtype=bfloat16"))
        self.assertIn("did you mean 'r'?", self.refused("tiny.yaml", "lora.rank=3"))
        self.assertIn("all linear layers are ['*']", self.refused("tiny.yaml", "lora.target_modules=[all-linear]"))

    def test_json_without_texts_is_told_by_what_it_holds(self):
        chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]}
        self.write("chat.jsonl", 20 * (json.dumps(chat) + "\n"))
        pairs = ("task={name: instruction_tuning, data: {tokenizer: bytes, end_of_text: 0, sequence_length: 16}}",
                 "task.data.pairs.input='{a} '", "task.data.pairs.target='{b}'")
        self.assertIn("has no text in the field 'messages', but a list of messages, which is not read: write each turn",
                      self.refused("tokenize", "chat.jsonl", "--tokenizer=bytes", "--field=messages",
                                   "--output=tokens"))
        self.write("table.csv", "a,b\n1,2\n")
        self.assertIn("'table.csv' is a table: a pair is a line of JSONL; write it as JSONL, in Python: "
                      "pandas.read_csv", self.refused("tiny.yaml", *pairs, "task.data.pairs.files=[table.csv]"))
        self.write("numbers.jsonl", 40 * '{"a": 12, "b": 0.5}\n')
        self.trainer("tiny.yaml", *pairs, "task.data.pairs.files=[numbers.jsonl]", *STEPS)


if __name__ == "__main__":
    runs.main()
