# SPDX-License-Identifier: Apache-2.0
"""Compares `trainer evaluate` of a folder that transformers saved with transformers' own loss, on one rank and on
two."""

import json
import os

import torch
from transformers import GPT2Config, GPT2LMHeadModel

from tests.end_to_end import runs
from tests.parity.byte_tokenizer import END, VOCABULARY, byte_tokenizer
from tests.parity.families import FAMILIES, LENGTH
from tests.parity.transformers_peer import be_quiet_on_one_thread

TASK = ("task={name: language_modeling, data: {path: text.txt, validation_path: text.txt, sequence_length: %d}}"
        % LENGTH)
BATCH = 8


def loss_of(model, text):
    """The mean over all targets of the whole sequences that a text holds."""
    tokens = torch.tensor(list(text.encode()))
    count = (len(tokens) - 1) // LENGTH
    inputs = tokens[:count * LENGTH].view(count, LENGTH)
    targets = tokens[1:count * LENGTH + 1].view(count, LENGTH)
    with torch.no_grad():
        logits = model(input_ids=inputs).logits
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()


class EvaluateParityTest(runs.RunTest):

    def test_with_its_tokenizer_a_folder_needs_no_task(self):
        be_quiet_on_one_thread()
        torch.manual_seed(3)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, n_positions=LENGTH, n_embd=24, n_layer=2,
                                           n_head=2)).eval()
        model.save_pretrained(self.folder / "lm")
        tokenizer = byte_tokenizer()
        tokenizer.save_pretrained(self.folder / "lm")
        documents = [runs.TEXT[:300], "a", "two words", runs.TEXT[1000:1000 + LENGTH]]
        self.write("documents.jsonl", "".join(json.dumps({"text": text}) + "\n" for text in documents))
        losses, count = 0, 0
        for text in documents:
            tokens = torch.tensor(tokenizer(text)["input_ids"] + [END])
            for begin in range(0, len(tokens) - 1, LENGTH):
                piece = tokens[begin:begin + LENGTH + 1]
                with torch.no_grad():
                    logits = model(input_ids=piece[None, :-1]).logits[0]
                losses += torch.nn.functional.cross_entropy(logits, piece[1:], reduction="sum").item()
                count += len(piece) - 1
        found = json.loads(self.trainer("evaluate", "lm", "documents.jsonl", "--json",
                                        env=dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))).stdout)["loss"]
        print(f"{len(documents)} documents: {found}, transformers {losses / count}")
        self.assertLessEqual(abs(found - losses / count), 1e-6 * found)

    def test_a_folders_loss_is_transformers(self):
        be_quiet_on_one_thread()
        text = runs.TEXT[:4000]
        self.write("text.txt", text)
        for name in ("gpt2", "llama"):
            model = FAMILIES[name].random_model().eval()
            model.save_pretrained(self.folder / name)
            expected = loss_of(model, text)
            for ranks in ([], ["launcher.processes=2", "parallel.use_fsdp=true"]):
                printed = self.trainer("evaluate", name, TASK, f"training.batch_size={BATCH}", "--json", *ranks).stdout
                found = json.loads(printed)["loss"]
                print(f"{name} {ranks}: {found}, transformers {expected}")
                self.assertLessEqual(abs(found - expected), 1e-6 * expected)


if __name__ == "__main__":
    runs.main()
