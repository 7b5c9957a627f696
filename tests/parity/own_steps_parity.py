# SPDX-License-Identifier: Apache-2.0
"""The four tasks of docs/add_a_step.md beside plain Python loops, on ranks, and over a resume.

The trainer is the one that the page builds. A Python loop goes on from the weights that a run has
after its first step, in fp64, with the trainer in fp64 and in fp32; SGD without momentum has no
state to take over. Rows come in order. A run that is killed goes on on another number of ranks, or
on as many bit for bit: by default in one way a task, with --config=long in all.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

import torch
from torch.nn import functional

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.trainer.checkpoint.read_checkpoint import read_checkpoint
from tests.user_workspace.extract_files import extract

DOCUMENT = Path(sys.argv[2]).resolve()
STEPS, COUNT, BATCH, RATE = 12, 64, 16, 0.05
# The largest differences from a loop in fp64, of fp64 and of fp32, and between numbers of ranks.
PYTHON, SINGLE, RANKS = 1e-10, 1e-6, 1e-9
COMMON = ("use_double_weight_precision=true", "task.loader.shuffle=false", f"task.count={COUNT}",
          "lr_scheduler={name: constant}", "logging.every_n_steps=1",
          "checkpoint={save_every_n_steps: 1, keep_last: null}")
TWO = (f"training.batch_size={BATCH // 2}", "launcher.processes=2")
WORLDS = {"DDP": TWO, "FULL_SHARD": (*TWO, "parallel.use_fsdp=true",
                                     "parallel.sharding_strategy=FULL_SHARD")}
# On how many ranks a run is killed and goes on, and how these hold the model.
CHANGES = ((2, "FULL_SHARD", 1, "FULL_SHARD"), (2, "FULL_SHARD", 4, "FULL_SHARD"), (2, "DDP", 1, "DDP"),
           (1, "DDP", 2, "FULL_SHARD"), (2, "DDP", 4, "DDP"), (4, "FULL_SHARD", 2, "DDP"), (1, "DDP", 1, "DDP"),
           (2, "DDP", 2, "DDP"), (2, "FULL_SHARD", 2, "FULL_SHARD"))


def on_ranks(count, kind):
    """Fields that have so many ranks take the same batches."""
    return (f"training.batch_size={BATCH // count}", f"launcher.processes={count}",
            f"parallel.use_fsdp={'true' if kind == 'FULL_SHARD' else 'false'}")


def wave(numbers, width, phase):
    shifts = torch.arange(width, dtype=torch.double) * 1.3 + phase
    return torch.sin(numbers.unsqueeze(1) * 0.7 + shifts).float().double()


def rows_of(step):
    numbers = torch.arange((step - 1) * BATCH, step * BATCH, dtype=torch.double) % COUNT
    return wave(numbers, 4, 0), wave(numbers, 4, 0.3), wave(numbers, 2, 1)


def perceptron(weights, name, rows):
    hidden = torch.tanh(functional.linear(rows, weights[f"{name}.in.weight"], weights[f"{name}.in.bias"]))
    return functional.linear(hidden, weights[f"{name}.out.weight"], weights[f"{name}.out.bias"])


def move(loss, weights, prefixes):
    """A step of gradient descent of the weights whose names begin so."""
    names = [name for name in weights if name.startswith(prefixes)]
    gradients = torch.autograd.grad(loss, [weights[name] for name in names])
    with torch.no_grad():
        for name, gradient in zip(names, gradients):
            weights[name] -= RATE * gradient


def own_head(weights, inputs, _others, targets):
    features = torch.tanh(perceptron(weights, "net", inputs))
    found = functional.linear(features, weights["task.head.weight"], weights["task.head.bias"])
    loss = (found - targets).square().mean()
    move(loss, weights, ("net.", "task.head."))
    return {"loss": loss.item()}


def distillation(weights, inputs, _others, _targets):
    with torch.no_grad():
        wanted = (perceptron(weights, "task.teacher.net", inputs) / 2).softmax(1)
    loss = -(wanted * (perceptron(weights, "net", inputs) / 2).log_softmax(1)).sum(1).mean()
    move(loss, weights, ("net.",))
    return {"loss": loss.item()}


def contrastive(weights, inputs, others, _targets):
    own, all_others = (functional.normalize(perceptron(weights, "net", rows)) for rows in (inputs, others))
    logits = own @ all_others.t() * weights["task.temperature.log_scale"].exp()
    loss = functional.cross_entropy(logits, torch.arange(len(inputs)))
    move(loss, weights, ("net.", "task.temperature."))
    return {"loss": loss.item()}


def gan(weights, inputs, _others, targets):
    with torch.no_grad():
        generated = perceptron(weights, "net", inputs)
    true, false = (perceptron(weights, "task.critic", rows) for rows in (targets, generated))
    critic = functional.softplus(-true).mean() + functional.softplus(false).mean()
    move(critic, weights, ("task.critic.",))
    fooled = perceptron(weights, "task.critic", perceptron(weights, "net", inputs))
    generator = functional.softplus(-fooled).mean()
    move(generator, weights, ("net.",))
    return {"critic": critic.item(), "generator": generator.item()}


# The Python loop, and the weights that stay as they are.
TASKS = {"own_head": (own_head, ()), "distillation": (distillation, ("task.teacher.",)),
         "contrastive": (contrastive, ()), "gan": (gan, ())}


def by_sgd(config):
    """The page's config with another optimizer."""
    changed, count = re.subn(r"name: adam, lr: [\d.]+(, betas: \[[^]]*\])?", f"name: sgd, lr: {RATE}", config)
    assert count > 0, config
    return changed


class OwnStepsParity(runs.RunTest):

    def setUp(self):
        super().setUp()
        for path, text in extract(DOCUMENT.read_text()).items():
            if path.endswith(".yaml"):
                self.write(path, by_sgd(text))
        os.environ["OMP_NUM_THREADS"] = "1"

    @staticmethod
    def arguments(task, run, *fields):
        more = ("task.teacher=null",) if task == "distillation" else ()
        return (f"{task}.yaml", f"exp_dir=runs/{run}", *COMMON, *more, *fields)

    def train(self, task, run, *fields):
        self.trainer(*self.arguments(task, run, *fields))

    def weights(self, run, step):
        folder = self.folder / f"runs/{run}/checkpoints/step-{step:08d}"
        return {name: value.double() for name, value in read_checkpoint(folder)[1]["model"].items()}

    def logged(self, run, names):
        rows = [row for row in self.rows(f"runs/{run}") if row["phase"] == "train"]
        return {row["step"]: {name: row[name] for name in names} for row in rows}

    def assert_close(self, found, expected, limit, what):
        self.assertEqual(found.keys(), expected.keys())
        most = max(abs(torch.as_tensor(found[name]) - torch.as_tensor(expected[name])).max().item() for name in found)
        print(f"{what}: {most:.1e}", flush=True)
        self.assertLessEqual(most, limit, what)

    def compare_with_python(self, task, run, limit):
        """Of a run on one rank; returns its losses and its last weights."""
        loop, frozen = TASKS[task]
        weights = self.weights(run, 1)
        begun = {name: value.clone() for name, value in weights.items()}
        for name, value in weights.items():
            value.requires_grad_(not name.startswith(frozen) if frozen else True)
        losses = {step: loop(weights, *rows_of(step)) for step in range(2, STEPS + 1)}
        logged = self.logged(run, losses[2].keys())
        last = self.weights(run, STEPS)
        for step, values in losses.items():
            self.assert_close(logged[step], values, limit, f"{task}, {run}, step {step}")
        self.assert_close(last, {name: value.detach() for name, value in weights.items()}, limit,
                          f"{task}, {run}, weights")
        for name, value in begun.items():
            is_frozen = bool(frozen) and name.startswith(frozen)
            self.assertEqual(value.equal(last[name]), is_frozen, f"{name} moves")
        return logged, last

    def check(self, task):
        whole = f"training.max_steps={STEPS}"
        self.train(task, "single", whole, "use_double_weight_precision=false")
        self.compare_with_python(task, "single", SINGLE)
        self.train(task, "whole", whole)
        logged, last = self.compare_with_python(task, "whole", PYTHON)
        names = logged[1].keys()
        for label, fields in WORLDS.items():
            self.train(task, label, whole, *fields)
            self.assert_close(self.weights(label, STEPS), last, RANKS, f"{task}, weights in {label}")
            of_ranks = self.logged(label, names)
            for step, values in logged.items():
                self.assert_close(of_ranks[step], values, RANKS, f"{task} in {label}, step {step}")
            resumed = f"resumed_{label}"
            self.train(task, resumed, f"training.max_steps={STEPS // 2}", *fields)
            self.train(task, resumed, whole, *fields)
            found, expected = self.weights(resumed, STEPS), self.weights(label, STEPS)
            self.assertTrue(all(found[name].equal(expected[name]) for name in expected), resumed)
            self.assertEqual(self.logged(resumed, names), of_ranks)

    def kill(self, task, run, *fields):
        """Kills a run's first rank some steps after half of STEPS. Returns the step that the run goes on from."""
        endless = ("training.max_steps=1000000", "checkpoint.keep_last=2")
        process = self.start(*self.arguments(task, run, *endless, *fields))
        for line in process.stdout:
            if f"step {STEPS // 2}/" in line:
                break
        victim = (runs.children(process.pid) or [process.pid])[0]
        os.kill(victim, signal.SIGKILL)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertNotEqual(process.returncode, 0, errors)
        self.assertTrue(process.returncode == -signal.SIGKILL or "killed by signal 9" in errors, errors)
        committed = (self.folder / f"runs/{run}/checkpoints/latest").read_text().strip()
        return int(committed.removeprefix("step-"))

    def check_killed(self, task, before, before_kind, after, after_kind):
        """A killed run that goes on has the losses and weights of one that is not interrupted."""
        label = f"{task}, {before_kind} on {before} to {after_kind} on {after}"
        limit = 0 if (before, before_kind) == (after, after_kind) else RANKS
        killed, whole = f"killed_{before}_{after}_{after_kind}", f"whole_{before}_{after}_{after_kind}"
        committed = self.kill(task, killed, *on_ranks(before, before_kind))
        self.assertGreaterEqual(committed, 1)
        last = f"training.max_steps={committed + STEPS}"
        self.train(task, killed, last, "checkpoint.keep_last=2", *on_ranks(after, after_kind))
        self.train(task, whole, last, "checkpoint.keep_last=2", *on_ranks(before, before_kind))
        for run, count in ((killed, after), (whole, before)):
            manifest = self.folder / f"runs/{run}/checkpoints/step-{committed + STEPS:08d}/manifest.json"
            self.assertEqual(json.loads(manifest.read_text())["world_size"], count)
        names = ("critic", "generator") if task == "gan" else ("loss",)
        found, expected = self.logged(killed, names), self.logged(whole, names)
        self.assertEqual(found.keys(), expected.keys())
        self.assertEqual({step: found[step] for step in range(1, committed + 1)},
                         {step: expected[step] for step in range(1, committed + 1)}, f"{label}: before the kill")
        for step in range(committed + 1, committed + STEPS + 1):
            self.assert_close(found[step], expected[step], limit, f"{label}, step {step}")
        weights = [self.weights(run, committed + STEPS) for run in (killed, whole)]
        self.assert_close(*weights, limit, f"{label}, weights")

    def check_other_numbers(self, task):
        """By default each task has another one of the first of CHANGES."""
        first = list(TASKS).index(task)
        chosen = CHANGES if is_long() else CHANGES[first:first + 1]
        tell_sample(len(chosen), len(CHANGES), f"ways in which {task} goes on")
        for change in chosen:
            with self.subTest(change):
                self.check_killed(task, *change)

    def test_a_head(self):
        self.check("own_head")

    def test_a_distillation(self):
        self.check("distillation")

    def test_a_contrastive_loss_of_all_ranks(self):
        self.check("contrastive")

    def test_a_gan(self):
        self.check("gan")

    def test_a_killed_head_goes_on_on_other_ranks(self):
        self.check_other_numbers("own_head")

    def test_a_killed_distillation_goes_on_on_other_ranks(self):
        self.check_other_numbers("distillation")

    def test_a_killed_contrastive_loss_goes_on_on_other_ranks(self):
        self.check_other_numbers("contrastive")

    def test_a_killed_gan_goes_on_on_other_ranks(self):
        self.check_other_numbers("gan")


if __name__ == "__main__":
    runs.main()
