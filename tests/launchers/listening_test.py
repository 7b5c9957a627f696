# SPDX-License-Identifier: Apache-2.0
"""Where the processes of a run listen, under each launcher: the table of docs/launch.md."""

import ipaddress
import os
import pathlib
import struct
import sys

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest, require
from tests.launchers.slurm_cluster import SlurmCluster
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.ports import free_port

DOCS = pathlib.Path(sys.argv[3]).resolve()

ENDLESS = ["tiny.yaml", "training.max_steps=1000000", "lr_scheduler.decay_steps=100"]


def address_of(digits):
    """/proc/net/tcp has an address as words of the host's byte order, in hexadecimal digits."""
    words = struct.unpack(f">{len(digits) // 8}I", bytes.fromhex(digits))
    address = ipaddress.ip_address(struct.pack(f"<{len(words)}I", *words))
    return getattr(address, "ipv4_mapped", None) or address


def where(address):
    if address.is_loopback:
        return "127.0.0.1"
    return "all addresses" if address.is_unspecified else "the host's address"


def open_files(pid):
    links = set()
    for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            links.add(os.readlink(entry))
        except FileNotFoundError:
            continue
    return links


def listening(pid, inherited):
    """Where a process listens, for TCP, but with sockets that its launcher has left open in it."""
    links = open_files(pid) - inherited
    rows = [line.split() for table in ("tcp", "tcp6")
            for line in pathlib.Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
    listens = "0A"
    return {where(address_of(row[1].split(":")[0])) for row in rows
            if row[3] == listens and f"socket:[{row[9]}]" in links}


def descendants(pid):
    """A process and all that it has started."""
    return [pid, *(of_child for child in runs.children(pid) for of_child in descendants(child))]


class ListeningTest(LauncherTest):

    def trainers(self):
        """The processes of the trainer that work in this test's folder, whoever has started them."""
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                is_ours = (process / "exe").resolve() == runs.TRAINER.resolve()
                if is_ours and (process / "cwd").resolve() == self.folder.resolve():
                    found.append(int(process.name))
            except OSError:
                continue
        return found

    def assert_row(self, name, processes, *launchers):
        """The first launcher shows the run's steps."""
        for line in launchers[0].stdout:
            if "step 2/" in line:
                break
        found = self.trainers()
        inherited = set().union(*(open_files(pid) for launcher in launchers
                                  for pid in descendants(launcher.pid) if pid not in found))
        addresses = set().union(*(listening(pid, inherited) for pid in found))
        for launcher in launchers:
            launcher.terminate()
        for launcher in launchers:
            launcher.communicate(timeout=runs.TIMEOUT_SECONDS)
        self.assertEqual(len(found), processes)
        self.assertIn(f"| {name} | {', '.join(sorted(addresses))} |\n", DOCS.read_text())

    def test_the_trainer_itself(self):
        self.assert_row("`trainer`", 3, self.start_launcher(runs.TRAINER, *ENDLESS, "launcher.processes=2"))

    def test_parameter_servers(self):
        self.assert_row("`trainer`, `name: parameter_server`", 3,
                        self.start_launcher(runs.TRAINER, *ENDLESS, "launcher.processes=2", "name=parameter_server"))

    def test_pipelines(self):
        self.assert_row("`trainer`, `name: pipeline`", 3,
                        self.start_launcher(runs.TRAINER, *ENDLESS, "launcher.processes=2", "name=pipeline"))

    def test_remote_embeddings(self):
        self.assert_row("`trainer`, `name: ddp_with_remote_embedding`", 3,
                        self.start_launcher(runs.TRAINER, *ENDLESS, "launcher.processes=2",
                                            "name=ddp_with_remote_embedding"))

    def test_its_launcher(self):
        self.assert_row("`trainer launch`, one node", 4,
                        self.start_launcher(runs.TRAINER, "launch", "--nproc-per-node=2", *ENDLESS))

    def test_its_launcher_on_two_nodes(self):
        hosts = self.two_hosts()
        port = free_port()
        flags = ["--nnodes=2", f"--master-addr={ADDRESSES[0]}", f"--master-port={port}"]
        for name, more in {"`trainer launch`, several nodes": [],
                           "`trainer launch`, several nodes, with `--local-addr`": [f"--local-addr={ADDRESSES[0]}"]}.items():
            nodes = [[*flags, f"--node-rank={node}", *(more if node == 0 else []), *ENDLESS] for node in (0, 1)]
            self.assert_row(name, 6, *(self.start_launcher(*hosts.command(node, runs.TRAINER, "launch", *arguments))
                                       for node, arguments in enumerate(nodes)))

    def test_ranks_on_two_hosts(self):
        hosts = self.two_hosts()
        variables = {"WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(free_port())}
        self.assert_row("others, several hosts", 2,
                        *(self.start_launcher(*hosts.command(rank, runs.TRAINER, *ENDLESS),
                                              env={**variables, "RANK": str(rank)}) for rank in (0, 1)))

    def test_parameter_servers_on_two_hosts(self):
        hosts = self.two_hosts()
        for number, interface in enumerate(({}, {"GLOO_SOCKET_IFNAME": "eth0"})):
            with self.subTest(interface):
                variables = {"WORLD_SIZE": "2", "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(free_port()),
                             **interface}
                arguments = [*ENDLESS, "name=parameter_server", f"exp_dir=servers_{number}"]
                self.assert_row("others, several hosts", 2,
                                *(self.start_launcher(*hosts.command(rank, runs.TRAINER, *arguments),
                                                      env={**variables, "RANK": str(rank)}) for rank in (0, 1)))

    def test_mpirun_on_one_host(self):
        for name, command in {
                "Open MPI, one host": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"],
                "MPICH, one host": ["mpirun.mpich"]}.items():
            with self.subTest(name):
                require(command[0])
                self.assert_row(name, 2, self.start_launcher(*command, "-n", "2", runs.TRAINER, *ENDLESS))

    def test_slurm_on_one_node(self):
        cluster = SlurmCluster()
        self.addCleanup(cluster.stop)
        self.assert_row("Slurm, one node", 2, self.start_launcher("srun", "--immediate=20", "-K", "-u", "-N1", "-n2",
                                                                  runs.TRAINER, *ENDLESS, env=cluster.environment))

    def two_hosts(self):
        hosts = TwoHosts(self.folder)
        self.addCleanup(hosts.remove)
        return hosts


if __name__ == "__main__":
    runs.main()
