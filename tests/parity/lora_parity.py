# SPDX-License-Identifier: Apache-2.0
"""Trains adapters with the trainer and with peft: same model, adapters and batches.

Losses, gradient norms, AdamW's moments and the adapters after three steps are compared; then peft
opens what `checkpoint export --format=peft` writes, and transformers the merged model. A difference
is the largest one of a tensor, relative to its largest value. Every epoch is one batch of all
samples, so the order of samples changes nothing but rounding.
"""

import dataclasses
import json
import shutil

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file

from tests.end_to_end import runs
from tests.parity.families import FAMILIES, SAMPLES, Family, logits_of, loss_of
from tests.parity.transformers_peer import be_quiet_on_one_thread, computing_in, relative_difference

EXPORT_LIMIT = 1e-5  # of logits: peft holds adapters in float32
STEPS = 3
ADAMW = {"lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1}
LORA = {"r": 4, "lora_alpha": 16, "lora_dropout": 0.0}


@dataclasses.dataclass(frozen=True)
class Adapted:
    """What of a family is adapted, and how peft takes it."""

    family: Family
    target_modules: list
    task_type: str = "CAUSAL_LM"
    fan_in_fan_out: bool = False  # GPT-2's Conv1D
    dtype: torch.dtype = torch.float32
    limit: float = 1e-5


ADAPTED = {
    # AdamW divides small gradients by their own size: in float32 their rounding is 1.3e-5 of a weight on some processors.
    "gpt2": Adapted(FAMILIES["gpt2"], ["c_attn", "mlp.c_proj"], fan_in_fan_out=True, dtype=torch.float64, limit=1e-10),
    "llama": Adapted(FAMILIES["llama"], ["q_proj", "v_proj", "down_proj"]),
    # T5's queries begin so small that in float32 the gradients of their adapters are rounding for a part.
    "t5": Adapted(FAMILIES["t5"], ["q", "v", "wo"], "SEQ_2_SEQ_LM", dtype=torch.float64, limit=1e-10),
}


class LoraParityTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        be_quiet_on_one_thread()

    def use(self, adapted):
        """Writes its random model and its data."""
        self.adapted = adapted
        self.lora = LORA | {"target_modules": adapted.target_modules}
        adapted.family.random_model().save_pretrained(self.folder / "lm")
        self.task, self.batch = adapted.family.write_data(self)

    def train(self, exp_dir, optimizer, steps):
        self.write("lora.yaml", json.dumps({
            "name": "supervised",
            "exp_dir": exp_dir,
            "use_double_weight_precision": self.adapted.dtype == torch.float64,
            "task": self.task,
            "lora": self.lora,
            "optimizer": {"name": "adamw"} | optimizer,
            "lr_scheduler": {"name": "constant"},
            "training": {"max_steps": steps, "batch_size": SAMPLES, "clip_grad_norm": 1000.0},
            "checkpoint": {"load_from": "lm", "save_every_n_steps": 1},
            "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
        }))  # fmt: skip
        self.trainer("lora.yaml")
        return [row for row in self.rows(exp_dir) if row["phase"] == "train"]

    def tensors(self, exp_dir, step, part):
        tensors = {}
        for path in (self.folder / exp_dir / f"checkpoints/step-{step:08d}").glob(f"{part}*.safetensors"):
            tensors |= load_file(path)
        return tensors

    def peft_model(self, initial):
        config = LoraConfig(task_type=self.adapted.task_type, fan_in_fan_out=self.adapted.fan_in_fan_out, **self.lora)
        model = get_peft_model(self.theirs("lm"), config).to(self.adapted.dtype)
        with torch.no_grad():
            for name, parameter in self.adapters(model).items():
                parameter.copy_(initial[name] if "lora_A" in name else torch.zeros_like(parameter))
        return model.train()

    def theirs(self, folder):
        return type(self.adapted.family.make()).from_pretrained(self.folder / folder).to(self.adapted.dtype)

    def our_name(self, name):
        return name.removeprefix("base_model.model." + self.adapted.family.prefix).replace(".default", "")

    def adapters(self, model):
        """Trained parameters by our names."""
        return {self.our_name(name): parameter
                for name, parameter in model.named_parameters() if parameter.requires_grad}

    def peft_steps(self, model, rows):
        adapters = self.adapters(model)
        optimizer = torch.optim.AdamW(adapters.values(), **ADAMW)
        for row in rows:
            optimizer.zero_grad()
            loss = loss_of(model, self.batch)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(adapters.values(), 1000.0)
            optimizer.step()
            for field, value in (("loss", loss), ("grad_norm", norm)):
                self.require_close(f"step {row['step']}, {field}", torch.tensor(row[field], dtype=value.dtype), value.detach())
        return {f"{name}.exp_avg": optimizer.state[parameter]["exp_avg"]
                for name, parameter in adapters.items()}

    def require_close(self, what, found, expected, limit=None):
        worst = relative_difference(found, expected)
        self.assertLessEqual(worst, limit or self.adapted.limit, what)
        return worst

    def compare_all(self, label, found, expected):
        self.assertTrue(expected)
        worst = max(self.require_close(name, found[name], tensor.detach())
                    for name, tensor in expected.items())
        print(f"{label}: {len(expected)} tensors differ by {worst:.1e} at most, {self.adapted.limit:.0e} is "
              "rounding")

    def logits(self, model):
        with torch.no_grad():
            return logits_of(model.eval(), self.batch)

    def test_three_steps_and_exports_are_pefts(self):
        for name, adapted in ADAPTED.items():
            with self.subTest(name):
                self.use(adapted)
                with computing_in(adapted.dtype):
                    self.compare_steps_and_exports()
                for folder in ("lm", "still", "run", "adapters", "merged"):
                    shutil.rmtree(self.folder / folder)

    def compare_steps_and_exports(self):
        # At this rate one step leaves what the adapters begin with.
        self.train("still", {"lr": 1e-30, "weight_decay": 0}, 1)
        initial = self.tensors("still", 1, "model")
        rows = self.train("run", ADAMW, STEPS)
        model = self.peft_model(initial)
        moments = self.peft_steps(model, rows)
        self.assertNotEqual(rows[0]["loss"], rows[-1]["loss"])
        trained = self.tensors("run", STEPS, "model")
        self.assertEqual(trained.keys(), self.adapters(model).keys())
        self.compare_all("gradients' means", self.tensors("run", STEPS, "optimizer"), moments)
        self.compare_all("adapters", trained, self.adapters(model))

        expected = self.logits(model)
        self.trainer("checkpoint", "export", "run", "adapters", "--format=peft")
        opened = PeftModel.from_pretrained(self.theirs("lm"), self.folder / "adapters")
        for name, parameter in opened.named_parameters():
            if "lora_" in name:
                self.assertTrue(torch.equal(parameter, trained[self.our_name(name)].to(parameter.dtype)), name)
        self.trainer("checkpoint", "export", "run", "merged")
        for label, other in (("adapters in peft", opened), ("merged in transformers", self.theirs("merged"))):
            worst = self.require_close(label, self.logits(other), expected, EXPORT_LIMIT)
            print(f"{label}: logits differ by {worst:.1e}")


if __name__ == "__main__":
    runs.main()
