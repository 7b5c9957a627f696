# SPDX-License-Identifier: Apache-2.0
"""Two hosts on this one: network namespaces with an address each, and a link between them."""

import json
import os
import subprocess
import unittest

from tests.launchers.programs import require

ADDRESSES = ["10.78.0.1", "10.78.0.2"]
DATA_ADDRESSES = ["10.79.0.1", "10.79.0.2"]  # On a second network.


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=20)


class TwoHosts:
    """Until `remove`. `command(host, …)` is a command there, in a host that is named so, for which /etc/hosts says,
    as Debian's installer does, that its own name is 127.0.1.1."""

    def __init__(self, folder):
        require("ip", "nsenter", "unshare")
        self.folder = folder
        self.names = [f"phalanx-{os.getpid()}-{host}" for host in "ab"]
        try:
            for name in self.names:
                run("ip", "netns", "add", name)
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"no network namespaces here: {error.output.decode()}") from error
        self.add_network("eth0", ADDRESSES)
        for host, name in enumerate(self.names):
            run("ip", "-n", name, "link", "set", "lo", "up")
            (folder / f"hosts-{host}").write_text(f"127.0.0.1 localhost\n127.0.1.1 host-{host}\n")

    def add_network(self, device, addresses):
        a, b = self.names
        run("ip", "-n", a, "link", "add", device, "type", "veth", "peer", "name", device, "netns", b)
        for host, name in enumerate(self.names):
            run("ip", "-n", name, "addr", "add", f"{addresses[host]}/24", "dev", device)
            self.link(host, "up", device)

    def link(self, host, state, device="eth0"):
        run("ip", "-n", self.names[host], "link", "set", device, state)

    def route(self, host, action, kind, address):
        """Adds or deletes a route of a kind that leads nowhere: unreachable, prohibit."""
        run("ip", "-n", self.names[host], "route", action, kind, f"{address}/32")

    def limit(self, rate):
        """In each direction, in tc's notation: 80mbit."""
        require("tc")
        try:
            for name in self.names:
                run("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", "tbf", "rate", rate, "burst", "256kb",
                    "latency", "50ms")
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"no limited bandwidth here: {error.output.decode()}") from error

    def sent(self, host):
        """Bytes that the host has sent over the link so far."""
        output = subprocess.run(["ip", "-n", self.names[host], "-stats", "-json", "link", "show", "dev", "eth0"],
                                check=True, capture_output=True, timeout=20).stdout
        link, = json.loads(output)
        return link["stats64"]["tx"]["bytes"]

    def command(self, host, *command):
        hosts = self.folder / f"hosts-{host}"
        enter = f'hostname host-{host}; mount --bind {hosts} /etc/hosts; exec "$@"'
        return ["nsenter", f"--net=/run/netns/{self.names[host]}", "unshare", "--uts", "--mount", "sh", "-c", enter, "-",
                *map(str, command)]

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)
