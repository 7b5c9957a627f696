# SPDX-License-Identifier: Apache-2.0
"""Cores of ranks with GPUs, beside torch/numa/binding.py, on random hosts.

A host is a folder with the files of /sys, /proc and /dev that hwloc, PyTorch and the trainer read.
"""

import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

from torch.numa import binding

MODES = {
    "node": binding.AffinityMode.NODE,
    "socket": binding.AffinityMode.SOCKET,
    "exclusive": binding.AffinityMode.EXCLUSIVE,
    "core-complex": binding.AffinityMode.CORE_COMPLEX,
}
HOSTS = 40


def mask(numbers):
    """As the kernel writes a set of cores: "00000001,0000000f"."""
    value = sum(1 << number for number in numbers)
    words = []
    while True:
        words.append(f"{value & 0xFFFFFFFF:08x}")
        value >>= 32
        if not value:
            return ",".join(reversed(words)) + "\n"


def listed(numbers):
    return ",".join(str(number) for number in sorted(numbers)) + "\n"


class Host:
    """A random host: equal sockets, NUMA nodes, caches, cores with one or two hardware threads, and GPUs."""

    def __init__(self, rng, root):
        self.root = pathlib.Path(root)
        sockets, nodes, caches = rng.choice([1, 2]), rng.choice([1, 2, 4]), rng.choice([1, 2])
        cores, threads = rng.choice([1, 2, 3, 4]), rng.choice([1, 2])
        places = list(itertools.product(range(sockets), range(nodes), range(caches), range(cores)))
        self.nodes = sockets * nodes
        self.units = {}
        # Linux numbers the second threads of all cores behind the first ones, or beside them.
        are_neighbours = rng.random() < 0.5
        for number, (socket, node, cache, core) in enumerate(places):
            for thread in range(threads):
                index = number * threads + thread if are_neighbours else thread * len(places) + number
                self.units[index] = types.SimpleNamespace(
                    socket=socket,
                    node=socket * nodes + node,
                    cache=(socket, node, cache),
                    core=(socket, node, cache, core),
                )
        self.gpus = [rng.randrange(self.nodes) for _ in range(rng.randrange(1, 9))]
        self.addresses = [f"0000:{0x10 + 7 * gpu:02x}:00.0" for gpu in range(len(self.gpus))]
        self.write_units()
        self.write_nodes()
        self.write_gpus(rng)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def alike(self, field, value):
        return [index for index, unit in self.units.items() if getattr(unit, field) == value]

    def write_units(self):
        everything = f"0-{len(self.units) - 1}\n"
        for name in ("online", "possible", "present"):
            self.write(f"sys/devices/system/cpu/{name}", everything)
        for index, unit in self.units.items():
            folder = f"sys/devices/system/cpu/cpu{index}"
            siblings, package = self.alike("core", unit.core), self.alike("socket", unit.socket)
            for name, text in {
                "thread_siblings": mask(siblings),
                "core_cpus": mask(siblings),
                "thread_siblings_list": listed(siblings),
                "core_siblings": mask(package),
                "package_cpus": mask(package),
                "physical_package_id": f"{unit.socket}\n",
                "core_id": f"{min(siblings)}\n",
            }.items():
                self.write(f"{folder}/topology/{name}", text)
            for number, (level, kind, sharing) in enumerate(
                [
                    (1, "Data", siblings),
                    (1, "Instruction", siblings),
                    (2, "Unified", siblings),
                    (3, "Unified", self.alike("cache", unit.cache)),
                ]
            ):
                for name, text in {
                    "level": f"{level}\n",
                    "type": f"{kind}\n",
                    "size": f"{32 << (2 * level)}K\n",
                    "shared_cpu_map": mask(sharing),
                    "shared_cpu_list": listed(sharing),
                }.items():
                    self.write(f"{folder}/cache/index{number}/{name}", text)

    def write_nodes(self):
        for name in ("online", "possible"):
            self.write(f"sys/devices/system/node/{name}", f"0-{self.nodes - 1}\n")
        for node in range(self.nodes):
            folder = f"sys/devices/system/node/node{node}"
            self.write(f"{folder}/cpumap", mask(self.alike("node", node)))
            self.write(f"{folder}/cpulist", listed(self.alike("node", node)))
            self.write(f"{folder}/meminfo", f"Node {node} MemTotal: 1048576 kB\n")

    def write_gpus(self, rng):
        minors = rng.sample(range(len(self.gpus)), len(self.gpus))
        for address, node, minor in zip(self.addresses, self.gpus, minors):
            self.write(f"sys/bus/pci/devices/{address}/numa_node", f"{node}\n")
            self.write(f"dev/nvidia{minor}", "")
            self.write(
                f"proc/driver/nvidia/gpus/{address}/information",
                f"Model: \t\t NVIDIA\nGPU UUID: \t GPU-{minor:08x}\nDevice Minor: \t {minor}\n",
            )


class PythonsHost:
    """What torch/numa/binding.py asks the system for, answered from a Host."""

    def __init__(self, host):
        def under(path):
            return host.root / str(path).lstrip("/")

        def properties(gpu):
            domain, bus, device = host.addresses[gpu].split(".")[0].split(":")
            return types.SimpleNamespace(
                pci_domain_id=int(domain, 16), pci_bus_id=int(bus, 16), pci_device_id=int(device, 16)
            )

        listdir = os.listdir
        self.patches = [
            mock.patch.object(binding, "open", lambda path: open(under(path)), create=True),
            mock.patch("os.listdir", lambda path: listdir(under(path))),
            mock.patch("os.sched_getaffinity", lambda _: set(host.units)),
            mock.patch("torch.cuda.device_count", lambda: len(host.gpus)),
            mock.patch("torch.cuda.get_device_properties", properties),
        ]

    def cores(self, gpu, mode):
        with self.patches[0], self.patches[1], self.patches[2], self.patches[3], self.patches[4]:
            try:
                found = binding._get_logical_cpus_to_bind_to(
                    gpu_index=gpu, numa_options=binding.NumaOptions(affinity_mode=MODES[mode])
                )
                return binding._get_ranges_str_from_ints(found)
            except RuntimeError as error:
                return f"error: {error}"


def our_cores(host, mode):
    environment = {"PATH": os.environ["PATH"], "HWLOC_FSROOT": str(host.root), "HWLOC_COMPONENTS": "linux,stop"}
    words = [sys.argv[1], str(host.root), str(len(host.gpus)), mode]
    answer = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60)
    return [line.split(":")[0] for line in answer.stdout.splitlines()]


class Binding(unittest.TestCase):
    def test_random_hosts(self):
        shapes, errors = set(), 0
        for seed in range(HOSTS):
            with self.subTest(seed=seed), tempfile.TemporaryDirectory() as root:
                host = Host(random.Random(seed), root)
                python = PythonsHost(host)
                for mode in MODES:
                    theirs = [python.cores(gpu, mode) for gpu in range(len(host.gpus))]
                    ours = our_cores(host, mode)
                    if any(cores.startswith("error") for cores in theirs):
                        self.assertEqual(ours[-1], "error", f"{mode}: PyTorch says {theirs}")
                        errors += 1
                        continue
                    self.assertEqual(ours, theirs, f"{mode} on {host.gpus}")
                    shapes.add((mode, tuple(ours)))
        print(f"{HOSTS} hosts: {len(shapes)} different bindings alike, {errors} refused by both")
        self.assertGreater(len(shapes), 2 * HOSTS)
        self.assertGreater(errors, 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
