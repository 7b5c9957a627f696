# SPDX-License-Identifier: Apache-2.0
"""Ranks on two hosts (network namespaces) that are given RANK, WORLD_SIZE and where the store is, and no more."""

import itertools
import statistics
import time
import unittest

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, DATA_ADDRESSES, TwoHosts
from tests.long import is_long
from tests.ports import free_port

HYBRID = ["parallel.use_fsdp=true", "parallel.sharding_strategy=HYBRID_SHARD"]

# 1.6 million parameters, whose gradients are most of what a step costs over a slow link.
WIDTH, LAYERS, POSITIONS, VOCABULARY = 256, 2, 16, 256
GRADIENT_BYTES = 4 * (LAYERS * (12 * WIDTH**2 + 13 * WIDTH) + (VOCABULARY + POSITIONS + 2) * WIDTH)
# Steps from the first to the last of these are measured.
SETTLED, LAST = 2, 9
WIDE = [f"model.n_embd={WIDTH}", "training.gradient_accumulation_steps=1", "training.batch_size=1",
        f"training.max_steps={LAST + 1}", "validation.every_n_steps=null", "checkpoint.save_every_n_steps=null"]
RATE = 10_000_000  # bytes a second, in each direction
# An Ethernet frame of 1,514 bytes has 66 bytes of headers.
FRAME_OVER_PAYLOAD = 1514 / 1448


def ring_bytes(size, ranks):
    """What a rank sends to its neighbour in a ring's all-reduce."""
    return 2 * (ranks - 1) / ranks * size


class TwoHostsTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)
        self.port = str(free_port())

    def start_rank(self, rank, world_size, *arguments, host=None, address=ADDRESSES[0], variables=None):
        variables = {**(variables or {}), "RANK": str(rank), "WORLD_SIZE": str(world_size), "MASTER_PORT": self.port}
        if address:
            variables["MASTER_ADDR"] = address
        host = rank * 2 // world_size if host is None else host
        return self.start_launcher(*self.hosts.command(host, runs.TRAINER, "tiny.yaml", *arguments), env=variables)

    def finish(self, processes, code=0):
        outputs = [process.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for process in processes]
        self.assertEqual([process.returncode for process in processes], [code] * len(processes), "".join(outputs))
        return outputs


class HostsTest(TwoHostsTest):

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

    def test_the_first_file_that_differs_is_named_with_host_and_size(self):
        for name, text in (("longer", runs.TEXT + "more\n"), ("other", runs.TEXT.replace("quick", "quiet"))):
            with self.subTest(name):
                own = self.write(f"{name}.txt", text)
                there = ["sh", "-c", f'mount --bind {own} {self.folder}/text.txt && exec "$@"', "-"]
                processes = [self.start_launcher(*self.hosts.command(rank, *(there if rank else []), runs.TRAINER,
                                                                     "tiny.yaml"),
                                                 env={"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": self.port,
                                                      "MASTER_ADDR": ADDRESSES[0]}) for rank in range(2)]
                output = "".join(self.finish(processes, code=2))
                self.assertIn("the data of rank 1 is not that of rank 0", output)
                self.assertRegex(output, rf"rank 0 on host-0: 'text\.txt', {len(runs.TEXT)} bytes, checksum")
                self.assertRegex(output, rf"rank 1 on host-1: 'text\.txt', {len(text)} bytes, checksum")

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

    def test_a_first_rank_whose_address_is_another_hosts_is_told(self):
        process = self.start_rank(0, 2, "exp_dir=no", "parallel.join_timeout=1s", address=ADDRESSES[1])
        output, = self.finish([process], code=2)
        self.assertIn(f"MASTER_ADDR is '{ADDRESSES[1]}', where this host, which serves the ranks' store, does not reach "
                      "itself: nothing listens there (Connection refused)", output)
        self.assertNotIn("client socket", output)

    def test_ranks_wait_for_a_way_to_each_other(self):
        # The store is reached over one network, the ranks over another, whose routes come late.
        expected = self.expected(2)
        self.hosts.add_network("eth1", DATA_ADDRESSES)
        for host in range(2):
            self.hosts.route(host, "add", "unreachable", DATA_ADDRESSES[1 - host])
        over_data = {"GLOO_SOCKET_IFNAME": "eth1"}
        processes = [self.start_rank(rank, 2, "exp_dir=late", variables=over_data) for rank in range(2)]
        for rank in range(2):
            self.read_until(processes[rank], f"waiting for a way to rank {1 - rank} at {DATA_ADDRESSES[1 - rank]} port")
            self.hosts.route(rank, "del", "unreachable", DATA_ADDRESSES[1 - rank])
        self.finish(processes)
        self.assertEqual(self.losses("late"), expected)
        self.hosts.route(0, "add", "prohibit", DATA_ADDRESSES[1])
        processes = [self.start_rank(rank, 2, "exp_dir=never", "parallel.join_timeout=2s", "parallel.timeout=5s",
                                     variables=over_data) for rank in range(2)]
        output, _ = self.finish(processes, code=1)
        self.assertRegex(output, "error: rank 0 could not connect with the other ranks: no way to rank 1 at "
                                 rf"{DATA_ADDRESSES[1]} port \d+ in 2 s: Permission denied")

    @unittest.skipUnless(is_long(), "An outage takes its time; --config=long")
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


class BandwidthTest(TwoHostsTest):
    """Steps over a slow link take as long as the bytes that their algorithm has to move."""

    rows_of_table = []

    @classmethod
    def tearDownClass(cls):
        print("| 2 hosts x 2 ranks | MB a step, predicted | measured | seconds a step, predicted | measured | "
              "without the link |\n|---|---|---|---|---|---|", *cls.rows_of_table, sep="\n", flush=True)

    def step_seconds(self, exp_dir):
        """From one step's record to the next one's, which includes the reduction of the loss that is logged."""
        times = [row["time"] for row in self.rows(exp_dir) if SETTLED <= row["step"] <= LAST]
        return statistics.median(after - before for before, after in itertools.pairwise(times))

    def bytes_a_step(self, processes):
        """What each host sends while the ranks train."""
        self.read_until(processes[0], f"step {SETTLED}/")
        before = [self.hosts.sent(host) for host in range(2)]
        self.read_until(processes[0], f"step {LAST}/")
        return [(self.hosts.sent(host) - before[host]) / (LAST - SETTLED) for host in range(2)]

    def compare(self, name, predicted, *overrides):
        expected = self.expected(4, *WIDE, *overrides)
        self.hosts.limit(f"{RATE * 8}bit")
        processes = [self.start_rank(rank, 4, "exp_dir=run", *WIDE, *overrides) for rank in range(4)]
        sent = self.bytes_a_step(processes)
        self.finish(processes)
        seconds, alone = self.step_seconds("run"), self.step_seconds("expected")
        least = predicted * FRAME_OVER_PAYLOAD / RATE
        self.rows_of_table.append(
            f"| {name} | {predicted / 1e6:.2f} | {' and '.join(f'{each / 1e6:.2f}' for each in sent)} | "
            f"{least:.3f} | {seconds:.3f} | {alone:.3f} |")
        self.assertEqual(self.losses("run"), expected)
        for each in sent:  # Headers add a thousandth where the kernel counts large segments, else a twentieth.
            self.assertGreater(each, 0.97 * predicted)
            self.assertLess(each, 1.06 * predicted)
        self.assertGreater(seconds, 0.9 * least)
        self.assertLess(seconds, 1.4 * least + 2 * alone)  # Busy cores make both later.

    def test_ddp_sends_what_a_ring_of_all_ranks_sends(self):
        # The ring goes from host to host once in each direction.
        self.compare("DDP", ring_bytes(GRADIENT_BYTES, 4))

    @unittest.skipUnless(is_long(), "DDP is measured here; --config=long")
    def test_hybrid_shard_sends_the_shards_gradients_alone(self):
        # Each of a host's two ranks reduces its half with the rank that has the same half.
        self.compare("HYBRID_SHARD", 2 * ring_bytes(GRADIENT_BYTES / 2, 2), *HYBRID,
                     "parallel.fsdp.shard_group_size=2")


if __name__ == "__main__":
    runs.main()
