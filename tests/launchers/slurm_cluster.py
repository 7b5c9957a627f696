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
from tests.ports import free_port

CONFIG = """\
ClusterName=virtual
SlurmctldHost={host}(127.0.0.1)
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
NODE = "NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=1000\n"
PARTITION = "PartitionName=main Nodes=ALL Default=YES\n"
SECONDS = 30


class SlurmCluster:
    """Runs until `stop`. Its programs find it by `environment`."""

    def __init__(self, nodes=2):
        require("slurmctld", "slurmd", "srun", "sbatch", "scancel", "scontrol")
        if os.getuid() != 0:
            raise unittest.SkipTest("Slurm's daemons need root")
        self.work = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # Paths of sockets are short.
        for name in ("state", "log", "run"):
            (self.work / name).mkdir(parents=True)
        host = socket.gethostname().split(".")[0]
        config = CONFIG.format(host=host, port=free_port(), work=self.work)
        for number in range(1, nodes + 1):
            config += NODE.format(number=number, host=host, port=free_port())
            (self.work / f"run/n{number}").mkdir()
        (self.work / "slurm.conf").write_text(config + PARTITION)
        self.environment = {**os.environ, "SLURM_CONF": str(self.work / "slurm.conf"), "OMP_NUM_THREADS": "1"}
        self.run("slurmctld")
        for number in range(1, nodes + 1):
            self.run("slurmd", "-N", f"n{number}")
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
            shutil.rmtree(self.work, ignore_errors=True)
