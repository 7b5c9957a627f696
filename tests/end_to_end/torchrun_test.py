# SPDX-License-Identifier: Apache-2.0
"""The real binary under torchrun: the launcher that its users know."""

import json
import os
import re
import signal
import socket
import subprocess
import sys

from tests.end_to_end import runs
from tests.ports import free_port


class TorchrunTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        try:
            socket.getaddrinfo("localhost", None)
        except OSError:
            self.skipTest("this host does not know the name localhost (/etc/hosts), by which "
                          "torchrun's own processes find each other")

    def start_torchrun(self, launcher, *arguments):
        command = [sys.executable, "-m", "torch.distributed.run", "--no-python", *launcher,
                   runs.TRAINER, "train", "tiny.yaml", *arguments]
        return subprocess.Popen(command, cwd=self.folder, text=True, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "OMP_NUM_THREADS": "1"})

    def torchrun(self, launcher, *arguments):
        process = self.start_torchrun(launcher, *arguments)
        output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(process.returncode, 0, output)
        return output

    def train_losses(self, exp_dir):
        return [loss for phase, _, loss in self.losses(exp_dir) if phase == "train"]

    def ends(self, exp_dir):
        return [json.loads(line)
                for line in (self.folder / exp_dir / "ends.jsonl").read_text().splitlines()]

    def expected(self):
        self.trainer("tiny.yaml", "exp_dir=expected", "launcher.processes=2")
        return self.train_losses("expected")

    def test_rendezvous_of_every_kind(self):
        expected = self.expected()
        port = free_port()
        kinds = {
            "standalone": ["--standalone", "--nproc-per-node=2"],
            "static": ["--nnodes=1", "--nproc-per-node=2", "--master-addr=127.0.0.1",
                       f"--master-port={port}"],
            "c10d": ["--nnodes=1", "--nproc-per-node=2", "--rdzv-backend=c10d",
                     f"--rdzv-endpoint=127.0.0.1:{free_port()}"],
        }
        for kind, launcher in kinds.items():
            output = self.torchrun(launcher, f"exp_dir={kind}")
            self.assertEqual(output.count("next: "), 1, output)
            self.assertEqual(self.train_losses(kind), expected, kind)

    def test_two_agents_as_two_nodes(self):
        expected = self.expected()
        port = free_port()
        agents = [
            self.start_torchrun(["--nnodes=2", f"--node-rank={node}", "--nproc-per-node=1",
                                 "--master-addr=127.0.0.1", f"--master-port={port}"],
                                "exp_dir=nodes")
            for node in range(2)]
        for agent in agents:
            output, _ = agent.communicate(timeout=runs.TIMEOUT_SECONDS)
            self.assertEqual(agent.returncode, 0, output)
        self.assertEqual(self.train_losses("nodes"), expected)

    def test_a_restart_after_a_killed_rank_goes_on_in_the_same_folder(self):
        expected = self.expected()
        process = self.start_torchrun(["--standalone", "--nproc-per-node=2", "--max-restarts=2"],
                                      "checkpoint.save_every_n_steps=1")
        output = ""
        for line in process.stdout:
            output += line
            if "step 7/" in line:
                break
        os.kill(runs.children(process.pid)[-1], signal.SIGKILL)
        rest, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        output += rest
        self.assertEqual(process.returncode, 0, output)
        self.assertRegex(output, r"resumed +after step \d+")
        (folder,) = (self.folder / "runs").glob("*/run_*")
        self.assertEqual(self.train_losses(folder), expected)
        first, second = map(json.loads, (folder / "starts.jsonl").read_text().splitlines())
        for number, start in enumerate((first, second)):
            self.assertEqual((start["launcher"], start["restart"]), ("torchrun", number))
            self.assertEqual(start["world_size"], 2)
        self.assertEqual(first["step"], 0)
        self.assertGreater(second["step"], 0)

    def test_sigterm_to_the_agent_saves_and_the_same_command_goes_on(self):
        expected = self.expected()
        launcher = ["--standalone", "--nproc-per-node=2"]
        process = self.start_torchrun(launcher, "exp_dir=run", "checkpoint.save_every_n_steps=null")
        output = ""
        for line in process.stdout:
            output += line
            if "step 7/" in line:
                break
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        output += rest
        self.assertNotEqual(process.returncode, 0, output)
        # With a checkpoint of the last step; the agent tells the ranks' exit codes to nobody.
        self.assertIn("stopped by signal 15", output)
        (saved,) = (self.folder / "run/checkpoints").glob("step-*")
        self.assertGreaterEqual(int(saved.name[5:]), 7)
        self.assertRegex(self.torchrun(launcher, "exp_dir=run"),
                         f"resumed +after step {int(saved.name[5:])}")
        self.assertEqual(self.train_losses("run"), expected)
        stopped, finished = self.ends("run")
        self.assertEqual((stopped["start"], stopped["signal"], stopped["saved"]), (1, 15, True))
        self.assertEqual((finished["start"], finished["exit_code"], finished["step"]), (2, 0, 40))

    def test_a_failure_is_told_once_and_to_the_agent(self):
        process = self.start_torchrun(["--standalone", "--nproc-per-node=2"], "exp_dir=run",
                                      "optimizer.lr=1.0e28")
        output, _ = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertNotEqual(process.returncode, 0, output)
        self.assertEqual(len(re.findall(r"error: rank \d: step \d+: the loss is", output)), 1,
                         output)
        (end,) = self.ends("run")
        self.assertRegex(end["error"], rf"rank {end['rank']}: step \d+: the loss is")
        self.assertEqual((end["start"], end["exit_code"]), (1, 1))


if __name__ == "__main__":
    runs.main()
