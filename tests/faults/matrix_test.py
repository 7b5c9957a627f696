# SPDX-License-Identifier: Apache-2.0
"""One rank meets each kind of fault in each phase: what is said, how long it takes, what is left.

By default one run a phase goes on afterwards, and in FSDP each phase meets one kind; with --config=long every run
goes on, and every kind meets every phase. Prints the table that docs/faults.md sums up.
"""

import json
import os
import signal
import time

from tests import ports
from tests.end_to_end import runs
from tests.long import is_long, tell_sample

STEP = 10  # validation and a checkpoint are due
TIMEOUT_SECONDS = 3  # of collectives
SECONDS_TO_NOTICE = 15
SECONDS_WHERE_STOPPED = 60  # the timeout, those for the store and for ending, six runs at once
ARGUMENTS = ("tiny.yaml", "name=faulty", "launcher.processes=2", "validation.every_n_steps=10",
             "checkpoint.save_every_n_steps=5", "exp_name=matrix")  # fmt: skip

# kind: what the message says of the rank that met it, the exit code
KINDS = {
    "kill": (r"error: rank {rank} was killed by signal 9", 1),
    "exit": (r"error: rank {rank} left .*without saying why", 1),
    "exception": (r"error: rank {rank}: .*an injected fault", 1),
    "stop": (r"(?s)error: rank {rank}: gave no sign of life on .*rank {other} waits for it in .*[Tt]imed out", 1),
}


def descendants(pid):
    """Ranks, while their launcher lives."""
    try:
        return runs.children(pid)
    except (FileNotFoundError, ProcessLookupError):
        return []


class Matrix:
    """Faults in one way to train: `PHASES`, `WAY`, and whether by default every kind meets every phase."""
    IS_WHOLE = True

    @classmethod
    def setUpClass(cls):
        cls.table = []

    @classmethod
    def tearDownClass(cls):
        print("| phase | kind | rank | s | message |\n|---|---|---|---|---|")
        for row in sorted(cls.table):
            print("| " + " | ".join(row) + " |")

    def arguments(self, phase, kind, rank):
        step = 0 if phase == "init" else STEP
        return [*ARGUMENTS, *self.WAY, f"fault.rank={rank}", f"fault.step={step}", f"fault.phase={phase}",
                f"fault.kind={kind}", f"parallel.timeout={TIMEOUT_SECONDS}s",
                f"exp_dir={phase}_{kind}_{rank}"]  # fmt: skip

    def begin(self, phase, kind, rank):
        """A run, and its ranks' process ids."""
        process = self.start(*self.arguments(phase, kind, rank))
        ranks = []
        while len(ranks) < 2 and process.poll() is None:
            ranks = descendants(process.pid)
            time.sleep(0.001)
        return process, ranks, time.monotonic()

    def check_end(self, phase, kind, rank, begun):
        process, ranks, began = begun
        self.assertEqual(len(ranks), 2)
        _, errors = process.communicate(timeout=runs.TIMEOUT_SECONDS)
        seconds = time.monotonic() - began
        message, code = KINDS[kind]
        with self.subTest(phase=phase, kind=kind, rank=rank):
            self.assertEqual(process.returncode, code, errors)
            self.assertRegex(errors, message.format(rank=rank, other=1 - rank))
            self.assertEqual(errors.count("error:"), 1, errors)
            if kind == "exception" and phase != "init":
                self.assertIn(f"step {STEP}", errors)
            self.assertLess(seconds, SECONDS_WHERE_STOPPED if kind == "stop" else SECONDS_TO_NOTICE)
            self.assertEqual([pid for pid in ranks if os.path.exists(f"/proc/{pid}")], [])
            self.table.append((phase, kind, str(rank), f"{seconds:.1f}",
                              errors.strip().replace("\n", " / ")[:160]))  # fmt: skip

    def check_goes_on(self, phase, kind, rank):
        exp_dir = f"{phase}_{kind}_{rank}"
        self.trainer(*ARGUMENTS, *self.WAY, f"exp_dir={exp_dir}")
        self.assertEqual(self.losses(exp_dir), self.losses("whole"), exp_dir)

    def test_every_kind_in_every_phase(self):
        self.trainer(*ARGUMENTS, *self.WAY, "exp_dir=whole")
        kinds = ("kill", "exit", "exception")
        met = 0
        for kind_number, kind in enumerate(kinds):
            for number, phase in enumerate(self.PHASES):
                is_first = number % len(kinds) == kind_number
                if not (is_first or self.IS_WHOLE or is_long()):
                    continue
                rank = (number + kind_number) % 2
                self.check_end(phase, kind, rank, self.begin(phase, kind, rank))
                if is_first or is_long():  # on the disk the kinds are one
                    self.check_goes_on(phase, kind, rank)
                met += 1
        tell_sample(met, len(kinds) * len(self.PHASES), "kinds and phases")
        # Rank 0 serves the store of all. The ranks take turns from phase to phase.
        for first in (0, 1) if is_long() else (0,):
            self.check_stopped(first)

    def check_stopped(self, first):
        """A stopped rank in each phase; these mostly wait, so they wait together."""
        stopped = {(phase, (n + first) % 2): self.begin(phase, "stop", (n + first) % 2)
                   for n, phase in enumerate(self.PHASES)}  # fmt: skip
        for (phase, rank), begun in stopped.items():
            self.check_end(phase, "stop", rank, begun)
        for phase, rank in stopped if is_long() else list(stopped)[first::3]:
            self.check_goes_on(phase, "stop", rank)


class DdpMatrixTest(Matrix, runs.RunTest):
    PHASES = ("init", "forward", "backward", "all_reduce", "validation", "checkpoint")
    WAY = ("parallel.ddp.comm_hook=faulty",)

    def test_a_thread_that_ends_a_rank_leaves_its_step_and_activity(self):
        """As c10d's watchdog of NCCL ends one."""
        ends = {"abort": r"was killed by signal 6 \(Aborted\)",
                "uncaught": "no thread caught this exception: an injected fault"}  # fmt: skip
        for rank, (kind, end) in enumerate(ends.items()):
            with self.subTest(kind=kind):
                exp_dir = f"thread_{kind}"
                errors = self.trainer(*ARGUMENTS, *self.WAY, f"fault.rank={rank}", "fault.step=3",
                                      "fault.phase=backward", f"fault.kind={kind}",
                                      f"exp_dir={exp_dir}", code=1).stderr  # fmt: skip
                self.assertRegex(errors, f"error: rank {rank}: step 3, backward: {end}")
                self.assertEqual(errors.count("error:"), 1, errors)
                end_of_run = json.loads((self.folder / exp_dir / "ends.jsonl").read_text())
                self.assertEqual(end_of_run["rank"], rank)
                self.assertIn("step 3, backward", end_of_run["error"])
                self.trainer(*ARGUMENTS, *self.WAY, f"exp_dir={exp_dir}")

    def test_a_thread_that_ends_a_rank_of_another_launcher_says_so_itself(self):
        port = ports.free_port()
        for kind, peer in (("abort", "failed in step 3, "), ("uncaught", "")):
            with self.subTest(kind=kind):
                processes = [
                    self.start(*ARGUMENTS, *self.WAY, "fault.rank=1", "fault.step=3",
                               "fault.phase=backward", f"fault.kind={kind}", f"exp_dir=own_{kind}",
                               env=os.environ | {
                                   "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank),
                                   "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                                   "MASTER_PORT": str(port)})
                    for rank in (0, 1)]  # fmt: skip
                errors = [process.communicate(timeout=runs.TIMEOUT_SECONDS)[1] for process in processes]
                self.assertEqual(processes[1].returncode, -signal.SIGABRT, errors[1])
                self.assertRegex(errors[1], "error: rank 1: step 3, backward: ")
                self.assertEqual(processes[0].returncode, 1, errors[0])
                self.assertIn(peer, errors[0])

    def test_a_communication_hook_of_ones_own_gives_what_phalanx_gives(self):
        self.trainer(*ARGUMENTS, *self.WAY, "exp_dir=own")
        self.trainer(*ARGUMENTS, "parallel.ddp.comm_hook=allreduce", "exp_dir=given")
        self.assertEqual(self.losses("own"), self.losses("given"))


if __name__ == "__main__":
    runs.main()
