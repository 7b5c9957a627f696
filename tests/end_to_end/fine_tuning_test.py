# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/fine_tuning.md, run in their order, and configs/llama_lora.yaml, cut down."""

import pathlib
import re
import shlex
import shutil
import sys

from tests.end_to_end import runs

EXAMPLE = pathlib.Path(sys.argv.pop()).resolve()
PAGE = pathlib.Path(sys.argv.pop()).resolve()


class FineTuningTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.once(("tiny.yaml", "exp_dir=theirs", "training.max_steps=5", "lr_scheduler.decay_steps=40"),
                  ("checkpoint", "export", "theirs", "my_model"))

    def test_the_example_with_a_small_model(self):
        self.trainer("tokenize", "text.txt", "--tokenizer=characters", "--output=tokens")
        shutil.copy(self.folder / "tokens/tokenizer/characters.txt", self.folder / "my_model")
        arguments = [EXAMPLE, "checkpoint.load_from=my_model", "lora.target_modules=[c_attn]",
                     "task.data.source.files=[text.txt]", "task.data.source.cache=cache",
                     "task.data.sequence_length=16", "lr_scheduler.warmup_steps=1", "exp_dir=example"]
        told = self.trainer(*arguments, "training.max_steps=3").stdout
        self.assertRegex(told, r"lora +r 16, lora_alpha 32; 2 of 8 linear layers")
        self.assertNotIn("holds a tokenizer", told)
        self.assertTrue((self.folder / "example/checkpoints/step-00000003").exists())

    def test_the_commands_of_the_page(self):
        model, rest = runs.CONFIG.index("model:"), runs.CONFIG.index("optimizer:")
        self.write("mine.yaml", runs.CONFIG[:model] + runs.CONFIG[rest:].replace("max_steps: 40", "max_steps: 5"))
        commands = [line for block in re.findall(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
                    for line in block.splitlines()]
        self.assertEqual(len(commands), 8)
        for command in commands:
            program, *arguments = shlex.split(command)
            self.assertEqual(program, "trainer")
            self.trainer(*arguments)
        for written in ("full_hf/config.json", "adapters_hf/adapter_config.json", "merged_hf/config.json"):
            self.assertTrue((self.folder / written).exists(), written)


if __name__ == "__main__":
    runs.main()
