# SPDX-License-Identifier: Apache-2.0
"""Commands and claims of commands.md, config_files.md, checkpoints.md, runs.md and using_a_model.md, as they stand
there."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

from tests.end_to_end import byte_bpe, runs

USING = pathlib.Path(sys.argv.pop()).resolve()
CHECKPOINTS = pathlib.Path(sys.argv.pop()).resolve()
COMMANDS = pathlib.Path(sys.argv.pop()).resolve()


SPECIAL = ("<|endoftext|>", "<|user|>", "<|assistant|>")
SEQUENCES = """\
name: supervised
task: {name: sequence_to_sequence, data: {tokenizer: bytes, end_of_text: 9, input_length: 64, target_length: 16,
       pairs: {files: [pairs.jsonl], input: "{question}", target: "{answer}", validation_fraction: 0}}}
model: {name: t5, vocab_size: 262, d_model: 16, d_kv: 8, d_ff: 32, num_layers: 1, num_heads: 2}
optimizer: {name: adamw, lr: 1.0e-3}
training: {max_steps: 1, batch_size: 2}
"""


def commands_of(page):
    """The command lines of all blocks of a shell, each in one line."""
    blocks = re.findall(r"^```shell\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [line for text in blocks for line in text.replace("\\\n", "").splitlines()]


def block(page, heading, language):
    """The lines of the first block of code below a heading."""
    below = page.read_text().split(f"\n## {heading}\n", 1)[1]
    return re.search(rf"```{language}\n(.*?)```", below, re.DOTALL)[1].splitlines()


class PagesTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.write("my.yaml", runs.CONFIG.replace("max_steps: 40", "max_steps: 6").replace(
            "save_every_n_steps: 5", "save_every_n_steps: 2"))
        self.once(("my.yaml", "exp_dir=run"))

    def command(self, line, **options):
        program, *arguments = shlex.split(line, comments=True)
        self.assertEqual(program, "trainer")
        # Texts of documents are tokenized into the cache.
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))
        if "<" not in arguments:
            return self.trainer(*arguments, env=environment, **options)
        *arguments, _, name = arguments
        with (self.folder / name).open() as file:
            return subprocess.run([runs.TRAINER, *arguments], cwd=self.folder, stdin=file, check=True, env=environment,
                                  timeout=runs.TIMEOUT_SECONDS)

    def test_runs_have_the_names_that_commands_md_says(self):
        self.write("base.yaml", (self.folder / "my.yaml").read_text())
        self.write("big.yaml", "model: {n_layer: 3}\n")
        lines = block(COMMANDS, "Train", "shell")
        self.assertEqual(len(lines), 5)
        for line in lines:
            self.command(line)
            for folder in re.findall(r"runs/\S*run_0", line):
                self.assertTrue((self.folder / folder / "config.yaml").exists(), line)
        self.assertEqual((self.folder / "runs/my/run_0/starts.jsonl").read_text().count("\n"), 2)

    def test_a_config_is_begun_explained_and_printed(self):
        begun, explained, printed = re.findall(r"^- .*?`(trainer config (?:new|print) [^`]*|trainer config explain "
                                               r"task [^`]*)`", COMMANDS.read_text(), re.MULTILINE)
        (self.folder / "my.yaml").unlink()
        self.command(begun)
        head = (self.folder / "my.yaml").read_text().split("\nname: ")[0]
        self.assertIn("# still to be given:\n#   task.data: give task.data.path", head)
        self.assertIn("here language_modeling  # my.yaml", self.command(explained).stdout)
        self.command(printed, code=2)
        self.assertIn("path: text.txt  # command line", self.command(f"{printed} task.data.path=text.txt").stdout)
        # A config that lacks nothing does not say that it does.
        whole = self.trainer("config", "new", "task=copying", "model=llama-tiny", "optimizer=sgd").stdout
        self.assertNotIn("still to be given", whole)

    def test_a_number_is_a_key_of_text(self):
        printed = self.trainer("config", "print", "my.yaml", "checkpoint.load_from=run",
                               "checkpoint.load_prefixes={1: x}").stdout
        self.assertIn('"1": x', printed)
        self.write("null.yaml", "checkpoint: {load_prefixes: {null: x}}\n")
        self.assertIn("a key must be text", self.trainer("config", "print", "my.yaml", "null.yaml", code=2).stderr)

    def test_the_commands_for_checkpoints(self):
        self.trainer("checkpoint", "export", "run", "HF_FOLDER")
        lines = block(CHECKPOINTS, "Looking at them", "text")
        self.assertEqual(len(lines), 8)
        shutil.copytree(self.folder / "run", self.folder / "kept")
        for number, line in enumerate(lines):
            shutil.rmtree(self.folder / "run")
            shutil.copytree(self.folder / "kept", self.folder / "run")  # prune removes some
            command, about = re.fullmatch(r"(trainer checkpoint .*?)\s{2,}(.*)", line).groups()
            command = command.replace("A B", "run@2 run@4").replace(" ...", "")
            options = " ".join(re.findall(r"\[(.*?)\]", about)).replace(" ...", "")
            command = command.replace("DESTINATION", f"made_{number}")
            self.command(f"{re.sub(r'(?<!_)FOLDER', 'run', command)} {options}")

    def export(self, folder, *arguments, config="my.yaml", tokenizer=True):
        """A folder of Hugging Face's libraries."""
        self.trainer(config, f"exp_dir=for_{folder}", "training.max_steps=1", *arguments)
        self.trainer("checkpoint", "export", f"for_{folder}", folder)
        if tokenizer:
            self.write(f"{folder}/tokenizer.json", byte_bpe.tokenizer_json(SPECIAL))

    def test_the_commands_for_trained_models(self):
        questions = [{"question": f"{i} + {i}", "answer": str(2 * i), "text": f"{i} lazy dogs",
                      "prompt": f"{i}: the"} for i in range(4)]
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        for name in ("pairs", "documents", "questions", "prompts"):
            self.write(f"{name}.jsonl", lines)
        for name in ("a", "b", "article"):
            self.write(f"{name}.txt", runs.TEXT[:1000 + 100 * len(name)])
        self.write("t5.yaml", SEQUENCES)
        self.trainer("my.yaml", "exp_dir=runs/my/run_0")
        large = ["model.vocab_size=262", "model.n_positions=256"]
        self.export("my_gpt2", *large)
        self.export("my_chat", *large)
        self.export("my_model", tokenizer=False)
        self.export("my_t5", config="t5.yaml")
        found = commands_of(USING)
        self.assertEqual(len(found), 11)
        for line in found:
            with self.subTest(line):
                for written in re.findall(r"--output=(\S+)", line):
                    (self.folder / written).unlink(missing_ok=True)
                self.command(line)
        # A file of fields, and the command that names it, which does as that without it.
        answers = (self.folder / "answers.jsonl").read_text()
        file, line, fields = re.search(r"```yaml\n# (\S+\.yaml): (trainer .*)\n((?:.+\n)*)```", USING.read_text()).groups()
        (self.folder / "answers.jsonl").unlink()
        self.write(file, fields)
        self.command(line)
        self.assertEqual((self.folder / "answers.jsonl").read_text(), answers)

    def test_an_average_of_another_precision_is_used_as_any_checkpoint(self):
        self.trainer("checkpoint", "average", "run@2", "run@4", "--output=mean", "--dtype=bf16")
        self.trainer("evaluate", "mean")
        self.trainer("generate", "mean", "--prompt=1: the", "max_new_tokens=2")
        self.trainer("my.yaml", "checkpoint.load_from=mean", "exp_dir=next")

    def test_list_reads_no_byte_of_a_tensor(self):
        file = self.folder / "run/checkpoints/step-00000006/model.safetensors"
        content = bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        listed = self.trainer("checkpoint", "list", "run").stdout
        self.assertRegex(listed, r"step-00000006 \*.* committed\n")
        self.assertIn("step-00000006: damaged", self.trainer("checkpoint", "verify", "run", code=1).stdout)

    def test_evaluate_needs_the_data_that_it_measures(self):
        (self.folder / "text.txt").rename(self.folder / "moved.txt")
        self.assertIn("'text.txt'", self.trainer("evaluate", "run", code=2).stderr)
        self.trainer("evaluate", "run", "moved.txt")
        self.trainer("evaluate", "run", "task.data.validation_path=moved.txt")
        self.trainer("evaluate", "run", "task.data.path=moved.txt")

    def test_a_start_says_what_started_it(self):
        for launcher, arguments in (("local", ["my.yaml"]), ("alone", ["my.yaml", "launcher.name=alone"]),
                                    ("launch", ["launch", "--nproc-per-node=1", "my.yaml"])):
            self.trainer(*arguments, f"exp_dir=by_{launcher}", "training.max_steps=1")
            start = json.loads((self.folder / f"by_{launcher}/starts.jsonl").read_text())
            self.assertEqual(start["launcher"], launcher)


if __name__ == "__main__":
    runs.main()
