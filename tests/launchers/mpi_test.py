# SPDX-License-Identifier: Apache-2.0
"""The real binary under mpirun, of Open MPI and of MPICH."""

import os
import signal

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest, require

LAUNCHERS = {
    "open_mpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", "2"],
    "mpich": ["mpirun.mpich", "-n", "2"],
}


class MpiTest(LauncherTest):

    def test_ranks_train_together(self):
        expected = self.expected(2)
        for name, command in LAUNCHERS.items():
            with self.subTest(name):
                require(command[0])
                output = self.launch(*command, runs.TRAINER, "tiny.yaml", f"exp_dir={name}")
                self.assertEqual(output.count("next: "), 1, output)
                self.assert_plain(output)
                self.assertEqual(self.losses(name), expected)
                start, = self.starts(name)
                self.assertEqual((start["launcher"], start["world_size"]), (name, 2))

    def test_the_launcher_can_be_forced(self):
        command = LAUNCHERS["open_mpi"]
        require(command[0])
        self.launch(*command, runs.TRAINER, "tiny.yaml", "launcher.name=alone")
        self.assertEqual(len(list(self.folder.glob("runs/*/run_*/starts.jsonl"))), 2)
        output = self.launch(*command, runs.TRAINER, "tiny.yaml", "exp_dir=no", "launcher.name=slurm", code=None)
        self.assertIn("the environment variable SLURM_PROCID is not set", output)
        self.assertFalse((self.folder / "no").exists())

    def test_a_run_goes_on_after_a_killed_rank(self):
        expected = self.expected(2)
        for name, command in LAUNCHERS.items():
            with self.subTest(name):
                require(command[0])
                arguments = [*command, runs.TRAINER, "tiny.yaml", f"exp_dir={name}", "checkpoint.save_every_n_steps=1"]
                process = self.start_launcher(*arguments)
                self.read_until(process, "step 7/")
                ranks = [pid for child in [process.pid, *runs.children(process.pid)] for pid in runs.children(child)
                         if b"tiny.yaml" in open(f"/proc/{pid}/cmdline", "rb").read() and not runs.children(pid)]
                self.assertEqual(len(ranks), 2)
                os.kill(ranks[-1], signal.SIGKILL)
                output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
                self.assertNotEqual(process.returncode, 0, output)
                self.launch(*arguments)
                self.assertEqual(self.losses(name)[-5:], expected[-5:])
                self.assertEqual(len(self.starts(name)), 2)


if __name__ == "__main__":
    runs.main()
