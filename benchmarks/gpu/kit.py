# SPDX-License-Identifier: Apache-2.0
"""Where an item finds what it runs, and how it runs it."""

import contextlib
import dataclasses
import fcntl
import importlib.util
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from outcome import MISSING, PASS, Ended, classify, largest


def visible_gpus():
    """The entries of CUDA_VISIBLE_DEVICES, up to the first that is no GPU; None if it is not set."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is None:
        return None
    entries = (entry.strip() for entry in listed.split(","))
    return list(itertools.takewhile(lambda entry: entry and not entry.startswith(("-", "No")), entries))


def count_gpus(dev=Path("/dev")):
    """Those that this job may use, as the trainer counts them (trainer/host/gpus.cc)."""
    found = sum(bool(re.fullmatch(r"nvidia\d+", entry.name)) and os.access(entry, os.R_OK | os.W_OK)
                for entry in dev.iterdir())
    visible = visible_gpus()
    return found if visible is None else min(found, len(visible))


def shown(process, prefix=""):
    """What a process writes: printed as it comes, since an item that hangs is ended; and returned."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        print(prefix + line, end="" if line.endswith("\n") else "\n", flush=True)
    return "".join(lines)


def torch_folder():
    """The folder of the torch that this Python imports; None without one. It is not loaded."""
    found = importlib.util.find_spec("torch")
    return Path(found.submodule_search_locations[0]) if found else None


@dataclasses.dataclass(frozen=True)
class Kit:
    root: Path  # holds configs/, tests/ and benchmarks/
    folder: Path  # holds bin/ and text
    work: Path  # of this run, for everything that need not come back
    out: Path  # what comes back
    is_dry: bool = False  # the CPU stands for the GPU, in small sizes

    @property
    def device(self):
        return "cpu" if self.is_dry else "cuda"

    @property
    def gpus(self):
        return 0 if self.is_dry else count_gpus()

    @property
    def text(self):
        return self.folder / "text"

    def size(self, real, dry):
        return dry if self.is_dry else real

    def program(self, name):
        path = self.folder / "bin" / name
        if not path.exists():
            raise Ended(MISSING, f"{path} is not there: benchmarks/gpu_checklist.sh pack makes it")
        return str(path)

    def tool(self, name):
        """A program of NVIDIA's, by PATH or CUDA_HOME; none in a dry run."""
        if self.is_dry:
            return None
        path = os.environ.get("PATH", os.defpath)
        found = shutil.which(name, path=f"{path}:{os.environ.get('CUDA_HOME', '')}/bin")
        if found is None:
            raise Ended(MISSING, f"{name} is neither in PATH nor in CUDA_HOME/bin")
        return found

    def under(self, name, *options):
        """What comes before a command that a tool runs; nothing in a dry run."""
        tool = self.tool(name)
        return [tool, *options] if tool else []

    def environment(self, **more):
        torch = torch_folder()
        if torch is None:
            raise Ended(MISSING, f"{sys.executable} has no torch")
        variables = dict(os.environ, OMP_NUM_THREADS="1", PHALANX_GEMM="default", PYTHONUNBUFFERED="1",
                         PYTHONFAULTHANDLER="1", XDG_CACHE_HOME=str(self.work / "cache"))
        variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [str(torch / "lib"), os.environ.get("LD_LIBRARY_PATH")]))
        variables["PYTHONPATH"] = ":".join(
            filter(None, [str(self.root), str(self.root / "tests/parity"), os.environ.get("PYTHONPATH")]))
        if self.is_dry:
            variables["CUDA_VISIBLE_DEVICES"] = ""
        return variables | {name: str(value) for name, value in more.items()}

    def run(self, command, folder=None, **variables):
        """Runs a command, prints its output, and returns it; ends the item where it fails."""
        print("$", *command, flush=True)
        process = self.start(command, folder or self.work, self.environment(**variables))
        output = shown(process)
        self.require_success(command, process.wait(), output)
        return output

    @staticmethod
    def start(command, folder, environment):
        """Starts a command; `shown` has what it writes."""
        try:
            return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        except FileNotFoundError as error:
            raise Ended(MISSING, str(error)) from error

    @staticmethod
    def require_success(command, returncode, output):
        result = classify(returncode, output)
        if result != PASS:
            last = output.strip().splitlines()[-1:] or [""]
            raise Ended(result, f"{Path(command[0]).name} ended with {returncode}: {last[0][:300]}")

    def train(self, folder, config, *overrides, prefix=(), **variables):
        """Trains by a config (a dict), and returns the records of its steps."""
        path = write_config(folder, config)
        self.run([*prefix, self.program("trainer"), str(path), f"exp_dir={folder / 'run'}", *overrides], **variables)
        return steps_of(folder / "run")


def write_json(path, value):
    """Others see the whole file or none."""
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.rename(path)


@contextlib.contextmanager
def locked(path):
    """Items that run at once pass here one by one. The lock of an item that is ended goes with its process."""
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def kept(path, compute):
    """A value that is computed once for all items of the run; those that want it meanwhile wait."""
    with locked(path):
        if not path.exists():
            write_json(path, compute())
        return json.loads(path.read_text())


def fresh(folder):
    """A folder without what an item has left there that was ended."""
    shutil.rmtree(folder, ignore_errors=True)
    return folder


def write_config(folder, config):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.yaml"
    path.write_text(json.dumps(config, indent=1))  # JSON is YAML
    return path


def steps_of(run_folder):
    """The records of the training steps that a run has logged so far."""
    log = run_folder / "logs/metrics.jsonl"
    if not log.exists():
        return []
    text = log.read_text()
    rows = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [row for row in rows if row["phase"] == "train"]


def gpt2(vocabulary, context, layers, width, heads, dropout=0):
    return {"name": "gpt2", "vocab_size": vocabulary, "n_positions": context, "n_layer": layers, "n_embd": width,
            "n_head": heads, "embd_pdrop": dropout, "attn_pdrop": dropout, "resid_pdrop": dropout}


def config_of(kit, model, steps, batch_size):
    """A run that only trains and logs each step."""
    return {
        "name": "supervised",
        "task": {
            "name": "language_modeling",
            "data": {"path": str(kit.text), "validation_fraction": 0, "sequence_length": model["n_positions"]},
            "sample": {"tokens": 0},
        },
        "model": model,
        "optimizer": {"name": "adamw", "lr": 1e-3, "betas": [0.9, 0.95], "eps": 1e-5, "weight_decay": 0.1},
        "lr_scheduler": {"name": "constant"},
        "training": {"max_steps": steps, "batch_size": batch_size, "seed": 3},
        "checkpoint": {"save_every_n_steps": None},
        "logging": {"every_n_steps": 1, "sinks": ["jsonl"]},
        "parallel": {"device": kit.device, "timeout": "20s", "join_timeout": "30s"},
    }


def largest_difference(found, expected):
    """The largest relative difference of two runs' losses."""
    pairs = list(zip((row["loss"] for row in found), (row["loss"] for row in expected), strict=True))
    return largest(abs(a - b) / abs(b) for a, b in pairs)
