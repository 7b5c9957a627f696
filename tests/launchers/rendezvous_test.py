# SPDX-License-Identifier: Apache-2.0
"""Mistakes in how nodes are to meet: each node says within seconds what is wrong, or why it waits.

By default three of the seven; --config=long tries all. Prints a table of the seconds until each has said so.
"""

import pathlib
import subprocess
import sys
import time
import unittest

from tests.end_to_end import runs
from tests.launchers.nodes import NodesTest
from tests.launchers.two_hosts import ADDRESSES
from tests.long import is_long

# A node says after five seconds what it waits for; a busy machine is slower. Half of join_timeout: a node that says
# only then that it waits in vain is too late.
SECONDS = 30


class RendezvousTest(NodesTest):

    table = []  # a row for each mistake, and of it the seconds of each node that was to say something

    @classmethod
    def tearDownClass(cls):
        print("| mistake | seconds until each node has said why |\n|---|---|", flush=True)
        for mistake, seconds in cls.table:
            print(f"| {mistake} | {', '.join(f'{name} {each:.1f}' for name, each in seconds)} |", flush=True)

    def setUp(self):
        super().setUp()
        self.begin = {}  # when each node was started
        self.said = []
        self.addCleanup(lambda: self.table.append((self.id().split(".test_")[-1].replace("_", " "), self.said)))

    def node(self, host, *arguments, **options):
        node = super().node(host, *arguments, **options)
        self.begin[node] = (f"host-{host}", time.monotonic())
        return node

    def expect(self, node, text, code=None):
        """The node says so within seconds of the last start of a node; `code`: and ends with it."""
        begin = max(begin for _, begin in self.begin.values())
        node.wait_for(text, max(0.0, begin + SECONDS - time.monotonic()))
        seconds = node.time_of(text) - begin
        self.said.append((self.begin[node][0], seconds))
        self.assertLess(seconds, SECONDS)
        if code is not None:
            self.assertEqual(node.finish(), code, node.text)

    def start(self, *flags):
        return [self.node(host, *each, "--", "true") for host, each in enumerate(flags)]

    def test_a_name_that_is_not_known(self):
        first, second = self.start(self.static(0), self.static(1, address="no-such-host.invalid"))
        self.expect(second, "no-such-host.invalid", code=2)
        self.expect(first, "waiting for 1 of 2 nodes")

    @unittest.skipUnless(is_long(), "--config=long tries it")
    def test_the_address_of_another_host(self):
        first, second = self.start(self.static(0, address=ADDRESSES[1]), self.static(1, address=ADDRESSES[1]))
        self.expect(first, f"{ADDRESSES[1]} is not this host, and the other nodes look for the first one there: nothing "
                           "listens there (Connection refused)")
        self.expect(second, f"waiting for the first node at {ADDRESSES[1]}:{self.port}, at most 60 s (join_timeout of "
                            "--rdzv-conf): nothing listens there (Connection refused)")

    def test_two_nodes_of_one_rank(self):
        first = self.node(0, *self.static(0), "--", "true")
        first.wait_for("waiting for 1 of 2 nodes", SECONDS)
        for host in (1, 0):  # on another host, and on the same one
            second = self.node(host, *self.static(0), "--", "true")
            self.expect(second, "--node-rank 0 is taken by host-0", code=2)
            self.expect(first, f"node host-{host} is refused: --node-rank 0 is taken by host-0")

    @unittest.skipUnless(is_long(), "--config=long tries it")
    def test_a_port_that_another_program_has(self):
        program = ("import socket, sys, time; held = socket.create_server(('', int(sys.argv[1]))); "
                   "print('on', flush=True); time.sleep(600)")
        holder = subprocess.Popen(self.hosts.command(0, sys.executable, "-c", program, self.port),
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(holder.wait)
        self.addCleanup(holder.kill)
        self.assertEqual(holder.stdout.readline(), "on\n")
        first, second = self.start(self.static(0), self.static(1))
        self.expect(first, "Address already in use", code=2)
        self.expect(second, "another program listens there, which does not answer as a launch does")

    @unittest.skipUnless(is_long(), "--config=long tries it")
    def test_another_binary(self):
        other = self.folder / "trainer"
        other.write_bytes(pathlib.Path(runs.TRAINER).read_bytes() + b"\0")
        other.chmod(0o755)
        first = self.node(0, *self.static(0), "--", "true")
        second = self.node(1, *self.static(1), "--", "true", program=other)
        self.expect(second, "start the same on all nodes", code=2)
        self.expect(first, "node host-1 is refused: this is version")

    def test_numbers_of_nodes_that_contradict_each_other(self):
        for one, other in (("2", "3"), ("1:2", "2:3")):
            with self.subTest(nodes=one):
                first = self.node(0, *self.elastic(one), "--", "sleep", "60")
                second = self.node(1, *self.elastic(other), "--", "sleep", "60")
                self.expect(second, f"--nnodes is {other} on host-1 and {one} on host-0", code=2)
                self.expect(first, f"node host-1 is refused: --nnodes is {other} on host-1")
                first.kill()

    @unittest.skipUnless(is_long(), "--config=long tries it")
    def test_an_endpoint_that_means_each_host_itself(self):
        nodes = self.start(*[self.elastic("2", endpoint="localhost")] * 2)
        for node in nodes:
            self.expect(node, "'localhost' means each host itself, so no node of another host comes")
        # Each has made a launch of its own, and one of both gets the folder.
        for node in nodes:
            node.kill()
        words = ["tiny.yaml", "exp_dir=runs/x", "training.max_steps=1000000"]
        first = self.node(0, *self.elastic("1:2", endpoint="localhost"), *words)
        first.wait_for("step 2/")
        second = self.node(1, *self.elastic("1:2", endpoint="localhost"), *words)
        self.expect(second, "each on its own host: give all nodes one --rdzv-endpoint", code=2)


if __name__ == "__main__":
    runs.main()
