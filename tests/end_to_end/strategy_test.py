# SPDX-License-Identifier: Apache-2.0
"""`strategy` at the top of a config is short for fields of `parallel`."""

from tests.end_to_end import runs


class StrategyTest(runs.RunTest):

    def printed(self, *overrides):
        return self.trainer("config", "print", "--json", "tiny.yaml", "exp_name=one", *overrides).stdout

    def test_it_resolves_into_parallel(self):
        for short, long in (
                (["strategy=fsdp"], ["parallel.use_fsdp=true"]),
                (["strategy=fsdp"], ["parallel=fsdp"]),
                (["strategy=ddp", "strategy.sync_batchnorm=true"], ["parallel.sync_batchnorm=true"]),
                (["strategy={name: fsdp, sync_batchnorm: true}"],
                 ["parallel.use_fsdp=true", "parallel.sync_batchnorm=true"]),
                (["strategy=ddp", "parallel.sync_batchnorm=true"], ["parallel.sync_batchnorm=true"]),
                (["strategy=fsdp", "parallel.fsdp.auto_wrap.policy=unit"],
                 ["parallel.use_fsdp=true", "parallel.fsdp.auto_wrap.policy=unit"]),
                (["strategy={name: ddp, bucket_cap_mb: 5, init_sync: false}"],
                 ["parallel.ddp.bucket_cap_mb=5", "parallel.sync_module_states=false"]),
                (["strategy={name: fsdp, sharding_strategy: FULL_SHARD, forward_prefetch: true}",
                  "parallel.device=cpu"],
                 ["parallel={use_fsdp: true, device: cpu, sharding_strategy: FULL_SHARD}",
                  "parallel.fsdp.forward_prefetch=true"])):
            with self.subTest(short):
                self.assertEqual(self.printed(*short), self.printed(*long))
        self.assertNotIn("strategy\":\"fsdp", self.printed("strategy=fsdp"))

    def test_none_is_for_one_rank(self):
        self.trainer("tiny.yaml", "strategy=none", "training.max_steps=1", "exp_dir=one")
        told = self.trainer("tiny.yaml", "strategy=none", "launcher.processes=2", "exp_dir=two", code=2)
        self.assertIn("parallel.single_rank is true (strategy: none), and there are 2 ranks", told.stderr)
        self.assertFalse((self.folder / "two" / "checkpoints").exists())

    def test_mistakes(self):
        for overrides, problem in (
                (["strategy=ddp", "parallel=fsdp"], "contradict each other; give one of the two: strategy is short for"),
                (["strategy=no_such_strategy"], "unknown strategy 'no_such_strategy'"),
                (["strategy=ddp", "strategy.dim=1"],
                 "parallel.ddp.dim: unknown key in the section 'parallel.ddp'; dim (PyTorch DDP, TorchTNT) has no "
                 "field here: a rank gets samples of its own"),
                (["strategy=ddp", "strategy.bucket_cap_mb=many"], "parallel.ddp.bucket_cap_mb: ")):
            with self.subTest(overrides):
                process = self.trainer("tiny.yaml", *overrides, code=2)
                self.assertIn(problem, process.stderr)
                self.assertEqual(self.files(), ["text.txt", "tiny.yaml"])


if __name__ == "__main__":
    runs.main()
