# SPDX-License-Identifier: Apache-2.0
"""Averages of the real trainer beside torch.optim.swa_utils.AveragedModel, over the same weights.

Every step of a run is saved; AveragedModel is given the saved weights, one step after the other, and its average
is compared with that of each checkpoint. On one rank and in DDP both must be the same bits; shards, where vectors of
a kernel end elsewhere, may differ by LIMIT. Runs go on bit for bit, and on other ranks within LIMIT.
"""

import sys

import torch
from safetensors.torch import load_file
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tests.end_to_end import runs

LIMIT = 1e-7  # of values below 1
NO_DROPOUT = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0"]
SAVE_ALL = ["checkpoint.save_every_n_steps=1", "checkpoint.keep_last=null", "lr_scheduler.decay_steps=40",
            "optimizer.lr=0.05", "validation.every_n_steps=null", *NO_DROPOUT]
RANKS = {
    "one rank": [],
    "DDP 2": ["launcher.processes=2", "training.batch_size=2"],
    "FULL_SHARD 2": ["launcher.processes=2", "training.batch_size=2", "parallel.use_fsdp=true",
                     "parallel.sharding_strategy=FULL_SHARD"],
    "FULL_SHARD 4": ["launcher.processes=4", "training.batch_size=1", "parallel.use_fsdp=true",
                     "parallel.sharding_strategy=FULL_SHARD"],
}
EMA = ["averages.method=ema", "averages.decay=0.9"]
SWA = ["averages.method=swa"]


class Weights(torch.nn.Module):
    """A module whose parameters are the tensors of a file."""

    def __init__(self, tensors):
        super().__init__()
        self.names = sorted(tensors)
        self.tensors = torch.nn.ParameterList(torch.nn.Parameter(tensors[name].clone()) for name in self.names)

    def named(self):
        return dict(zip(self.names, self.tensors, strict=True))


class AveragesParity(runs.RunTest):

    def train(self, exp_dir, steps, *arguments):
        self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"training.max_steps={steps}", *SAVE_ALL, *arguments)

    def load(self, exp_dir, step, part):
        return load_file(self.folder / exp_dir / f"checkpoints/step-{step:08d}/{part}.safetensors")

    def largest_difference(self, exp_dir, taken, multi_avg_fn=None):
        """Between the averages of the checkpoints of these steps and AveragedModel's over them."""
        peer = None
        largest = 0.0
        for step in taken:
            weights = Weights(self.load(exp_dir, step, "model"))
            if peer is None:
                peer = AveragedModel(weights, multi_avg_fn=multi_avg_fn)
            peer.update_parameters(weights)
            averages = self.load(exp_dir, step, "averages")
            expected = peer.module.named()
            self.assertEqual(averages.keys(), expected.keys())
            for name, average in averages.items():
                largest = max(largest, (average - expected[name].detach()).abs().max().item())
        moved = max((average - weights.named()[name]).abs().max().item() for name, average in averages.items())
        self.assertGreater(moved, 1e-3, "the average is not the weights")
        return largest

    def expect_equal(self, label, difference, limit):
        print(f"{label}: largest difference {difference:g}, limit {limit:g}")
        self.assertLessEqual(difference, limit, label)

    def test_each_method_on_ranks(self):
        for ranks in ("one rank", "DDP 2", "FULL_SHARD 2"):
            limit = LIMIT if "SHARD" in ranks else 0
            for method, options, peer in (("ema", EMA, get_ema_multi_avg_fn(0.9)), ("swa", SWA, None)):
                run = f"{method} {ranks}".replace(" ", "_")
                self.train(run, 12, *options, *RANKS[ranks])
                self.expect_equal(f"{method}, {ranks}", self.largest_difference(run, range(1, 13), peer), limit)

    def test_starts_late_and_takes_every_third(self):
        self.train("run", 12, *SWA, "averages.start=4", "averages.every_n_steps=3")
        self.expect_equal("swa from step 4, every third", self.largest_difference("run", (4, 7, 10)), 0)

    def test_goes_on_from_2_to_4_ranks_to_1(self):
        for method, options, peer in (("ema", EMA, get_ema_multi_avg_fn(0.9)), ("swa", SWA, None)):
            for steps, ranks in ((5, "FULL_SHARD 2"), (9, "FULL_SHARD 4"), (12, "one rank")):
                self.train(method, steps, *options, *RANKS[ranks])
            self.expect_equal(f"{method}, 2, 4, 1 ranks", self.largest_difference(method, range(1, 13), peer), LIMIT)

    def test_goes_on_bit_for_bit(self):
        for ranks in ("one rank", "FULL_SHARD 2"):
            whole, cut = (f"{run}_{ranks}".replace(" ", "_") for run in ("whole", "cut"))
            self.train(whole, 8, *EMA, *RANKS[ranks])
            self.train(cut, 5, *EMA, *RANKS[ranks])
            self.train(cut, 8, *EMA, *RANKS[ranks])
            expected = self.load(whole, 8, "averages")
            for name, average in self.load(cut, 8, "averages").items():
                self.assertTrue(torch.equal(average, expected[name]), name)


if __name__ == "__main__":
    sys.exit(runs.main())
