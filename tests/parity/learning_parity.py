# SPDX-License-Identifier: Apache-2.0
"""Learns with the trainer and with transformers or peft, from the same weights on the same batches.

GPT-2 at the size that nanoGPT trains on a CPU, with characters; T5 by span corruption; LoRA
adapters of the GPT-2. The losses of every step are compared, on one rank, DDP 2 and FULL_SHARD 2.
By default 50 steps, and of LoRA and T5 one of the ways on two ranks; with --config=long 500 steps, of which rounding
lets the later ones drift, in all ways.
"""

import json
import subprocess
import sys
from pathlib import Path

WRITE_BATCHES = str(Path(sys.argv.pop()).resolve())

import numpy
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file
from torch.nn import functional as F
from transformers import GPT2Config, GPT2LMHeadModel, T5Config, T5ForConditionalGeneration

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.parity.transformers_peer import be_quiet_on_one_thread, groups

STEPS = 500 if is_long() else 50
EXACT_STEPS = 50
runs.TIMEOUT_SECONDS = 120 + 2 * STEPS  # Other tests may run beside.
# Relative, of a step's loss up to EXACT_STEPS, and of the mean of the last tenth of the losses.
STEP_LIMIT, MEAN_LIMIT = 1e-4, 5e-3
BATCH_SIZE, LENGTH = 12, 64
ADAMW = {"lr": 1e-3, "betas": [0.9, 0.99], "eps": 1e-8}
WEIGHT_DECAY, CLIP = 0.1, 1.0
LORA = {"r": 8, "lora_alpha": 16, "lora_dropout": 0.0, "target_modules": ["c_attn", "c_fc", "mlp.c_proj"]}
RANKS = {
    "DDP 2": ["launcher.processes=2", f"training.batch_size={BATCH_SIZE // 2}"],
    "FULL_SHARD 2": ["launcher.processes=2", f"training.batch_size={BATCH_SIZE // 2}", "parallel.use_fsdp=true",
                     "parallel.sharding_strategy=FULL_SHARD"],
}


def corpus():
    """Text that every Debian has."""
    sources = sorted({p.resolve() for p in Path("/usr/share/common-licenses").iterdir()})
    return "".join(source.read_text(errors="replace") for source in sources)


def peer_losses(model, parameter_groups, batches, loss_of):
    """Losses of a plain loop of PyTorch, one a step."""
    optimizer = torch.optim.AdamW(parameter_groups, **ADAMW)
    parameters = [p for group in parameter_groups for p in group["params"]]
    losses = []
    for _, batch in zip(range(STEPS), batches):
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, CLIP)
        optimizer.step()
        losses.append(loss.item())
    return losses


def causal_loss(model, batch):
    inputs, targets = batch
    return F.cross_entropy(model(inputs).logits.flatten(0, 1), targets.flatten())


def mean_at_end(losses):
    return sum(losses[-len(losses) // 10:]) / len(losses[-len(losses) // 10:])


class LearningParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()
        torch.manual_seed(3)
        tell_sample(STEPS, 500, "steps")

    def train(self, exp_dir, task, overrides=(), **sections):
        self.write("learn.yaml", json.dumps({
            "name": "supervised",
            "task": task,
            "optimizer": {"name": "adamw", "weight_decay": WEIGHT_DECAY} | ADAMW,
            "lr_scheduler": {"name": "constant"},
            "training": {"max_steps": STEPS, "batch_size": BATCH_SIZE, "clip_grad_norm": CLIP, "seed": 0},
            "checkpoint": {"load_from": "lm", "save_every_n_steps": None},
            "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
        } | sections))  # fmt: skip
        self.trainer("learn.yaml", f"exp_dir={exp_dir}", *overrides)
        return [row["loss"] for row in self.rows(exp_dir) if row["phase"] == "train"]

    def require_same_learning(self, label, found, expected):
        self.assertEqual(len(found), len(expected))
        differences = [abs(a - b) / b for a, b in zip(found, expected)]
        end, expected_end = mean_at_end(found), mean_at_end(expected)
        print(f"{label}: loss {found[0]:.4f} to {end:.4f} (peer {expected_end:.4f}); in {EXACT_STEPS} steps it differs "
              f"by {max(differences[:EXACT_STEPS]):.1e} at most")
        self.assertLess(end, 0.9 * found[0], "it has not learned")
        self.assertLess(max(differences[:EXACT_STEPS]), STEP_LIMIT)
        self.assertLess(abs(end - expected_end) / expected_end, MEAN_LIMIT)

    def require_same_on_ranks(self, label, task, expected, sample=tuple(RANKS), **sections):
        chosen = tuple(RANKS) if is_long() else sample
        tell_sample(len(chosen), len(RANKS), f"ways of {label} on two ranks")
        for ranks in chosen:
            overrides = RANKS[ranks]
            with self.subTest(ranks):
                found = self.train(f"{label}-{ranks}".replace(" ", "_"), task, overrides, **sections)
                self.require_same_learning(f"{label}, {ranks}", found, expected)

    def write_characters(self):
        """Writes the corpus as a .bin of nanoGPT. Returns the vocabulary's size, the tokens and the task."""
        text = corpus()
        characters = sorted(set(text))
        number_of = {character: number for number, character in enumerate(characters)}
        tokens = numpy.array([number_of[character] for character in text], numpy.uint16)
        tokens.tofile(self.folder / "text.bin")
        task = {"name": "language_modeling",
                "data": {"source": {"name": "nanogpt", "files": ["text.bin"]}, "sequence_length": LENGTH,
                         "validation_fraction": 0}}
        return len(characters), torch.from_numpy(tokens.astype(numpy.int64)), task

    @staticmethod
    def batches(tokens):
        """As torch's DistributedSampler of one replica gives them: blocks in the order of a seeded randperm."""
        blocks = (len(tokens) - 1) // LENGTH
        for epoch in range(STEPS):
            order = torch.randperm(blocks, generator=torch.Generator().manual_seed(epoch)).tolist()
            for begin in range(0, blocks - BATCH_SIZE + 1, BATCH_SIZE):
                rows = torch.stack([tokens[i * LENGTH:(i + 1) * LENGTH + 1] for i in order[begin:begin + BATCH_SIZE]])
                yield rows[:, :-1], rows[:, 1:]

    def gpt2(self, vocabulary):
        return GPT2LMHeadModel(GPT2Config(
            vocab_size=vocabulary, n_positions=LENGTH, n_embd=128, n_layer=4, n_head=4, embd_pdrop=0, attn_pdrop=0,
            resid_pdrop=0, bos_token_id=None, eos_token_id=None))

    def test_gpt2_learns_characters_as_transformers_does(self):
        vocabulary, tokens, task = self.write_characters()
        model = self.gpt2(vocabulary)
        model.save_pretrained(self.folder / "lm")
        found = self.train("one", task)
        expected = peer_losses(model, groups(model, WEIGHT_DECAY), self.batches(tokens), causal_loss)
        self.require_same_learning("gpt2 beside transformers", found, expected)
        self.require_same_on_ranks("gpt2", task, found)

    def test_adapters_learn_as_pefts_do(self):
        vocabulary, tokens, task = self.write_characters()
        self.gpt2(vocabulary).save_pretrained(self.folder / "lm")
        # At this rate one step leaves what the adapters begin with.
        still = {"training": {"max_steps": 1, "batch_size": BATCH_SIZE, "seed": 0}, "checkpoint": {"load_from": "lm"}}
        self.train("still", task, ["optimizer.lr=1e-30", "optimizer.weight_decay=0"], lora=LORA, **still)
        initial = {}
        for path in (self.folder / "still/checkpoints/step-00000001").glob("model*.safetensors"):
            initial |= load_file(path)
        model = get_peft_model(GPT2LMHeadModel.from_pretrained(self.folder / "lm"),
                               LoraConfig(task_type="CAUSAL_LM", fan_in_fan_out=True, **LORA))
        adapters = {name.removeprefix("base_model.model.transformer.").replace(".default", ""): parameter
                    for name, parameter in model.named_parameters() if parameter.requires_grad}
        with torch.no_grad():
            for name, parameter in adapters.items():
                parameter.copy_(initial[name] if "lora_A" in name else torch.zeros_like(parameter))
        expected = peer_losses(model, [{"params": list(adapters.values()), "weight_decay": WEIGHT_DECAY}],
                               self.batches(tokens), causal_loss)
        found = self.train("one", task, lora=LORA)
        self.require_same_learning("LoRA beside peft", found, expected)
        self.require_same_on_ranks("LoRA", task, found, sample=("FULL_SHARD 2",), lora=LORA)

    def test_t5_learns_spans_as_transformers_does(self):
        self.write("text", corpus())
        data = {"tokenizer": "bytes", "end_of_text": 1, "input_length": LENGTH,
                "span_corruption": {"source": {"name": "bytes", "files": ["text"]}, "validation_fraction": 0}}
        # With ReLU a hidden number within rounding of 0 could have a gradient on one side only.
        model = T5ForConditionalGeneration(T5Config(
            vocab_size=384, d_model=64, d_kv=16, d_ff=128, num_layers=2, num_heads=4, dropout_rate=0,
            feed_forward_proj="gated-gelu", decoder_start_token_id=0))
        model.save_pretrained(self.folder / "lm")
        subprocess.run([WRITE_BATCHES, json.dumps({"data": data}), self.folder / "batches", str(BATCH_SIZE), str(STEPS)],
                       cwd=self.folder, check=True)
        batches = load_file(self.folder / "batches")
        expected = peer_losses(
            model, groups(model, WEIGHT_DECAY),
            ((batches[f"inputs.{step}"], batches[f"targets.{step}"]) for step in range(STEPS)),
            lambda model, batch: model(input_ids=batch[0], labels=batch[1]).loss)
        task = {"name": "sequence_to_sequence", "data": data}
        found = self.train("one", task)
        self.require_same_learning("T5 beside transformers", found, expected)
        self.require_same_on_ranks("T5", task, found, sample=("DDP 2",))


if __name__ == "__main__":
    runs.main()
