# SPDX-License-Identifier: Apache-2.0
"""Models go to transformers and come from there: from_pretrained opens what `checkpoint export`
writes, and `checkpoint import` takes what save_pretrained writes, with the same logits.

A difference is the largest one of the logits, relative to the largest logit.
"""

import json
import shutil
import struct
import subprocess
import sys
import unittest
import warnings
from pathlib import Path

PROBE = str(Path(sys.argv.pop()).resolve())

import safetensors
import torch
from safetensors.torch import load_file, save_file, save_model
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    AutoConfig, AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast
)
from transformers.utils import logging

from tests.end_to_end import runs

LIMIT = 1e-5
HEADS = 2
STEPS = ["training.max_steps=5", "lr_scheduler.decay_steps=40"]
THEIRS = GPT2Config(
    vocab_size=256, n_positions=16, n_embd=24, n_layer=3, n_head=HEADS, n_inner=40,
    embd_pdrop=0, attn_pdrop=0, resid_pdrop=0, bos_token_id=None, eos_token_id=None,
)  # fmt: skip


def header_of(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(length))


class HuggingFaceTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        torch.set_num_threads(1)
        torch.manual_seed(1)
        self.tokens = torch.randint(256, (3, 16))

    def checkpoint(self, *arguments, **options):
        return self.trainer("checkpoint", *arguments, **options).stdout

    def our_logits(self, checkpoint):
        """Logits of the model in a checkpoint, computed by the C++ model in single precision."""
        weights = {}
        for path in sorted((self.folder / checkpoint).glob("model*.safetensors")):
            weights |= load_file(path)
        weights = {name: tensor.float() for name, tensor in weights.items()}
        given, found = self.folder / "given", self.folder / "found"
        found.unlink(missing_ok=True)
        save_file(weights | {"tokens": self.tokens}, given)
        subprocess.run([PROBE, given, found, str(HEADS)], check=True, timeout=runs.TIMEOUT_SECONDS)
        return load_file(found)["logits"]

    def their_logits(self, model):
        with torch.no_grad():
            return model.eval()(self.tokens).logits

    def opened(self, folder, kind=GPT2LMHeadModel, **options):
        """What from_pretrained makes of a folder: it misses nothing there, and finds nothing odd."""
        model, told = kind.from_pretrained(self.folder / folder, output_loading_info=True, **options)
        self.assertEqual(set(told["missing_keys"]), set(), told)
        self.assertEqual(set(told["unexpected_keys"]), set(), told)
        self.assertEqual(set(told["mismatched_keys"]), set(), told)
        return model

    def compare(self, label, found, expected, limit=LIMIT):
        self.assertEqual(found.shape, expected.shape)
        difference = ((found.float() - expected.float()).abs().max() / expected.abs().max()).item()
        print(f"{label}: logits differ by {difference:.1e}, at most {limit:.0e} is rounding")
        self.assertLessEqual(difference, limit)

    def require_readable(self, folder):
        """safetensors' own reader, which checks all rules of the format, takes every file."""
        files = sorted((self.folder / folder).glob("*.safetensors"))
        self.assertTrue(files)
        for path in files:
            with safetensors.safe_open(path, framework="pt") as file:
                self.assertEqual(file.metadata(), {"format": "pt"})
                for name in file.keys():
                    self.assertTrue(file.get_tensor(name).isfinite().all(), name)

    def trained(self):
        self.trainer("tiny.yaml", "exp_dir=run", *STEPS)
        return "run/checkpoints/step-00000005"

    def made_by_them(self, folder, **options):
        """A folder of save_pretrained's, and its model; no bias is 0 and no weight of a norm 1."""
        torch.manual_seed(2)
        model = GPT2LMHeadModel(THEIRS)
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn_like(parameter))
        model.save_pretrained(self.folder / folder, **options)
        return model

    def test_they_open_an_export(self):
        checkpoint = self.trained()
        self.checkpoint("export", "run", "hf")
        self.require_readable("hf")
        ours = self.our_logits(checkpoint)
        for kind in (GPT2LMHeadModel, AutoModelForCausalLM):
            model = self.opened("hf", kind)
            self.assertEqual(model.dtype, torch.float32)
            self.compare(f"export, {kind.__name__}", self.their_logits(model), ours)
        # They can go on from there: 16 positions, of which the prompt takes 4.
        written = model.generate(self.tokens[:, :4], max_new_tokens=12, do_sample=False,
                                 pad_token_id=0)
        self.assertEqual(written.shape, (3, 16))

    def test_a_tokenizer_goes_with_its_model(self):
        bpe = Tokenizer(models.BPE())
        bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        bpe.decoder = decoders.ByteLevel()
        bpe.train_from_iterator([runs.TEXT], trainers.BpeTrainer(
            vocab_size=300, special_tokens=["<|endoftext|>"], show_progress=False,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        theirs = GPT2TokenizerFast(tokenizer_object=bpe)
        theirs.save_pretrained(self.folder / "tok")
        saved = {path.name: path.read_bytes() for path in (self.folder / "tok").iterdir()}
        print(f"save_pretrained wrote {sorted(saved)}")

        self.trainer("tiny.yaml", "exp_dir=run", "model.vocab_size=300", "training.max_steps=1")
        self.checkpoint("export", "run", "hf")
        theirs.save_pretrained(self.folder / "hf")
        imported = self.trainer("checkpoint", "import", "hf", "back")
        self.assertEqual(imported.stderr, "")
        self.checkpoint("export", "back", "again")
        for name, content in saved.items():
            self.assertEqual((self.folder / "again" / name).read_bytes(), content, name)

        tokens = AutoTokenizer.from_pretrained(self.folder / "again")(runs.TEXT)["input_ids"]
        self.assertEqual(tokens, bpe.encode(runs.TEXT).ids)
        self.trainer("tokenize", "text.txt", "--tokenizer=back/attachments", "--format=nanogpt", "--output=ours")
        ours = (self.folder / "ours/train_000000.bin").read_bytes()
        self.assertEqual(list(struct.unpack(f"<{len(ours) // 2}H", ours))[:-1], tokens)

    def test_they_open_an_export_in_low_precision(self):
        checkpoint = self.trained()
        ours = self.our_logits(checkpoint)
        for dtype, expected in (("bf16", torch.bfloat16), ("fp16", torch.float16)):
            self.checkpoint("export", "run", dtype, f"--dtype={dtype}")
            self.require_readable(dtype)
            model = self.opened(dtype, dtype="auto")
            self.assertEqual(model.dtype, expected)
            exact = load_file(self.folder / checkpoint / "model.safetensors")
            for name, tensor in load_file(self.folder / dtype / "model.safetensors").items():
                self.assertTrue(
                    torch.equal(tensor, exact[name.removeprefix("transformer.")].to(expected)), name)
            self.compare(dtype, self.their_logits(model.float()), ours,
                         16 * torch.finfo(expected).eps)

    def test_they_open_a_checkpoint_itself(self):
        checkpoint = self.trained()
        self.checkpoint("export", "run", "hf")
        # A config.json beside its files leaves it a whole checkpoint.
        shutil.copy(self.folder / "hf/config.json", self.folder / checkpoint)
        self.compare("checkpoint with a config beside it",
                     self.their_logits(self.opened(checkpoint, AutoModelForCausalLM)),
                     self.our_logits(checkpoint))
        self.assertIn("whole", self.checkpoint("verify", checkpoint))
        self.require_readable(checkpoint)

    def test_we_take_what_they_save(self):
        model = self.made_by_them("lm")
        expected = {name.removeprefix("transformer."): tensor.detach()
                    for name, tensor in model.named_parameters()}
        model.transformer.save_pretrained(self.folder / "bare")
        self.made_by_them("sharded", max_shard_size="40KB")
        self.assertTrue((self.folder / "sharded/model.safetensors.index.json").exists())
        # Both names of the tied tensor, and one of them that is not the usual one.
        shutil.copytree(self.folder / "lm", self.folder / "both")
        whole = load_file(self.folder / "lm/model.safetensors")
        save_file(whole | {"lm_head.weight": whole["transformer.wte.weight"].clone()},
                  self.folder / "both/model.safetensors", {"format": "pt"})
        shutil.copytree(self.folder / "lm", self.folder / "head")
        save_model(model, str(self.folder / "head/model.safetensors"))
        self.assertNotIn("transformer.wte.weight", header_of(self.folder / "head/model.safetensors"))
        logits = self.their_logits(model)
        for folder in ("lm", "bare", "sharded", "both", "head"):
            with self.subTest(folder):
                self.checkpoint("import", folder, f"from_{folder}")
                self.require_readable(f"from_{folder}")
                self.assertIn("whole", self.checkpoint("verify", f"from_{folder}"))
                found = load_file(self.folder / f"from_{folder}/model.safetensors")
                self.assertEqual(found.keys(), expected.keys())
                for name, tensor in expected.items():
                    self.assertTrue(torch.equal(found[name], tensor), name)
                self.compare(folder, self.our_logits(f"from_{folder}"), logits)

    def test_a_run_begins_with_what_they_made(self):
        model = self.made_by_them("lm")
        self.write("theirs.yaml", self.checkpoint("import", "lm", "ours"))
        # At this rate one step leaves every bit as it is, except by weight decay, which is 0.
        self.trainer("tiny.yaml", "theirs.yaml", "exp_dir=warm", "optimizer.lr=1e-30",
                     "optimizer.weight_decay=0", "training.max_steps=1", "lr_scheduler=constant")
        self.checkpoint("export", "warm", "back")
        for name, tensor in load_file(self.folder / "back/model.safetensors").items():
            self.assertTrue(torch.equal(tensor, model.get_parameter(name)), name)
        self.compare("after a run", self.their_logits(self.opened("back")), self.their_logits(model))
        # Without an import load_from takes the folder, too.
        self.trainer("tiny.yaml", "theirs.yaml", "exp_dir=direct", "checkpoint.load_from=lm",
                     "checkpoint.load_prefixes={transformer.: ''}", "optimizer.lr=1e-30",
                     "optimizer.weight_decay=0", "training.max_steps=1", "lr_scheduler=constant")
        self.assertIn("tensors differ",
                      told := self.checkpoint("diff", "warm", "direct"))
        self.assertNotIn("model ", told.split("\n\n")[-1])

    def test_their_config_comes_back(self):
        self.made_by_them("lm")
        self.checkpoint("import", "lm", "ours")
        self.checkpoint("export", "ours", "back")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            back = AutoConfig.from_pretrained(self.folder / "back").to_dict()
        theirs = AutoConfig.from_pretrained(self.folder / "lm").to_dict()
        for config in (back, theirs):
            del config["_name_or_path"]
        self.assertEqual(back, theirs)


if __name__ == "__main__":
    runs.main()
