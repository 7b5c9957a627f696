# SPDX-License-Identifier: Apache-2.0
"""Llama on two ranks, in DDP and in every strategy of FSDP, recomputed and in lower precision, beside one rank."""

from tests.end_to_end import runs

LLAMA = ("model={name: llama, vocab_size: 256, hidden_size: 32, intermediate_size: 48, num_hidden_layers: 2, "
         "num_attention_heads: 4, num_key_value_heads: 2, max_position_embeddings: 32}")
ALIKE = ("training.max_steps=4", "training.global_batch_size=8", "training.batch_size=2",
         "training.gradient_accumulation_steps=null", "task.sample.tokens=0")
TWO = ("launcher.processes=2",)


def sharded(strategy, *more):
    return (*TWO, "parallel.use_fsdp=true", f"parallel.sharding_strategy={strategy}", *more)


WAYS = {
    "ddp": TWO,
    "full": sharded("FULL_SHARD"),
    "grad": sharded("SHARD_GRAD_OP"),
    "none": sharded("NO_SHARD"),
    "hybrid": sharded("HYBRID_SHARD", "parallel.fsdp.shard_group_size=2"),
    "zero2": sharded("_HYBRID_SHARD_ZERO2", "parallel.fsdp.shard_group_size=2"),
    "recomputed": sharded("FULL_SHARD", "activation_checkpointing.policy=unit"),
}


class LlamaTest(runs.RunTest):

    def train(self, exp_dir, *options):
        self.trainer("tiny.yaml", f"exp_dir={exp_dir}", LLAMA, *ALIKE, *options)
        return {row["step"]: row["loss"] for row in self.rows(exp_dir) if row["phase"] == "train"}

    def test_every_way_trains_as_one_rank(self):
        expected = self.train("one", "launcher.processes=1")
        self.assertEqual(len(expected), 4)
        for name, options in WAYS.items():
            with self.subTest(name):
                found = self.train(name, *options)
                self.assertEqual(found.keys(), expected.keys())
                for step, loss in expected.items():
                    self.assertAlmostEqual(found[step], loss, delta=2e-5, msg=str(step))

    def test_lower_precision_trains_nearly_the_same(self):
        expected = self.train("one", "launcher.processes=1")
        for name, options in (("autocast", ("mixed_precision=bf16", *TWO)),
                              ("fsdp", sharded("FULL_SHARD", "parallel.fsdp.mixed_precision.param_dtype=bfloat16"))):
            with self.subTest(name):
                found = self.train(name, *options)
                for step, loss in expected.items():
                    self.assertAlmostEqual(found[step], loss, delta=0.05, msg=str(step))


if __name__ == "__main__":
    runs.main()
