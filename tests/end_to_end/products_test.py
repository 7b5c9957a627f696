# SPDX-License-Identifier: Apache-2.0
"""What multiplies matrices: chosen once per machine and model, kept by a run, the same on all ranks."""

import json
import os
import re

from tests.end_to_end import runs
from tests.ports import free_port

STEPS = "training.max_steps=4"


class ProductsTest(runs.RunTest):

    def environment(self, gemm=None, **variables):
        """The test's own, with a cache of its own and without the choice that all tests are given."""
        environment = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"), **variables)
        environment.pop("PHALANX_GEMM", None)
        return environment | ({"PHALANX_GEMM": gemm} if gemm else {})

    def train(self, exp_dir, *arguments, gemm=None):
        return self.trainer("tiny.yaml", f"exp_dir={exp_dir}", STEPS, *arguments, env=self.environment(gemm))

    def kept(self, exp_dir):
        """compute.gemm of a run's config.yaml, and the comment behind it."""
        text = (self.folder / exp_dir / "config.yaml").read_text()
        return re.search(r"^  gemm: (\w+) +# (.+)$", text, re.MULTILINE).groups()

    def train_losses(self, exp_dir):
        return [row for row in self.losses(exp_dir) if row[0] == "train"]

    def cached(self):
        return sorted((self.folder / "cache/phalanx").glob("gemm-*.json"))

    def test_auto_is_measured_once_and_kept(self):
        screen = self.train("a").stdout
        gemm, why = self.kept("a")
        self.assertIn(gemm, ("default", "mkl", "onednn"))
        self.assertIn(f"products   {gemm} ({why})", screen)
        if why == "this machine has no other":
            self.skipTest(why)
        self.assertTrue(why.startswith("measured on this machine: "), why)
        files = self.cached()
        self.assertEqual(len(files), 1)
        answer = json.loads(files[0].read_text())
        self.assertEqual(answer["gemm"], gemm)
        # Now the answer is taken from there, whatever the machine would say.
        other = "mkl" if gemm != "mkl" else "default"
        files[0].write_text(json.dumps(answer | {"gemm": other}))
        self.train("b")
        self.assertEqual(self.kept("b")[0], other)
        # Another model is another question.
        self.train("c", "model.n_embd=32")
        self.assertEqual(len(self.cached()), 2)

    def test_a_run_goes_on_as_it_began(self):
        wide = "model.n_embd=160"  # enough terms in a sum that their order can be seen
        self.train("whole", wide, "training.max_steps=8", gemm="mkl")
        self.train("cut", wide, gemm="mkl")
        self.train("cut", wide, "training.max_steps=8", gemm="default")
        self.assertEqual(self.kept("cut"), ("mkl", "as this run began"))
        self.assertEqual(self.train_losses("cut"), self.train_losses("whole"))
        self.train("other", wide, "training.max_steps=8", gemm="default")
        if self.train_losses("other") == self.train_losses("whole"):
            self.skipTest("both round alike on this machine: what a run goes on with cannot be seen")

    def test_a_run_that_goes_on_times_nothing(self):
        self.train("run", gemm="mkl")
        self.train("run", "training.max_steps=5")
        self.assertEqual(self.kept("run"), ("mkl", "as this run began"))
        self.assertEqual(self.cached(), [])

    def test_a_config_repeats_it(self):
        self.train("first", gemm="mkl")
        self.trainer("first/config.yaml", "exp_dir=again", env=self.environment("default"))
        self.assertEqual(self.kept("again")[0], "mkl")
        self.assertEqual(self.losses("again"), self.losses("first"))

    def test_the_config_comes_before_the_variable(self):
        self.train("run", "compute.gemm=default", gemm="mkl")
        self.assertEqual(self.kept("run"), ("default", "command line"))

    def test_a_change_is_said(self):
        self.train("run", gemm="mkl")
        screen = self.train("run", "compute.gemm=default", "training.max_steps=5").stdout
        self.assertIn("compute.gemm: was mkl, now default", screen)

    def test_a_variable_that_names_none_is_refused(self):
        error = self.trainer("tiny.yaml", "exp_dir=run", env=self.environment("blis"), code=2).stderr
        self.assertIn("PHALANX_GEMM=blis names no way to compute products: default, mkl or onednn", error)
        self.assertFalse((self.folder / "run").exists())

    def test_ranks_of_a_launcher_have_one(self):
        self.train("run", "launcher.processes=2")
        self.assertIn(self.kept("run")[0], ("default", "mkl", "onednn"))
        self.assertLessEqual(len(self.cached()), 1)  # none where the machine has no other

    def test_ranks_that_others_start_take_that_of_rank_0(self):
        port = str(free_port())
        processes = [
            self.start("tiny.yaml", "exp_dir=run", STEPS,
                       env=self.environment(gemm, RANK=str(rank), WORLD_SIZE="2", LOCAL_RANK=str(rank),
                                            LOCAL_WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port))
            for rank, gemm in enumerate(("mkl", "default"))
        ]
        for process in processes:
            output = process.communicate(timeout=runs.TIMEOUT_SECONDS)
            self.assertEqual(process.returncode, 0, output)
        self.assertEqual(self.kept("run"), ("mkl", "PHALANX_GEMM"))


if __name__ == "__main__":
    runs.main()
