# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts (network namespaces) that are given RANK, WORLD_SIZE and where the store is, and no more."""

import time

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.ports import free_port

HYBRID = ["parallel.use_fsdp=true", "parallel.sharding_strategy=HYBRID_SHARD"]


class HostsTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)
        self.port = str(free_port())

    def start_rank(self, rank, world_size, *arguments, host=None, address=ADDRESSES[0]):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_PORT": self.port}
        if address:
            variables["MASTER_ADDR"] = address
        host = rank * 2 // world_size if host is None else host
        return self.start_launcher(*self.hosts.command(host, runs.TRAINER, "tiny.yaml", *arguments), env=variables)

    def finish(self, processes, code=0):
        outputs = [process.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [code] * len(processes), "".join(outputs))
        return outputs

    def test_two_ranks_find_each_other(self):
        expected = self.expected(2)
        # Rank 0 may know no address, or one that means loopback to it.
        for name, of_first in (("address", ADDRESSES[0]), ("none", None), ("own_name", "host-0")):
            with self.subTest(name):
                self.finish([self.start_rank(0, 2, f"exp_dir={name}", address=of_first),
                             self.start_rank(1, 2, f"exp_dir={name}")])
                self.assertEqual(self.losses(name), expected)
                start, = self.starts(name)
                self.assertEqual([rank["host"] for rank in start["ranks"]], ["host-0", "host-1"])

    def test_local_ranks_follow_from_the_hosts(self):
        expected = self.expected(4, *HYBRID, "parallel.fsdp.shard_group_size=2")
        outputs = self.finish([self.start_rank(rank, 4, "exp_dir=four", *HYBRID) for rank in range(4)])
        self.assertEqual(self.losses("four"), expected)  # A shard group is a host: two ranks.
        self.assertIn("4, 2 on this host", outputs[0])

    def test_pods_of_an_indexed_job_start_their_ranks(self):
        expected = self.expected(4)
        pods = [self.start_launcher(*self.hosts.command(pod, runs.TRAINER, "tiny.yaml", "exp_dir=pods",
                                                        "launcher.processes=2"),
                                    env={"JOB_COMPLETION_INDEX": str(pod), "WORLD_SIZE": "2", "MASTER_PORT": self.port,
                                         **({"MASTER_ADDR": ADDRESSES[0]} if pod else {})}) for pod in range(2)]
        self.finish(pods)
        self.assertEqual(self.losses("pods"), expected)
        start, = self.starts("pods")
        self.assertEqual((start["launcher"], [rank["host"] for rank in start["ranks"]]),
                         ("kubernetes", ["host-0", "host-0", "host-1", "host-1"]))

    def test_an_address_without_a_route_is_told_once(self):
        process = self.start_rank(1, 2, "exp_dir=no", "parallel.join_timeout=1s", address="192.0.2.7")
        output, = self.finish([process], code=2)
        self.assertIn("MASTER_ADDR is '192.0.2.7', to which this host had no route in 1 s", output)
        self.assertNotIn("[E", output)
        self.assertLess(len(output.splitlines()), 6, output)

    def test_a_link_that_comes_back_costs_nothing_and_one_that_does_not_ends_the_run(self):
        expected = self.expected(2)
        processes = [self.start_rank(rank, 2, "exp_dir=run") for rank in range(2)]
        self.read_until(processes[0], "step 5/")
        self.hosts.link(1, "down")
        time.sleep(2)  # The length of the outage.
        self.hosts.link(1, "up")
        self.finish(processes)
        self.assertEqual(self.losses("run"), expected)
        processes = [self.start_rank(rank, 2, "exp_dir=cut", "parallel.timeout=5s") for rank in range(2)]
        self.read_until(processes[0], "step 5/")
        self.hosts.link(1, "down")
        for output in self.finish(processes, code=1):
            self.assertRegex(output, "a collective of 2 ranks failed|gave no sign of life|Timed out")


if __name__ == "__main__":
    runs.main()
