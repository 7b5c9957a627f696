# SPDX-License-Identifier: Apache-2.0
"""What a rank holds while it trains GPT-2 124M: our own account against theory, what is resident
against the account, and the peak against torch's fully_shard.

The account is the bytes of all tensors, at the moment when they are most (memory_probe.cc). Theory
is what docs/fsdp.md says, from the sizes of the model alone: `Theory`. Without --config=long some of
the strategies and worlds are left out. Ends with the table of docs/fsdp.md.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.long import is_long, tell_sample
from tests.ports import free_port

SIZES = {"vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12}
LENGTH = 64
STEPS = 4
MIB = 2**20

ONE_RANK = ("one rank", 1)
STRATEGIES = ["FULL_SHARD", "SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD", "_HYBRID_SHARD_ZERO2"]
ALL = [ONE_RANK] + [(strategy, world) for strategy in STRATEGIES for world in (2, 4)]
CASES = ALL if is_long() else [ONE_RANK, ("FULL_SHARD", 2), ("FULL_SHARD", 4)]
# fully_shard has no NO_SHARD, and no copies of one shard each.
ALL_PEERS = [case for case in ALL[1:] if case[0] != "NO_SHARD" and
             not ("HYBRID" in case[0] and case[1] == 2)]
PEERS = ALL_PEERS if is_long() else [("FULL_SHARD", 2)]

ACCOUNT_LIMIT = 0.02  # of theory
RESIDENT_LIMIT = 0.10  # of the account
PEER_LIMIT = 0.6  # of fully_shard


class Theory:
    """Bytes of one rank in fp32 after its first step, by the rules of docs/fsdp.md alone.

    On the way is what autograd hands over, and what other ranks send of a unit's gradients.
    """

    def __init__(self, strategy, world):
        width, tokens = SIZES["n_embd"], LENGTH
        self.layers = SIZES["n_layer"]
        # The model. Its head is the token embedding.
        self.embedding = 4 * SIZES["vocab_size"] * width
        self.positions = 4 * SIZES["n_positions"] * width
        self.root = self.embedding + self.positions + 4 * 2 * width
        self.largest_gradient = 4 * width * 4 * width
        self.block = 4 * (12 * width * width + 13 * width)
        self.model = self.root + self.layers * self.block
        # What a block's backward needs: the inputs and results of both norms with their means and
        # deviations, queries, keys and values, what attention made of them with its sums of
        # exponents, and the hidden layer before and after its GELU.
        of_norms = 4 * width + 4
        of_attention = 4 * width + SIZES["n_head"]
        self.saved_by_block = 4 * tokens * (of_norms + of_attention + 2 * 4 * width)
        self.saved_by_root = 4 * tokens * (2 * width + 2)
        self.logits = 4 * tokens * SIZES["vocab_size"]
        # The strategy.
        self.shards = {"one rank": 1, "NO_SHARD": 1}.get(strategy, world)
        if "HYBRID" in strategy:
            self.shards = world // 2
        self.gives_up = strategy in ("FULL_SHARD", "HYBRID_SHARD")
        self.is_wrapped = world > 1

    def moments(self):
        """What is held where most may be, by kind."""
        if not self.is_wrapped:
            return {"the embedding's gradient": self.on_one_rank()}
        return {"the head's gradient": self.at_head()} | {
            f"the largest gradient of block {block}": self.in_block(block)
            for block in reversed(range(self.layers))
        } | {"the embedding's gradient": self.at_embedding()}

    def peak(self):
        """The moment at which most is held, and what that is."""
        return max(self.moments().items(), key=lambda moment: sum(moment[1].values()))

    def always(self):
        """Parameters and Adam's moments, and of several ranks the root."""
        part = self.model // self.shards
        return {"parameters": part, "optimizer": 2 * part,
                "root": self.root if self.shards > 1 else 0}

    def gathered(self, blocks):
        """Where so many are still to come in the backward pass."""
        if self.shards == 1:
            return 0
        return (min(blocks, 2) if self.gives_up else blocks) * self.block

    def on_one_rank(self):
        """Autograd holds the gradients of both uses of the embedding, and their sum."""
        return self.always() | {"gradients": self.model - self.embedding,
                                "on the way": 3 * self.embedding}

    def at_head(self):
        """The head's gradient moves into the root's, which are not reduced before the end."""
        all_whole = self.shards > 1 and not self.gives_up
        return self.always() | {
            "gathered": self.gathered(self.layers) if all_whole else 0,
            "kept for the next unit": 0 if all_whole else 2 * self.block,
            "unreduced": self.root,
            "on the way": self.embedding,
            "saved": self.layers * self.saved_by_block + self.saved_by_root,
        }

    def in_block(self, block):
        """Its gradients move as they come, while those of the one before are on their way."""
        before = self.layers - 1 - block
        if self.shards == 1:
            gradients, in_exchange = before * self.block, 0
            unreduced = self.block
            kept = max(1 - before, 0) * self.block
        else:
            gradients = before * self.block // self.shards
            in_exchange = min(before, 1) * self.block
            unreduced = (1 + min(before, 1)) * self.block
            kept = 0 if self.gives_up or before < 2 else self.block
        return self.always() | {
            "gathered": self.gathered(block + 1),
            "kept for the next unit": kept,
            "gradients": gradients,
            "unreduced": self.root + unreduced,
            "on the way": in_exchange + self.largest_gradient,
            "saved": (block + 1) * self.saved_by_block,
        }

    def at_embedding(self):
        """The embedding's gradient is added to the root's, and the first block's are on their way."""
        if self.shards == 1:
            return self.always() | {"gradients": self.layers * self.block,
                                    "unreduced": self.root, "on the way": self.embedding}
        return self.always() | {
            "gradients": self.layers * self.block // self.shards,
            "unreduced": self.root + self.block,
            "kept for the next unit": 2 * self.block,
            "on the way": self.block + self.embedding,
        }

    def saved(self):
        return self.layers * self.saved_by_block + self.saved_by_root + self.logits


def run(command, strategy, world, output, python_path=None):
    """The figures of all ranks."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if python_path:
        environment["PYTHONPATH"] = f"{environment['PYTHONPATH']}:{python_path}"
    if world > 1:
        environment |= {
            "WORLD_SIZE": str(world),
            "LOCAL_WORLD_SIZE": str(world),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(free_port()),
            "GLOO_SOCKET_IFNAME": "lo",
        }
    arguments = [*command, strategy, json.dumps(SIZES), str(LENGTH), str(STEPS), output]
    processes = [
        subprocess.Popen(
            arguments,
            env=environment | ({"RANK": str(rank), "LOCAL_RANK": str(rank)} if world > 1 else {}),
        )
        for rank in range(world)
    ]
    assert [process.wait() for process in processes] == [0] * world
    return [json.loads(Path(f"{output}.{rank}").read_text()) for rank in range(world)]


def taken(figures):
    """What training made resident."""
    return figures["peak"] - figures["baseline"]


def by_kind(figures):
    """The account as `Theory` has it."""
    names = {"parameters, this rank's part": "parameters",
             "parameters, gathered: what is outside of units": "root",
             "parameters, gathered": "gathered",
             "gradients, this rank's part": "gradients",
             "gradients, not reduced": "unreduced"}
    kinds = {}
    for use, size in figures["uses"].items():
        name = names.get(use) or names.get(use.partition(":")[0], use)
        kinds[name] = kinds.get(name, 0) + size
    return kinds | {"on the way": figures["account"] - sum(kinds.values())}


def compared(kinds):
    """Kinds as they can be compared: what makes the peak has just been allocated, so a buffer for
    gradients is not known as one yet."""
    joined = dict(kinds)
    joined["on the way"] = joined.get("on the way", 0) + joined.pop("unreduced", 0)
    return joined


def show(kinds):
    total = sum(kinds.values()) / MIB
    parts = (f"{name} {kinds[name] / MIB:.1f}" for name in sorted(kinds) if kinds[name])
    return f"{total:.1f} MiB: {', '.join(parts)}"


def check_rank(figures, theory):
    moment, expected = theory.peak()
    account = by_kind(figures)
    print(f"  theory {show(expected)}, at {moment}\n  account {show(account)}")
    print(f"  saved after forward {figures['saved'] / MIB:.2f} MiB of {theory.saved() / MIB:.2f}; "
          f"resident {taken(figures) / MIB:.1f} beside {figures['baseline'] / MIB:.1f}", flush=True)
    total = sum(expected.values())
    assert abs(figures["account"] - total) <= ACCOUNT_LIMIT * total
    expected, account = compared(expected), compared(account)
    for kind in expected | account:
        off = abs(account.get(kind, 0) - expected.get(kind, 0))
        assert off <= max(ACCOUNT_LIMIT * expected.get(kind, 0), MIB), kind
    assert abs(figures["saved"] - theory.saved()) <= ACCOUNT_LIMIT * theory.saved()
    assert abs(taken(figures) - figures["account"]) <= RESIDENT_LIMIT * figures["account"]


def check(probe, peer, parity, strategy, world, folder):
    """A row of the table."""
    print(f"{strategy}, {world} ranks", flush=True)
    theory = Theory(strategy, world)
    name = "NO_SHARD" if world == 1 else strategy
    ranks = run([probe], name, world, f"{folder}/ours")
    for figures in ranks:
        check_rank(figures, theory)
    expected = sum(theory.peak()[1].values())
    account = max(figures["account"] for figures in ranks)
    ours = max(map(taken, ranks))
    row = [strategy, str(world), f"{expected / MIB:.0f}", f"{account / MIB:.0f}",
           f"{ours / MIB:.0f}", f"{ours / account:.3f}"]
    if (strategy, world) not in PEERS:
        return row + ["", ""]
    theirs = max(map(taken, run([sys.executable, peer], strategy, world, f"{folder}/theirs",
                                parity)))
    print(f"  fully_shard {theirs / MIB:.1f} MiB: {ours / theirs:.3f} of it", flush=True)
    assert ours / theirs <= PEER_LIMIT
    return row + [f"{theirs / MIB:.0f}", f"{ours / theirs:.2f}"]


def main():
    probe, peer, parity = sys.argv[1:]
    tell_sample(len(CASES), len(ALL), "strategies and worlds")
    tell_sample(len(PEERS), len(ALL_PEERS), "of them beside fully_shard")
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for strategy, world in CASES:
            folder = Path(name) / f"{strategy}-{world}"
            folder.mkdir()
            rows.append(check(probe, peer, Path(parity).parent.resolve(), strategy, world, folder))
    titles = ["strategy", "ranks", "theory", "account", "resident", "of the account",
              "fully_shard", "of fully_shard"]
    for row in [titles, ["---"] * len(titles), *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
