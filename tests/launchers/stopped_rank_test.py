# SPDX-License-Identifier: Apache-2.0
"""A rank that is stopped at a random moment (SIGSTOP) is named first by all: on the screen, in every other rank's log
and in ends.jsonl, with its host and the step in which it is missed.

Ways: DDP and FSDP, 2 to 5 ranks, on one host and on two (network namespaces), started by the trainer itself, by
`trainer launch` and by variables set by hand. By default two moments; --config=long tries 50, and prints how many were
right and the seconds from the stop to the end of the last process.
"""

import json
import os
import random
import re
import signal
import statistics
import time
from dataclasses import dataclass

from tests.end_to_end import runs
from tests.launchers.programs import LauncherTest
from tests.launchers.two_hosts import ADDRESSES, TwoHosts
from tests.long import is_long, tell_sample
from tests.ports import free_port

MOMENTS = 50
SAMPLE = (1, 2)  # of few ranks, one case a host and one on two
TIMEOUT_SECONDS = 10  # of collectives: all ranks of a busy machine come to each within it
DDP, FSDP = [], ["parallel.use_fsdp=true", "parallel.sharding_strategy=FULL_SHARD"]
STARTERS = ("alone", "launch", "two launches", "by hand")
# Behind the host it may say that others are silent as well, that no rank of the host answers, or what it serves.
FIRST_LINE = r"rank \d+: gave no sign of life on host-\d\b[^;]*; rank \d+ waits for it in .*step \d+"
# What it says itself where those that end it let it go on.
OWN_LINE = r"(?:rank \d+: )?did not run for \d+ s on host-\d in [^:]*step \d+"


@dataclass
class Case:
    number: int
    starter: str
    ranks: int
    way: list
    victim: int
    step: int
    seconds: float  # beyond that step

    @classmethod
    def random(cls, number):
        """A quarter of them for each starter, in turn."""
        chooser = random.Random(number)
        ranks = chooser.randint(2, 5)
        return cls(number, STARTERS[number % len(STARTERS)], ranks, chooser.choice((DDP, FSDP)),
                   chooser.randrange(ranks), chooser.randint(2, 12), chooser.uniform(0, 0.3))

    @property
    def host_counts(self):
        """Ranks of each host."""
        on_first = (self.ranks + 1) // 2
        return [self.ranks] if self.starter in ("alone", "launch") else [on_first, self.ranks - on_first]

    def host_of(self, rank):
        return 0 if rank < self.host_counts[0] else 1


class StoppedRankTest(LauncherTest):

    def setUp(self):
        super().setUp()
        self.hosts = TwoHosts(self.folder)
        self.addCleanup(self.hosts.remove)

    def start_case(self, case):
        """Its processes; the first prints what rank 0 does."""
        arguments = ["tiny.yaml", f"exp_dir=run{case.number}", f"parallel.timeout={TIMEOUT_SECONDS}s",
                     "training.max_steps=100000", "validation.every_n_steps=4", "checkpoint.save_every_n_steps=5",
                     "checkpoint.keep_last=1", *case.way]  # fmt: skip
        start = lambda host, *words, env=None: self.start_launcher(  # noqa: E731
            *self.hosts.command(host, runs.TRAINER, *words), env=env)
        if case.starter == "alone":
            return [start(0, *arguments, f"launcher.processes={case.ranks}")]
        if case.starter == "launch":
            return [start(0, "launch", f"--nproc-per-node={case.ranks}", *arguments)]
        port = free_port()
        if case.starter == "two launches":
            return [start(host, "launch", "--nnodes=2", f"--node-rank={host}", f"--master-addr={ADDRESSES[0]}",
                          f"--master-port={port}", f"--nproc-per-node={count}", *arguments)
                    for host, count in enumerate(case.host_counts)]
        place = {"WORLD_SIZE": str(case.ranks), "MASTER_ADDR": ADDRESSES[0], "MASTER_PORT": str(port)}
        return [start(case.host_of(rank), *arguments, env={**place, "RANK": str(rank)}) for rank in range(case.ranks)]

    def processes_of_ranks(self, case, started):
        """By rank. A launch starts the process by which it meets others before its ranks."""
        if case.starter == "by hand":
            return [process.pid for process in started]
        return [pid for process, count in zip(started, case.host_counts)
                for pid in sorted(runs.children(process.pid))[-count:]]

    def check(self, case):
        """What is wrong, as text, and the seconds that it took."""
        started = self.start_case(case)
        self.read_until(started[0], f"step {case.step}/")
        time.sleep(case.seconds)
        ranks = self.processes_of_ranks(case, started)
        self.assertEqual(len(ranks), case.ranks)
        os.kill(ranks[case.victim], signal.SIGSTOP)
        began = time.monotonic()
        waited = [process for process in started if case.starter != "by hand" or process.pid != ranks[case.victim]]
        outputs = [process.communicate(timeout=runs.TIMEOUT_SECONDS)[0] for process in waited]
        seconds = time.monotonic() - began
        if case.starter == "by hand":
            os.kill(ranks[case.victim], signal.SIGKILL)
        said = {f"output {number}": output for number, output in enumerate(outputs)}
        wrong = self.wrong_of(case, "the screen", "".join(outputs))
        for rank in range(case.ranks):
            log = (self.folder / f"run{case.number}/logs/rank_{rank}.log").read_text()
            said[f"log {rank}"] = log[-1000:]
            if rank != case.victim or "error: " in log:
                wrong += self.wrong_of(case, f"rank {rank}'s log", log)
        ends = [json.loads(line) for line in (self.folder / f"run{case.number}/ends.jsonl").read_text().splitlines()]
        wrong += self.wrong_of(case, "ends.jsonl", "".join(f"error: {end.get('error')}\n" for end in ends))
        # Ranks by hand, whose store is silent with rank 0, each record the end.
        if {end.get("rank") for end in ends} != {case.victim}:
            wrong.append(f"ends.jsonl: {ends}")
        if wrong:
            print(f"{case}\n{wrong}\n" + "\n".join(f"--- {name}\n{text}" for name, text in said.items()), flush=True)
        return wrong, seconds

    @staticmethod
    def wrong_of(case, where, text):
        lines = re.findall(r"error: (.*)", text)
        match = re.match(f"(?:{FIRST_LINE})|(?:{OWN_LINE})", lines[0]) if lines else None
        is_its_own = where == f"rank {case.victim}'s log"
        names_rank = match and (is_its_own or match[0].startswith(f"rank {case.victim}: "))
        if names_rank and f" on host-{case.host_of(case.victim)}" in match[0]:
            return []
        return [f"{where}: {lines[:1]}"]

    def test_it_is_named_first_by_all(self):
        numbers = range(MOMENTS) if is_long() else SAMPLE
        seconds, failed = [], []
        for number in numbers:
            case = Case.random(number)
            wrong, taken = self.check(case)
            seconds.append(taken)
            if wrong:
                failed.append((case, wrong))
        tell_sample(len(numbers), MOMENTS, "moments")
        print(f"{len(numbers) - len(failed)} of {len(numbers)} right; seconds from the stop to the end of all: "
              f"{min(seconds):.1f} to {max(seconds):.1f}, median {statistics.median(seconds):.1f}", flush=True)
        self.assertEqual(failed, [])


if __name__ == "__main__":
    runs.main()
