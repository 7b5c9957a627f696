# SPDX-License-Identifier: Apache-2.0
"""Virtual hosts on this one: network namespaces with an address and a name each, behind a bridge."""

import contextlib
import os
import signal
import subprocess
import unittest

from tests.launchers.programs import require
from tests.launchers.two_hosts import run


class VirtualHosts:
    """Until `remove`. They know each other's names, and this host's, `own_name`, at `address`."""

    def __init__(self, folder, names, own_name):
        require("ip", "nsenter", "unshare")
        number = os.getpid()
        network = f"10.{64 + number % 64}.{number // 64 % 256}"
        self.address = f"{network}.1"
        self.bridge = f"br{number}"
        self.links = {name: f"v{number}{name}" for name in names}
        self.addresses = {name: f"{network}.{last}" for last, name in enumerate(names, 11)}
        self.hosts = folder / "hosts"
        self.hosts.write_text(f"127.0.0.1 localhost\n{self.address} {own_name}\n"
                              + "".join(f"{address} {name}\n" for name, address in self.addresses.items()))
        try:
            run("ip", "link", "add", self.bridge, "type", "bridge")
        except subprocess.CalledProcessError as error:
            raise unittest.SkipTest(f"no network namespaces here: {error.output.decode()}") from error
        run("ip", "addr", "add", f"{self.address}/24", "dev", self.bridge)
        run("ip", "link", "set", self.bridge, "up")
        for name, link in self.links.items():
            run("ip", "netns", "add", link)
            run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", link)
            run("ip", "link", "set", link, "master", self.bridge, "up")
            run("ip", "-n", link, "addr", "add", f"{self.addresses[name]}/24", "dev", "eth0")
            run("ip", "-n", link, "link", "set", "eth0", "up")
            run("ip", "-n", link, "link", "set", "lo", "up")

    def command(self, name, *command):
        """What runs a command on a host. Not `ip netns exec`: in its /sys there are no cgroups."""
        enter = f'hostname {name}; mount --bind {self.hosts} /etc/hosts; exec "$@"'
        return ["nsenter", f"--net=/run/netns/{self.links[name]}", "unshare", "--uts", "--mount", "sh", "-c", enter, "-",
                *command]

    def cut_off(self, name):
        run("ip", "link", "set", self.links[name], "down")

    def processes(self, name):
        listed = subprocess.run(["ip", "netns", "pids", self.links[name]], check=False, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
        return [int(process) for process in listed.stdout.split()]

    def remove(self):
        """With the processes that are left on them: a step on a host that is cut off does not end."""
        for name, link in self.links.items():
            for process in self.processes(name):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            # Sockets that nobody closes any more keep a namespace for minutes, and with it the link.
            for kind in ("link", "netns"):
                subprocess.run(["ip", kind, "del", link], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "link", "del", self.bridge], check=False, stderr=subprocess.DEVNULL)
