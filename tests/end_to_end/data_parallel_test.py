# SPDX-License-Identifier: Apache-2.0
"""Replicas in one process (parallel.data_parallel): compares their runs with one device's, and tries what is refused."""

import signal

from tests.end_to_end import runs

TWO = ["parallel.data_parallel.devices=[0,1]", "parallel.device=cpu"]
# Without dropout, whose masks replicas draw for themselves; in double precision.
PLAIN = ["model.embd_pdrop=0", "model.attn_pdrop=0", "model.resid_pdrop=0", "use_double_weight_precision=true",
         "logging.every_n_steps=1"]
ROUNDING = 1e-9


class DataParallelTest(runs.RunTest):

    def train(self, exp_dir, *arguments, **options):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", *arguments, **options)

    def steps(self, exp_dir):
        """A run that is stopped validates at its end, too."""
        return [row for row in self.losses(exp_dir) if row[0] == "train"]

    def assert_close(self, found, expected):
        self.assertEqual([row[:2] for row in found], [row[:2] for row in expected])
        for one, other in zip(found, expected):
            self.assertLess(abs(one[2] - other[2]), ROUNDING * abs(other[2]), one)

    def test_replicas_are_one_device(self):
        self.train("one", *PLAIN, "training.max_steps=12")
        for name, devices in (("two", "[0,1]"), ("three", "[0,1,2]"), ("more_than_samples", "[0,1,2,3,4,5]"),
                              ("single", "[0]")):
            with self.subTest(name):
                self.train(name, *PLAIN, *TWO, f"parallel.data_parallel.devices={devices}", "training.max_steps=12")
                self.assert_close(self.losses(name), self.losses("one"))

    def test_a_last_batch_that_is_not_whole_is_scattered_too(self):
        # Some 35 samples, of which 7 a micro-batch may leave fewer at the end.
        epoch = [*PLAIN, "training.batch_size=7", "training.max_steps=null", "training.max_epochs=1",
                 "training.gradient_accumulation_steps=1", "task.data.sequence_length=256", "model.n_positions=256"]
        self.train("one", *epoch)
        self.train("two", *epoch, *TWO)
        self.assert_close(self.losses("two"), self.losses("one"))

    def test_a_resume_repeats_every_bit_of_dropout(self):
        self.train("whole", *TWO)
        self.train("parts", *TWO, "training.max_steps=20", "lr_scheduler.decay_steps=40")
        self.train("parts", *TWO, "lr_scheduler.decay_steps=40")
        self.assertEqual(self.steps("parts"), self.steps("whole"))

    def test_a_killed_run_repeats_every_bit_of_dropout(self):
        # Seconds of steps are left when it is killed.
        long = [*TWO, "training.max_steps=150", "lr_scheduler.decay_steps=150"]
        self.train("whole", *long)
        killed = self.start("tiny.yaml", "exp_dir=killed", *long)
        for line in killed.stdout:
            if "step 17/" in line:
                break
        killed.send_signal(signal.SIGKILL)
        killed.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(killed.returncode, -signal.SIGKILL, "the run had ended before")
        self.train("killed", *long)
        last = {row[:2]: row[2] for row in self.losses("killed")}  # steps after the checkpoint come twice
        self.assertEqual(last, {row[:2]: row[2] for row in self.losses("whole")})

    def test_a_run_goes_on_with_other_replicas_or_none(self):
        self.train("one", *PLAIN, "training.max_steps=10")
        self.train("run", *PLAIN, *TWO, "training.max_steps=5", "lr_scheduler.decay_steps=10")
        self.train("run", *PLAIN, "training.max_steps=10", "lr_scheduler.decay_steps=10")
        self.assert_close(self.steps("run"), self.steps("one"))
        self.trainer("evaluate", "run")
        self.trainer("checkpoint", "verify", "run")

    def test_the_start_says_that_ranks_are_faster(self):
        told = self.train("run", *TWO, "training.max_steps=1").stdout
        self.assertIn("2 replicas on the CPU, threads of this process; "
                      "2 ranks (strategy: ddp, launcher.processes: 2) are faster", told)

    def test_adapters_are_trained_on_every_replica(self):
        self.train("first", *PLAIN, "training.max_steps=2")
        adapted = [*PLAIN, "training.max_steps=5", "lora.target_modules=[*]", "lora.lora_dropout=0",
                   "checkpoint.load_from=first"]
        self.train("one", *adapted)
        self.train("two", *adapted, *TWO)
        self.assert_close(self.losses("two"), self.losses("one"))

    def test_what_does_not_go_with_replicas_is_refused(self):
        for arguments, problem in (
                (["parallel.use_fsdp=true"], "replicas in one process are whole, and use_fsdp shards the model"),
                (["launcher.processes=2"], "replicas in one process are for one rank, and there are 2"),
                (["activation_checkpointing.policy=unit"], "activation_checkpointing does not go with replicas"),
                (["parallel.data_parallel.devices=[0,0]"], "devices: 0 is there twice"),
                (["parallel.data_parallel.devices=[0,-1]"], "devices: -1 is no number of a GPU")):
            with self.subTest(arguments):
                told = self.trainer("tiny.yaml", "exp_dir=run", *TWO, *arguments, code=2).stderr
                self.assertIn(problem, told)
                self.assertIn("data_parallel", told)
                self.assertFalse((self.folder / "run").exists())


if __name__ == "__main__":
    runs.main()
