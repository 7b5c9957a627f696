# SPDX-License-Identifier: Apache-2.0
"""The script of coming_from.md, and the task and config that it becomes, learn the same curve in as many steps."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tests.ports import free_port

TRAINER, CONFIG, SCRIPT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
RANKS = 2
MOST = 0.01  # of the last loss; the first one is above 0.1


def of_the_script(folder):
    """The losses by steps."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                                "MASTER_PORT": str(free_port())}
    processes = [subprocess.Popen([sys.executable, SCRIPT], cwd=folder, env=environment | {"RANK": str(rank)},
                                  stdout=subprocess.PIPE, text=True) for rank in range(RANKS)]
    output = "".join(process.communicate(timeout=120)[0] for process in processes)
    assert [process.returncode for process in processes] == [0] * RANKS, output
    return {int(step): float(loss) for step, loss in re.findall(r"^step (\d+)  loss ([\d.]+)$", output, re.MULTILINE)}


def of_the_trainer(folder):
    """The same."""
    subprocess.run([TRAINER, CONFIG, "exp_dir=run"], cwd=folder, check=True, timeout=120)
    rows = [json.loads(line) for line in (folder / "run/logs/metrics.jsonl").read_text().splitlines()]
    return {row["step"]: row["loss"] for row in rows if row["phase"] == "train"}


def main():
    with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as name:
        folder = pathlib.Path(name)
        script, trainer = of_the_script(folder), of_the_trainer(folder)
        assert (folder / "net.pt").exists()
    last = max(script)
    assert last == max(trainer) == 160, (script, trainer)
    for step, loss in script.items():
        print(f"step {step}: script {loss:.6f}, trainer {trainer[step]:.6f}")
    assert script[last] < MOST and trainer[last] < MOST
    assert trainer[1] > MOST, "it has something to learn"


main()
