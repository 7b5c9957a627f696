# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster of virtual nodes on this host: a controller, and a daemon for each node."""

import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from tests.launchers.programs import require
from tests.launchers.virtual_hosts import VirtualHosts
from tests.ports import free_port

CONFIG = """\
ClusterName=virtual
SlurmctldHost={host}({address})
SlurmctldPort={port}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={work}/state
SlurmdSpoolDir={work}/run/%n
SlurmctldPidFile={work}/run/slurmctld.pid
SlurmdPidFile={work}/run/slurmd-%n.pid
SlurmctldLogFile={work}/log/slurmctld.log
SlurmdLogFile={work}/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=5
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port} CPUs=4 RealMemory=1000\n"
PARTITION = "PartitionName=main Nodes=ALL Default=YES\n"
SECONDS = 100


class SlurmCluster:
    """Runs until `stop`. Its programs find it by `environment`. Its nodes n1, n2, … are processes of this host, or
    `on_hosts` of their own. `options` are further lines of slurm.conf."""

    def __init__(self, nodes=2, on_hosts=False, options=""):
        require("slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol")
        if os.getuid() != 0:
            raise unittest.SkipTest("Slurm's daemons need root")
        self.work = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # Paths of sockets are short.
        for name in ("state", "log", "run"):
            (self.work / name).mkdir(parents=True)
        host = socket.gethostname().split(".")[0]
        names = [f"n{number}" for number in range(1, nodes + 1)]
        self.hosts = VirtualHosts(self.work, names, host) if on_hosts else None
        config = CONFIG.format(host=host, address=self.hosts.address if on_hosts else "127.0.0.1", port=free_port(),
                               work=self.work)
        for name in names:
            config += NODE.format(name=name, port=free_port(), host=name if on_hosts else host,
                                  address=self.hosts.addresses[name] if on_hosts else "127.0.0.1")
            (self.work / "run" / name).mkdir()
        (self.work / "slurm.conf").write_text(config + PARTITION + options)
        self.environment = {**os.environ, "SLURM_CONF": str(self.work / "slurm.conf"), "OMP_NUM_THREADS": "1"}
        self.run("slurmctld")
        for name in names:
            self.run(*(self.hosts.command(name, "slurmd") if on_hosts else ["slurmd", "-N", name]))
        self.wait_for(lambda: set(self.run("sinfo", "-h", "-N", "-o", "%T").split()) == {"idle"}, "idle nodes")

    def run(self, *command):
        result = subprocess.run(command, env=self.environment, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
        if result.returncode != 0:
            raise RuntimeError(f"{command}: {result.stdout}\n{self.logs()}")
        return result.stdout

    def logs(self):
        return "".join(path.read_text()[-2000:] for path in (self.work / "log").glob("*.log"))

    def wait_for(self, is_so, what):
        deadline = time.monotonic() + SECONDS
        while not is_so():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{SECONDS} s without {what}\n{self.logs()}")
            time.sleep(0.05)

    def stop(self):
        """Cancels what runs: steps outlive their daemons."""
        try:
            self.run("scancel", "-u", str(os.getuid()))
            self.wait_for(lambda: not self.run("squeue", "-h").strip(), "an empty queue")
        finally:
            for path in [*self.work.glob("run/slurmd-*.pid"), *self.work.glob("run/slurmctld.pid")]:
                try:
                    os.kill(int(path.read_text()), 15)
                    self.wait_for(lambda ended=path: not ended.exists(), f"the end of {path.name}")
                except (ProcessLookupError, FileNotFoundError):
                    pass
            if self.hosts:
                self.hosts.remove()
            shutil.rmtree(self.work, ignore_errors=True)
