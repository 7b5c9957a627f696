# SPDX-License-Identifier: Apache-2.0
"""Sharded runs of the real binary: their checkpoints, on other ranks and in other strategies too."""

import os

from tests.end_to_end import runs
from tests.long import is_long, tell_sample
from tests.ports import free_port

# Each rank draws its own dropout, which other ranks would draw otherwise.
PLAIN = ("model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0")


def ranks(count):
    return f"launcher.processes={count}"


def sharded(strategy):
    return ("parallel.use_fsdp=true", f"parallel.sharding_strategy={strategy}")


class FsdpTest(runs.RunTest):

    def train(self, exp_dir, steps, *options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", f"training.max_steps={steps}",
                            "lr_scheduler.decay_steps=40", *options)

    def final_losses(self, exp_dir):
        return {(row["phase"], row["step"]): row["loss"] for row in self.rows(exp_dir)}

    def test_a_resumed_run_repeats_one_that_was_never_interrupted(self):
        every = ("FULL_SHARD", "NO_SHARD", "SHARD_GRAD_OP")
        sample = every if is_long() else every[:2]  # the third one's checkpoints are the first one's
        tell_sample(len(sample), len(every), "strategies")
        for strategy in sample:
            with self.subTest(strategy):
                self.train(f"whole{strategy}", 10, ranks(2), *sharded(strategy))
                self.train(f"parts{strategy}", 5, ranks(2), *sharded(strategy))
                self.train(f"parts{strategy}", 10, ranks(2), *sharded(strategy))
                parts = self.final_losses(f"parts{strategy}")
                del parts["validate", 5]  # a run's last step is validated
                self.assertEqual(parts, self.final_losses(f"whole{strategy}"))

    def test_checkpoints_go_into_every_strategy_and_onto_other_ranks(self):
        # Of a part of the validation data other ranks would take other samples.
        batch = ("training.global_batch_size=32", "training.gradient_accumulation_steps=null",
                 "validation.max_batches=null")
        self.train("ddp", 30, ranks(2), *PLAIN, *batch)
        expected = self.final_losses("ddp")
        steps = 0
        for strategy, count, more in (
                ("FULL_SHARD", 2, ()), ("NO_SHARD", 4, ()),
                ("HYBRID_SHARD", 4, ("parallel.fsdp.shard_group_size=2",)),
                ("SHARD_GRAD_OP", 2, ()), ("FULL_SHARD", 4, ()),
                ("_HYBRID_SHARD_ZERO2", 2, ("parallel.fsdp.shard_group_size=1",))):
            steps += 5
            self.train("chain", steps, ranks(count), *PLAIN, *batch, *sharded(strategy), *more)
        found = self.final_losses("chain")
        self.assertEqual(found.keys() & expected.keys(), expected.keys())
        for key, loss in expected.items():
            self.assertAlmostEqual(found[key], loss, delta=2e-4, msg=str(key))
        self.train("chain", 35, ranks(1), *PLAIN, *batch)  # and back to one

    def test_units_kept_by_a_few_ranks_change_nothing(self):
        losses = []
        for reshard in ("true", "2", "false"):
            process = self.train(f"kept{reshard}", 4, ranks(4), *sharded("FULL_SHARD"),
                                 f"parallel.fsdp.reshard_after_forward={reshard}")
            told = "2 ranks keep a unit whole until its backward pass" in process.stdout
            self.assertEqual(told, reshard == "2")
            losses.append(self.losses(f"kept{reshard}"))
        self.assertEqual(losses[0], losses[1])
        self.assertEqual(losses[0], losses[2])

    def test_what_cannot_be_is_refused_before_anything_is_written(self):
        half = "parallel.fsdp.mixed_precision.param_dtype=float16"
        for options, message in (
                (("parallel.fsdp.reshard_after_forward=3",), "it can be 1, 2"),
                (("parallel.fsdp.reshard_after_forward=0",),
                 "expected true, false or a number of ranks"),
                (("parallel.fsdp.mesh.shard=2",), "FULL_SHARD shards over all ranks"),
                ((half,), "need a loss scale: set mixed_precision.enabled=true"),
                ((half, "mixed_precision=bf16"), "need a loss scale"),
                (("mixed_precision=fp16",
                  "parallel.fsdp.mixed_precision.keep_low_precision_grads=true"),
                 "keep_low_precision_grads would keep gradients in float16")):
            error = self.trainer("tiny.yaml", "exp_dir=refused", ranks(2), *sharded("FULL_SHARD"),
                                 *options, code=2).stderr
            self.assertIn(message, error)
            self.assertFalse((self.folder / "refused").exists())

    def test_validation_samples_and_evaluation(self):
        process = self.train("run", 10, ranks(2), *sharded("FULL_SHARD"), "task.sample.tokens=4",
                             "validation.max_batches=null")
        self.assertIn("sharding   FULL_SHARD over 2 ranks", process.stdout)
        self.assertIn("h.0 and 1 more: 0.01 MiB of parameters whole, 0.01 MiB kept",
                      process.stdout)
        evaluated = self.trainer("evaluate", "run", ranks(2)).stdout.split()
        alone = self.trainer("evaluate", "run", ranks(1), "parallel.use_fsdp=false").stdout.split()
        loss = float(evaluated[evaluated.index("loss") + 1])
        self.assertAlmostEqual(loss, float(alone[alone.index("loss") + 1]), places=5)
        self.assertAlmostEqual(loss, self.final_losses("run")[("validate", 10)], places=5)

    def test_what_cannot_be_is_refused(self):
        self.assertIn("does not divide the 4 ranks: it can be 1, 2, 4",
                      self.trainer("tiny.yaml", ranks(4), *sharded("HYBRID_SHARD"),
                                   "parallel.fsdp.shard_group_size=3", code=2).stderr)
        self.assertIn("no unit of the model matches 'block.*'; there are: h.0 (Block)",
                      self.trainer("tiny.yaml", ranks(2), *sharded("FULL_SHARD"),
                                   "parallel.fsdp.auto_wrap.policy=by_name",
                                   "parallel.fsdp.auto_wrap.names=[block.*]", code=2).stderr)

    def test_recomputed_activations_and_offloading_to_the_host_change_no_bit(self):
        recompute = "activation_checkpointing.policy=unit"
        for strategy in ("FULL_SHARD", "SHARD_GRAD_OP") if is_long() else ("FULL_SHARD",):
            self.train(f"kept{strategy}", 5, ranks(2), *sharded(strategy))
            self.train(f"again{strategy}", 5, ranks(2), *sharded(strategy), recompute)
            self.assertEqual(self.final_losses(f"again{strategy}"),
                             self.final_losses(f"kept{strategy}"))
        self.train("offloaded", 5, ranks(2), *sharded("FULL_SHARD"), "parallel.cpu_offload=true")
        self.assertEqual(self.final_losses("offloaded"), self.final_losses("keptFULL_SHARD"))
        self.train("ddp", 5, ranks(2))
        self.train("ddp again", 5, ranks(2), recompute)
        self.assertEqual(self.final_losses("ddp again"), self.final_losses("ddp"))

    def test_a_run_in_float16_goes_on_with_its_loss_scale(self):
        half = ("mixed_precision=fp16", "mixed_precision.growth_interval=3")
        self.train("whole", 10, ranks(2), *sharded("FULL_SHARD"), *half)
        self.train("parts", 5, ranks(2), *sharded("FULL_SHARD"), *half)
        self.train("parts", 10, ranks(2), *sharded("FULL_SHARD"), *half)
        parts = self.final_losses("parts")
        del parts["validate", 5]
        self.assertEqual(parts, self.final_losses("whole"))
        scales = [[row["loss_scale"] for row in self.rows(name) if row["phase"] == "train"]
                  for name in ("whole", "parts")]
        self.assertEqual(*scales)
        self.assertGreater(scales[0][-1], scales[0][0])

    def test_hosts_of_one_rank_are_warned_that_nothing_is_sharded(self):
        environment = {**os.environ, "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1",
                       "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
                       "OMP_NUM_THREADS": "1"}
        processes = [
            self.start("tiny.yaml", "exp_dir=run", "training.max_steps=2", *sharded("HYBRID_SHARD"),
                       env={**environment, "RANK": str(rank)})
            for rank in range(2)]
        errors = []
        for process in processes:
            errors.append(process.communicate(timeout=runs.TIMEOUT_SECONDS)[1])
            self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(errors[0].count("warning: HYBRID_SHARD shards nothing here"), 1, errors)
        self.assertIn("Set parallel.sharding_strategy=FULL_SHARD", errors[0])
        self.assertNotIn("shards nothing", errors[1])
        process = self.train("host", 2, ranks(2), *sharded("HYBRID_SHARD"))
        self.assertNotIn("shards nothing", process.stderr)

    def test_one_rank_is_not_wrapped(self):
        plain = self.train("plain", 5, "parallel.ddp.find_unused_parameters=true")
        process = self.train("fsdp", 5, *sharded("FULL_SHARD"),
                             "parallel.fsdp.mixed_precision.param_dtype=bfloat16",
                             "parallel.fsdp.forward_prefetch=auto")
        self.assertEqual(self.final_losses("fsdp"), self.final_losses("plain"))

        self.assertNotIn("warning", plain.stderr)
        self.assertEqual(
            process.stderr.count(
                "warning: there is one rank, whose model is not wrapped in DDP or FSDP; without "
                "effect: parallel.use_fsdp (command line), parallel.sharding_strategy (command "
                "line), parallel.fsdp.mixed_precision.param_dtype (command line)\n"),
            1, process.stderr)
        self.assertNotIn("one rank", self.train("two", 2, ranks(2), *sharded("FULL_SHARD")).stderr)


if __name__ == "__main__":
    runs.main()
