# SPDX-License-Identifier: Apache-2.0
"""The network between two hosts (namespaces) is down for a while: a run goes on where that is shorter than what its
launcher allows, and else ends with a message that names the setting.

By default it is down for 5 seconds under `trainer launch`; --config=long tries 5, 20 and 90 seconds, also with
variables set by hand, as srun sets them.
"""

import os
import re
import signal
import time

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.long import is_long, tell_sample
from tests.ports import free_port

KEEP_ALIVE_SECONDS = 15  # the launch's default
TIMEOUT_SECONDS = 60     # parallel.timeout
# starter: how long the network may be down, and what the message of the end names.
STARTERS = {"two launches": (KEEP_ALIVE_SECONDS, r"--rdzv-conf=keep_alive_interval"),
            "by hand": (TIMEOUT_SECONDS, r"rank \d: gave no sign of life on host-\d .*parallel\.timeout")}
LONGEST_END_SECONDS = 240


class NetworkOutageTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)

    def start_both(self, starter, *arguments):
        port = free_port()
        if starter == "two launches":
            return [self.start_launcher(*self.hosts.command(
                host, runs.TRAINER, "launch", "--nnodes=2", f"--node-rank={host}", f"--master-addr={ADDRESSES[0]}",
                f"--master-port={port}", *arguments)) for host in (0, 1)]
        place = {"WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(port)}
        return [self.start_launcher(*self.hosts.command(host, runs.TRAINER, *arguments), env={**place, "RANK": str(host)})
                for host in (0, 1)]

    def check(self, starter, seconds):
        limit, setting = STARTERS[starter]
        exp_dir = f"run_{starter.split()[-1]}_{seconds}"
        started = self.start_both(starter, "tiny.yaml", f"exp_dir={exp_dir}", "training.max_steps=10000000",
                                  f"parallel.timeout={TIMEOUT_SECONDS}s", "validation.every_n_steps=null",
                                  "checkpoint.save_every_n_steps=null")  # fmt: skip
        self.read_until(started[0], "step 5/")
        self.hosts.link(1, "down")
        began = time.monotonic()
        if seconds < limit:
            time.sleep(seconds)
            self.hosts.link(1, "up")
            log = self.folder / exp_dir / "logs/metrics.jsonl"
            size = log.stat().st_size
            while log.stat().st_size == size:
                self.assertIsNone(started[0].poll())
                self.assertLess(time.monotonic() - began, LONGEST_END_SECONDS)
                time.sleep(0.1)
            print(f"{starter}: {seconds} s: goes on after {time.monotonic() - began:.1f} s", flush=True)
            for process in started:
                os.kill(process.pid, signal.SIGTERM)
            outputs = [process.communicate(timeout=LONGEST_END_SECONDS)[0] for process in started]
            self.assertEqual([process.returncode for process in started], [128 + signal.SIGTERM] * 2, "".join(outputs))
            return
        time.sleep(seconds)
        self.hosts.link(1, "up")
        outputs = [process.communicate(timeout=LONGEST_END_SECONDS)[0] for process in started]
        print(f"{starter}: {seconds} s: ends after {time.monotonic() - began:.1f} s:\n"
              + "\n".join(line for output in outputs for line in output.splitlines() if "error:" in line), flush=True)
        self.assertEqual([process.returncode for process in started], [1, 1], "".join(outputs))
        self.assertTrue(any(re.search(f"error: .*{setting}", output) for output in outputs), "".join(outputs))

    def test_a_run_goes_on_or_names_the_setting(self):
        whole = [(starter, seconds) for starter in STARTERS for seconds in (5, 20, 90)]
        cases = whole if is_long() else whole[:1]
        for starter, seconds in cases:
            with self.subTest(starter=starter, seconds=seconds):
                self.check(starter, seconds)
        tell_sample(len(cases), len(whole), "outages")


if __name__ == "__main__":
    runs.main()
