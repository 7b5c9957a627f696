# SPDX-License-Identifier: Apache-2.0
"""A model that does not fit: refused in DDP with advice, and what was held where memory ends."""

import resource

from tests.end_to_end import memory_cgroup, runs

# 85 M parameters in units of 7 M; with gradients and Adam's state 1,300 MiB on one rank.
BIG = ("model.n_embd=768", "model.n_layer=12", "model.n_head=12", "training.max_steps=3",
       "training.batch_size=1", "training.gradient_accumulation_steps=1", "task.sample.tokens=0",
       "checkpoint.save_every_n_steps=null", "validation.every_n_steps=100",
       "validation.max_batches=1", "model.embd_pdrop=0", "model.attn_pdrop=0",
       "model.resid_pdrop=0", "lr_scheduler.decay_steps=40")
SHARDED = ("parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD")
RANKS = "launcher.processes=2"
MEBIBYTE = 1024 * 1024
LIMIT = 1200 * MEBIBYTE  # of a process
SHARED_LIMIT = 2200 * MEBIBYTE  # of both ranks and the launcher


def limit_data():
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT, LIMIT))


class MemoryTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        self.environment = runs.os.environ | {"OMP_NUM_THREADS": "1"}

    def train(self, name, *options, **more):
        return self.trainer("tiny.yaml", f"exp_dir={name}", *BIG, *options, env=self.environment,
                            **more)

    def test_ddp_is_refused_with_advice(self):
        for ranks in (RANKS, "launcher.processes=1"):
            error = self.train("refused", ranks, preexec_fn=limit_data, code=2).stderr
            self.assertRegex(error, "the model does not fit into memory: each rank needs 1[23][0-9]{2} MiB before it "
                                    r"computes anything \(parameters 32[0-9], gradients 32[0-9], the optimizer's "
                                    r"state 65[0-9]\), and may take [0-9]+ MiB \(RLIMIT_DATA")
            self.assertIn("the largest tensor is 'h.0.mlp.c_fc.weight', [768, 3072], 9.0 MiB (model.n_embd)", error)
            self.assertIn("parallel.use_fsdp=true parallel.sharding_strategy=FULL_SHARD", error)
            self.assertFalse((self.folder / "refused").exists())

    def test_a_tensor_without_room_has_its_size(self):
        error = self.train("huge", "model.n_embd=16384", "model.n_head=64", preexec_fn=limit_data, code=2).stderr
        self.assertRegex(error, "no room for one of its tensors, of [0-9]{4} MiB; its largest sizes are model.n_embd 16384")

    def test_more_ranks_are_no_advice_where_hosts_are_too_small(self):
        huge = ("model.n_embd=16384", "model.n_layer=96", "model.n_head=64")  # 300 G parameters
        for options, advice in ((("launcher.processes=1",), "FULL_SHARD on several hosts"),
                                ((RANKS, *SHARDED), "Use more hosts, a smaller model"),
                                ((RANKS, "parallel.use_fsdp=true",
                                  "parallel.fsdp.shard_group_size=1"), "or shard this one")):
            error = self.train("huge", *huge, *options, code=2).stderr
            self.assertIn("the host's free memory, shared by the ranks", error)
            self.assertIn(advice, error)

    def test_full_shard_trains_where_ddp_is_refused(self):
        self.train("sharded", RANKS, *SHARDED, preexec_fn=limit_data)
        self.assertEqual(len([row for row in self.losses("sharded") if row[0] == "train"]), 3)

    def test_full_shard_trains_in_a_cgroup_where_ddp_is_refused(self):
        with memory_cgroup.limited(SHARED_LIMIT) as enter:
            error = self.train("refused", RANKS, preexec_fn=enter, code=2).stderr
            self.assertIn("the memory cgroup, shared by the ranks", error)
            self.assertIn("parallel.use_fsdp=true parallel.sharding_strategy=FULL_SHARD", error)
            self.assertFalse((self.folder / "refused").exists())
            self.train("sharded", RANKS, *SHARDED, preexec_fn=enter)
        self.assertEqual(len([row for row in self.losses("sharded") if row[0] == "train"]), 3)

    def test_out_of_memory_tells_what_was_held_and_what_would_help(self):
        error = self.train("bursts", RANKS, *SHARDED, "training.batch_size=256",
                           preexec_fn=limit_data, code=1).stderr
        self.assertIn("out of memory in step 1", error)
        self.assertRegex(error, "[0-9.]+ MiB  parameters, this rank's part")
        self.assertRegex(error, "[0-9.]+ MiB  the optimizer's state")
        self.assertRegex(error, "[0-9]{3,}[0-9.]+ MiB  activations and what else was computed")
        self.assertIn("activation_checkpointing.policy: unit", error)
        self.assertNotIn("use_fsdp: true", error)  # it is


if __name__ == "__main__":
    runs.main()
