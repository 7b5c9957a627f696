# SPDX-License-Identifier: Apache-2.0
"""How fast `trainer generate` writes, beside transformers on the same weights: greedy, with a cache."""

import importlib.util
import json
import sys
import time
from pathlib import Path

import speed
from kit import write_config
from outcome import require
from runner import Item

SECONDS = 90
PEER = Path(__file__).absolute().parent / "generation_peer.py"
PROMPT_TOKENS, PROMPTS = 16, 16


def prompts():
    return [[1 + (7 * i + 3 * j) % 200 for j in range(PROMPT_TOKENS)] for i in range(PROMPTS)]


def lengths(kit):
    """What a short text takes is what a start takes: the rate is that of the tokens between the two."""
    return kit.size((64, 960), (2, 8))


def train_once(kit, folder):
    """A run with random weights, and an export of them."""
    case = speed.case_of(kit)
    config = speed.trainer_config(kit, case, "auto")
    config |= {"optimizer": {"name": "sgd", "lr": 1e-3}, "mixed_precision": {"enabled": False}}
    config["training"] |= {"max_steps": 1, "batch_size": 1}
    path = write_config(folder, config)
    kit.run([kit.program("trainer"), str(path), f"exp_dir={folder / 'run'}"])
    kit.run([kit.program("trainer"), "checkpoint", "export", str(folder / "run"), str(folder / "exported")])


def write(kit, folder, precision, batch, length):
    """Returns the new tokens of each prompt, and the seconds of the whole command.

    By the exported model: of a run on bytes only tokens that are bytes are written.
    """
    asked, written = folder / f"prompts-{batch}.jsonl", folder / "written.jsonl"
    asked.write_text("".join(json.dumps({"prompt_token_ids": tokens}) + "\n" for tokens in prompts()[:batch]))
    written.unlink(missing_ok=True)
    dtype = "as_loaded" if precision == "float32" else precision
    began = time.monotonic()
    kit.run([kit.program("trainer"), "generate", str(folder / "exported"), f"--input={asked}", f"--output={written}",
             f"parallel.device={kit.device}", f"max_new_tokens={length}", f"batch_size={batch}", "eos_token_id=[]",
             f"dtype={dtype}"])
    seconds = time.monotonic() - began
    tokens = [json.loads(line)["generated_token_ids"] for line in written.read_text().splitlines()]
    require([len(row) for row in tokens] == [length] * batch, f"not {length} tokens for each of {batch} prompts")
    return tokens, seconds


def rate(kit, batch, of_short, of_long):
    short, long = lengths(kit)
    # In a dry run both take as long as a start.
    return round(batch * (long - short) / max(of_long - of_short, 1e-3), 1)


def peer_rows(kit, folder):
    """By precision and batch."""
    output = kit.run([sys.executable, str(PEER), str(folder / "exported"), kit.device, json.dumps(prompts()),
                      *map(str, lengths(kit))], TRANSFORMERS_VERBOSITY="error", HF_HUB_OFFLINE=1)
    rows = [json.loads(line) for line in output.splitlines() if line.startswith('{"precision"')]
    return {(row["precision"], row["batch"]): row for row in rows}


def same_tokens(found, expected):
    """The share of tokens before the first that differs, over all texts."""
    same = 0
    for a, b in zip(found, expected, strict=True):
        same += next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))
    return same / sum(map(len, found))


def generate(kit, report):
    folder = kit.work / "speed-generate"
    train_once(kit, folder)
    short, long = lengths(kit)
    rates, tokens = {}, {}
    for precision in ("float32", "bfloat16"):
        for batch in (1, PROMPTS):
            _, of_short = write(kit, folder, precision, batch, short)
            tokens[precision, batch], of_long = write(kit, folder, precision, batch, long)
            rates[precision, batch] = rate(kit, batch, of_short, of_long)
            report.note(**{f"{precision}_{batch}": rates[precision, batch]})
    if not importlib.util.find_spec("transformers"):
        report.note(replaced="transformers")
        return
    peers = peer_rows(kit, folder)
    require(peers.keys() == rates.keys(), "transformers has not measured all")
    for (precision, batch), row in peers.items():
        theirs = rate(kit, batch, row["short"], row["long"])
        report.note(**{f"{precision}_{batch}_transformers": theirs,
                       f"{precision}_{batch}_ratio": round(rates[precision, batch] / theirs, 3)})
    same = [same_tokens(tokens["float32", batch], peers["float32", batch]["tokens"]) for batch in (1, PROMPTS)]
    report.note(same_tokens=round(min(same), 4))


ITEMS = [Item("speed.generate", "tokens a second that generate writes, beside transformers", 90, generate, alone=True)]
