# SPDX-License-Identifier: Apache-2.0
"""One GPU from end to end: train, save meanwhile, go on, verify, evaluate, write."""

import functools
import json

from kit import config_of, gpt2, largest_difference, steps_of
from outcome import require
from runner import Item

SECONDS = 80
REPEATED = 1e-4  # of a loss, where the GPU's own kernels do not repeat their bits


def quickstart(kit, report):
    """Trains the quickstart with saves in the background, resumes, verifies and evaluates it."""
    run, (first, whole, every) = kit.work / "quickstart", kit.size((40, 80, 10), (4, 8, 2))
    common = [f"exp_dir={run}", f"parallel.device={kit.device}", f"task.data.path={kit.text}", "launcher.processes=1",
              "task.sample.tokens=20", "validation.max_batches=4", "logging.every_n_steps=1",
              "lr_scheduler.warmup_steps=2", f"lr_scheduler.decay_steps={whole}"]
    command = [kit.program("trainer"), str(kit.root / "configs/quickstart.yaml"), *common]
    kit.run([*command, f"training.max_steps={first}"])
    report.note(trained=first)
    kit.run([*command, f"training.max_steps={whole}", "checkpoint.async=true",
             f"checkpoint.save_every_n_steps={every}"])
    losses = [row["loss"] for row in steps_of(run)]
    report.note(resumed=len(losses), first_loss=losses[0], last_loss=losses[-1])
    require(len(losses) == whole, f"{len(losses)} steps are logged, not {whole}")
    require(losses[-1] < losses[0] - kit.size(0.5, 0.02), f"it does not learn: {losses[0]} to {losses[-1]}")
    kit.run([kit.program("trainer"), "checkpoint", "verify", str(run)])
    report.note(verified=True)
    kit.run([kit.program("trainer"), "evaluate", str(run)])
    report.note(evaluated=True)


def resume(deterministic, kit, report):
    """With dropout, so that the GPU's generator must go on where it was."""
    steps, folder = kit.size(60, 8), kit.work / f"resume-{deterministic}"
    config = config_of(kit, gpt2(256, 64, 2, 64, 4, dropout=0.1), steps, 4)
    config["training"]["deterministic"] = deterministic
    whole = kit.train(folder / "whole", config)
    again = kit.train(folder / "again", config)
    repeated = largest_difference(again, whole)
    kit.train(folder / "parts", config, f"training.max_steps={steps // 2}")
    resumed = largest_difference(kit.train(folder / "parts", config), whole)
    report.note(two_runs_differ_by=repeated, resumed_differs_by=resumed)
    require(repeated == 0 or not deterministic, f"two runs differ by {repeated:.1e}")
    if repeated == 0:
        require(resumed == 0, f"two runs are the same bits, a resumed one differs by {resumed:.1e}")
    require(resumed <= REPEATED, f"the resumed run differs by {resumed:.1e}, two runs by {repeated:.1e}")
    require(repeated <= REPEATED, f"two runs differ by {repeated:.1e}")


def generate(kit, report):
    """In float32 and in bfloat16: a cache of keys on the GPU, and a plan a length."""
    folder = kit.work / "generate"
    kit.train(folder, config_of(kit, gpt2(256, 64, 2, 64, 4), kit.size(20, 3), 4))
    prompts, texts = folder / "prompts.jsonl", folder / "texts.jsonl"
    prompts.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in ("The ", "A license", "This")))
    tokens = kit.size(40, 8)
    for precision in ("float32", "bfloat16"):
        texts.unlink(missing_ok=True)
        kit.run([kit.program("trainer"), "generate", str(folder / "run"), f"--input={prompts}", f"--output={texts}",
                 f"max_new_tokens={tokens}",
                 f"mixed_precision.enabled={'true' if precision == 'bfloat16' else 'false'}"])
        written = [json.loads(line)["generated_tokens"] for line in texts.read_text().splitlines()]
        report.note(**{precision: written})
        require(written == [tokens] * 3, f"{written} tokens in {precision}, not {tokens} each")


ITEMS = [
    Item("one-gpu.quickstart", "trains, saves meanwhile, goes on, verifies, evaluates", 45, quickstart),
    Item("one-gpu.resume", "a resumed run with dropout repeats a whole one", 40, functools.partial(resume, False)),
    Item("one-gpu.deterministic", "the same bits, with training.deterministic", 40, functools.partial(resume, True)),
    Item("one-gpu.generate", "writes texts", 30, generate),
]
