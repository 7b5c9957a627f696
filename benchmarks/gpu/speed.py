# SPDX-License-Identifier: Apache-2.0
"""GPT-2 124M in bfloat16, batches of 16 by 1024 tokens, beside the same model in PyTorch, eager and compiled.

The sides take turns in processes of their own; the first steps, which compile and fill caches, do not count.
Losses are read in logged steps alone, as in a real run.
"""

import contextlib
import dataclasses
import functools
import json
import subprocess
import sys
import threading
import time

from kit import config_of, gpt2, steps_of, visible_gpus, write_config
from outcome import Ended, require
from runner import Item

SECONDS = 305
PEAK_TFLOPS = 989  # dense bfloat16 of an H100 or H200, by its data sheet
POLL_SECONDS = 0.05


@dataclasses.dataclass(frozen=True)
class Case:
    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    context: int = 1024
    batch_size: int = 16
    steps: int = 60
    log_every: int = 20

    @property
    def tokens(self):
        """Tokens of a step."""
        return self.batch_size * self.context

    @property
    def tflop(self):
        """TFLOP of a step's matrix products, forward and backward."""
        weights = self.layers * 12 * self.width**2 + self.vocabulary * self.width
        return self.tokens * (6 * weights + 12 * self.layers * self.width * self.context) / 1e12


# So small that the kernels are done before the host has launched the next ones.
SMALL = Case(layers=4, width=256, heads=4, vocabulary=1024, context=256, batch_size=8, steps=600, log_every=200)


def case_of(kit, name=""):
    return kit.size(SMALL if name.startswith("small") else Case(), Case(2, 32, 2, 300, 32, 2, 6, 2))


class GpuMemory(threading.Thread):
    """The most memory in use on the first GPU, in MiB, as nvidia-smi says it; by all processes."""

    def __init__(self, kit):
        super().__init__(daemon=True)
        self.peak = None
        self._process = None
        with contextlib.suppress(Ended):  # without nvidia-smi the speed alone
            self._watch(kit.tool("nvidia-smi"))

    def _watch(self, tool):
        if tool:
            first = (visible_gpus() or ["0"])[0]  # the one that is computed on
            self._process = subprocess.Popen(
                [tool, f"--id={first}", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "200"],
                stdout=subprocess.PIPE, text=True)
            self.start()

    def run(self):
        for line in self._process.stdout:
            if line.strip().isdigit():
                self.peak = max(self.peak or 0, int(line))

    def stop(self):
        if self._process:
            self._process.kill()
            self._process.wait()
        return self.peak


def follow(kit, command, folder, rows_so_far, steps):
    """Runs a command until it has logged its last step, and returns the records: saving does not count."""
    print("$", *command, flush=True)
    output = folder / "output"
    memory = GpuMemory(kit)
    with output.open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, env=kit.environment(), stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log)
    try:
        while process.poll() is None and not is_done(rows_so_far(), steps):
            time.sleep(POLL_SECONDS)
        rows = rows_so_far()
        if not is_done(rows, steps):
            kit.require_success(command, process.wait(), output.read_text(errors="replace"))
            require(is_done(rows, steps), f"it ended before step {steps}")
    finally:
        process.kill()
        process.wait()
        print(output.read_text(errors="replace"), flush=True)
        peak = memory.stop()
    return rows, peak


def is_done(rows, steps):
    return bool(rows) and rows[-1]["step"] >= steps


def figures_of(case, rows, ended, peak):
    """Between the first logged step that is no warm-up and the last."""
    first = next(row for row in rows if row["step"] == case.log_every)
    last = next(row for row in rows if row["step"] == case.steps)
    seconds = (last[ended] - first[ended]) / (case.steps - case.log_every)
    return {"tokens_per_second": round(case.tokens / seconds), "step_milliseconds": round(1000 * seconds, 2),
            "tflops": round(case.tflop / seconds, 3), "mfu": round(case.tflop / seconds / PEAK_TFLOPS, 4),
            "gpu_mib": peak, "last_loss": last["loss"]}


def trainer_config(kit, case, chunk):
    model = gpt2(case.vocabulary, case.context, case.layers, case.width, case.heads)
    config = config_of(kit, model, case.steps, case.batch_size)
    config["task"]["loss"] = {"chunk": chunk}
    config["mixed_precision"] = {"enabled": True, "dtype": "bfloat16"}
    config["logging"]["every_n_steps"] = case.log_every
    return config


def ours(name, chunk, kit, report):
    case, folder = case_of(kit, name), kit.work / f"speed-{name}"
    config = write_config(folder, trainer_config(kit, case, chunk))
    command = [kit.program("trainer"), str(config), f"exp_dir={folder / 'run'}"]
    rows, peak = follow(kit, command, folder, lambda: steps_of(folder / "run"), case.steps)
    report.note(**figures_of(case, rows, "time", peak))
    require(rows[-1]["loss"] < rows[0]["loss"], "it does not learn")


def peer_rows(log):
    if not log.exists():
        return []
    text = log.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def peer(name, compiler, kit, report):
    case, folder = case_of(kit, name), kit.work / f"speed-{name}"
    folder.mkdir()
    log = folder / "losses.jsonl"
    options = {"text": kit.text, "losses": log, "layers": case.layers, "heads": case.heads, "width": case.width,
               "vocabulary": case.vocabulary, "context": case.context, "batch-size": case.batch_size,
               "steps": case.steps, "lr": 1e-3, "beta2": 0.95, "eps": 1e-5, "weight-decay": 0.1, "seed": 3,
               "precision": "bf16", "device": kit.device, "log-every": case.log_every}
    if compiler:
        # The compiler of the CPU takes as long as the whole dry run may.
        options["compile"] = kit.size(compiler, "eager")
    command = [sys.executable, str(kit.root / "tests/parity/python_peer.py"),
               *(f"--{key}={value}" for key, value in options.items())]
    rows, peak = follow(kit, command, folder, lambda: peer_rows(log), case.steps)
    report.note(**figures_of(case, rows, "ended", peak))


def tf32(kit, report):
    """float32 as it is, and with products in TensorFloat32."""
    steps = kit.size({"steps": 30, "log_every": 10}, {"steps": 4, "log_every": 2})
    case = dataclasses.replace(case_of(kit), **steps)
    for precision in ("highest", "high"):
        folder = kit.work / f"speed-{precision}"
        config = trainer_config(kit, case, "auto")
        config["mixed_precision"] = {"enabled": False}
        config["training"]["float32_matmul_precision"] = precision
        command = [kit.program("trainer"), str(write_config(folder, config)), f"exp_dir={folder / 'run'}"]
        rows, peak = follow(kit, command, folder, lambda run=folder / "run": steps_of(run), case.steps)
        found = figures_of(case, rows, "time", peak)
        report.note(**{f"{precision}_{name}": found[name] for name in ("tokens_per_second", "step_milliseconds",
                                                                       "gpu_mib", "last_loss")})
        require(rows[-1]["loss"] < rows[0]["loss"], f"it does not learn with {precision}")


SIDES = [
    ("ours-1", "Phalanx", functools.partial(ours, "ours-1", "auto"), 40),
    ("eager-1", "PyTorch", functools.partial(peer, "eager-1", None), 40),
    ("compiled", "PyTorch under torch.compile", functools.partial(peer, "compiled", "inductor"), 90),
    ("ours-2", "Phalanx again", functools.partial(ours, "ours-2", "auto"), 40),
    ("eager-2", "PyTorch again", functools.partial(peer, "eager-2", None), 40),
    ("small-ours", "Phalanx, four small blocks", functools.partial(ours, "small-ours", "auto"), 30),
    ("small-eager", "PyTorch, four small blocks", functools.partial(peer, "small-eager", None), 40),
    ("chunk-0", "Phalanx, all logits at once", functools.partial(ours, "chunk-0", 0), 40),
    ("chunk-8192", "Phalanx, logits of 8192 tokens at once", functools.partial(ours, "chunk-8192", 8192), 40),
]
ITEMS = [Item(f"speed.{name}", f"tokens a second, MFU, memory: {meaning}", seconds, run, alone=True)
         for name, meaning, run, seconds in SIDES]
ITEMS.insert(2, Item("speed.fp32-tf32", "tokens a second in float32, and with TensorFloat32", 75, tf32, alone=True))
