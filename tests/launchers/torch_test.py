# SPDX-License-Identifier: Apache-2.0
"""torch's own launchers, on two hosts too, and the trainer's beside them."""

import json
import re
import socket
import sys

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.long import is_long, tell_sample
from tests.ports import free_port

TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--no-python"]
TORCH_LAUNCH = [sys.executable, "-m", "torch.distributed.launch"]
OWN = [runs.TRAINER, "launch"]

# What a rank is told; those that differ from launch to launch are named by whether they are set.
SHOWS_VARIABLES = """\
import json, os, pathlib, sys
launcher, folder = os.environ["LAUNCHER"], pathlib.Path(os.environ["FOLDER"])
start = ("GROUP_", "LOCAL_", "MASTER_", "OMP_", "RANK", "ROLE_", "TORCH", "WORLD_")
told = {name: value for name, value in os.environ.items() if name.startswith(start)}
for name in ("MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE"):
    told[name] = bool(told[name])
told["arguments"] = sys.argv[1:]
(folder / f"{launcher}-{told['RANK']}.json").write_text(json.dumps(told, sort_keys=True))
"""


class TorchTest(LauncherTest):

    def setUp(self):
        super().setUp()
        try:
            socket.getaddrinfo("localhost", None)
        except OSError:
            self.skipTest("this host does not know the name localhost (/etc/hosts), by which torchrun's own processes "
                          "find each other")
        self.port = str(free_port())

    def finish(self, *processes, code=0):
        outputs = [process.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [code] * len(processes), "".join(outputs))
        return outputs


class BesideTorchrunTest(TorchTest):
    """What the trainer's launcher does is what torchrun does."""

    def told(self, name):
        return {path.name.removeprefix(name): json.loads(path.read_text())
                for path in sorted(self.folder.glob(f"{name}-*.json"))}

    def test_a_program_is_told_the_same(self):
        program = [sys.executable, self.write("variables.py", SHOWS_VARIABLES), "--local-rank=${local_rank}", "a b"]
        static = ["--nnodes=2", "--nproc-per-node=2", "--master-addr=127.0.0.1", "--role=trainer", "--max-restarts=2"]
        c10d = ["--nnodes=2", "--nproc-per-node=2", "--rdzv-backend=c10d", "--rdzv-id=job"]
        for kind, nodes in {"one": [["--standalone", "--nproc-per-node=2", "-r", "3", "-t2"]],
                            "static": [[*static, f"--node-rank={node}"] for node in (0, 1)],
                            "c10d": [c10d, c10d]}.items():
            for name in ("torchrun", "own"):
                port = free_port()
                place = {"one": [], "static": [f"--master-port={port}"],
                         "c10d": [f"--rdzv-endpoint=127.0.0.1:{port}"]}[kind]
                environment = {"LAUNCHER": f"{kind}-{name}", "FOLDER": str(self.folder)}
                commands = [[*TORCHRUN, *flags, *place, *program] if name == "torchrun" else
                            [*OWN, *flags, *place, "--", *program] for flags in nodes]
                self.finish(*(self.start_launcher(*command, env=environment) for command in commands))
            expected, own = self.told(f"{kind}-torchrun"), self.told(f"{kind}-own")
            self.assertEqual(len(own), 2 * len(nodes))
            for rank in expected:
                expected[rank].pop("TORCHELASTIC_SIGNALS_TO_HANDLE")  # what torchrun tells its own process
                # torchrun's agents of c10d find out by themselves which host serves; ours is told.
                for told in (expected[rank], own[rank]):
                    if kind != "static":
                        self.assertTrue(told.pop("MASTER_ADDR"))
                self.assertEqual(own[rank], expected[rank], f"{kind} {rank}")

    def test_each_failure_has_the_exit_code_that_torchrun_reports(self):
        # torchrun itself always ends with 1; its report has the exit code, a signal as a negative one.
        every = ("exit 7", "kill -9 $$", "exit 1", "kill -6 $$")
        sample = every if is_long() else every[:2]
        tell_sample(len(sample), len(every), "failures")
        for how in sample:
            with self.subTest(how):
                program = ["sh", self.write("fails.sh", f"[ $RANK = 1 ] && {how}; sleep 30")]
                report = self.launch(*TORCHRUN, "--standalone", "--nproc-per-node=2", *program, code=1)
                root = report[report.index("Root Cause"):]
                reported = int(re.search(r"exitcode\s*: (-?\d+)", root).group(1))
                self.assertIn("local_rank: 1", root)
                own = self.launch(*OWN, "--nproc-per-node=2", "--", *program,
                                  code=reported if reported > 0 else 128 - reported)
                self.assertIn("error: rank 1", own)

    def test_pythons_errors_are_told(self):
        fails = self.write("fails.py", "from torch.distributed.elastic.multiprocessing.errors import record\n"
                                       "@record\ndef main():\n    raise ValueError('the reason')\nmain()\n")
        output = self.launch(*OWN, "--", sys.executable, fails, code=1)
        self.assertRegex(output, "error: rank 0: .*ValueError: the reason")


class TorchLaunchersTest(TorchTest):

    def test_torch_distributed_launch_with_and_without_use_env(self):
        expected = self.expected(2)
        # Without --use-env it starts Python alone.
        script = self.write("start.py", "import os, sys\nos.execv(sys.argv[-1], sys.argv[-1:] + sys.argv[1:-1])\n")
        for name, command in {"flag": [script, "tiny.yaml", "exp_dir=flag", runs.TRAINER],
                              "variable": ["--use-env", "--no-python", runs.TRAINER, "tiny.yaml", "exp_dir=variable"]}.items():
            self.launch(*TORCH_LAUNCH, "--nproc-per-node=2", f"--master-port={free_port()}", *command)
            self.assertEqual(self.losses(name), expected)

    def test_a_local_rank_that_contradicts_its_variable_is_told(self):
        output = self.launch(runs.TRAINER, "--local-rank=1", "tiny.yaml", code=2,
                             env={"RANK": "0", "WORLD_SIZE": "2", "LOCAL_RANK": "0"})
        self.assertIn("--local-rank is 1, but LOCAL_RANK is 0", output)

    def test_two_agents_of_torchrun_on_two_hosts(self):
        hosts = TwoHosts(self.folder)
        self.addCleanup(hosts.remove)
        expected = self.expected(4)
        common = ["--nnodes=2", "--nproc-per-node=2"]
        kinds = {"static": [[*common, f"--node-rank={node}", f"--master-addr={ADDRESSES[0]}",
                             f"--master-port={self.port}"] for node in (0, 1)],
                 "c10d": [[*common, "--rdzv-backend=c10d", f"--rdzv-endpoint={ADDRESSES[0]}:{self.port}",
                           f"--local-addr={ADDRESSES[node]}", *(["--rdzv-conf=is_host=true"] if node == 0 else [])]
                          for node in (0, 1)]}
        for kind, flags in kinds.items():
            self.finish(*(self.start_launcher(*hosts.command(node, *TORCHRUN, *flags[node], runs.TRAINER, "tiny.yaml",
                                                             f"exp_dir={kind}")) for node in (0, 1)))
            self.assertEqual(self.losses(kind), expected)
            start, = self.starts(kind)
            self.assertEqual(start["launcher"], "torchrun")


if __name__ == "__main__":
    runs.main()
