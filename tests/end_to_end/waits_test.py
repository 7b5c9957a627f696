# SPDX-License-Identifier: Apache-2.0
"""How threads of OpenMP wait for each other: by the load, unless the user has said how."""

import contextlib
import json
import os
import pathlib
import subprocess
import sys
import time

from tests.end_to_end import runs

CHOICES = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "GOMP_STACKSIZE", "OMP_STACKSIZE", "OMP_THREAD_LIMIT")
THREADS = CORES = 2
NAME = "phalanx waits"  # of the thread that looks at the load, and of those that sleep


def environment(**variables):
    """This one, in which nobody has chosen."""
    kept = {name: value for name, value in os.environ.items() if name not in CHOICES}
    return kept | {"OMP_NUM_THREADS": str(THREADS)} | variables


def threads_for_waits(process):
    """How many of its threads look at the load, or sleep."""
    names = []
    for file in pathlib.Path(f"/proc/{process.pid}/task").glob("*/comm"):
        with contextlib.suppress(OSError):  # it has ended
            names.append(file.read_text().rstrip("\n"))
    return names.count(NAME)


@contextlib.contextmanager
def busy_cores():
    """Two processes for each core compute until the block ends."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2 * CORES)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


class WaitsTest(runs.RunTest):

    def setUp(self):
        super().setUp()
        cores = os.sched_getaffinity(0)
        self.addCleanup(os.sched_setaffinity, 0, cores)
        os.sched_setaffinity(0, sorted(cores)[:CORES])

    @contextlib.contextmanager
    def training(self, env, name="run"):
        """The process of one rank, which has trained a step and goes on."""
        command = [runs.TRAINER, "tiny.yaml", f"exp_dir={name}", "training.max_steps=1000000",
                   "checkpoint.save_every_n_steps=null"]
        rows = self.folder / name / "logs/metrics.jsonl"
        process = subprocess.Popen(command, cwd=self.folder, env=env, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with process:
            try:
                self.wait_until(process, lambda: rows.exists() and rows.read_text())
                yield process
            finally:
                process.kill()

    def wait_until(self, process, condition):
        end = time.monotonic() + runs.TIMEOUT_SECONDS
        while not condition():
            self.assertIsNone(process.poll(), "the run has ended")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def needs_libgomp(self):
        process = self.trainer("--version", env=environment(OMP_DISPLAY_ENV="verbose"))
        if "GOMP_SPINCOUNT" not in process.stderr:
            self.skipTest("this OpenMP is not libgomp")

    def test_waits_are_brief_beside_other_programs(self):
        self.needs_libgomp()
        with self.training(environment()) as process, busy_cores():
            # libgomp has to have more threads than there are cores; one more looks at the load.
            self.wait_until(process, lambda: threads_for_waits(process) > len(os.sched_getaffinity(0)) + 1)

    def test_waits_are_left_alone_where_nobody_waits_or_the_user_has_chosen(self):
        choices = {"one": {"OMP_NUM_THREADS": "1"}, "spin": {"GOMP_SPINCOUNT": "77"},
                   "policy": {"OMP_WAIT_POLICY": "active"}}
        for name, chosen in choices.items():
            with self.subTest(chosen), self.training(environment(**chosen), name) as process:
                self.assertEqual(threads_for_waits(process), 0)

    def test_the_environment_stays_as_it_is(self):
        expected = environment(SAID="a b\nc", EMPTY="")
        output = subprocess.run([runs.TRAINER, "launch", "--nproc-per-node=1", "--", "env", "-0"], cwd=self.folder,
                                env=expected, stdout=subprocess.PIPE, check=True, timeout=runs.TIMEOUT_SECONDS)
        seen = dict(entry.split("=", 1) for entry in output.stdout.decode().rstrip("\0\n").split("\0"))
        self.assertEqual({name: seen.get(name) for name in expected}, expected)
        self.assertNotIn("GOMP_SPINCOUNT", seen)

    def test_ranks_and_the_record_of_a_start_have_the_user_s_choice(self):
        self.trainer("tiny.yaml", "exp_dir=run", "launcher.processes=2", "training.max_steps=1",
                     env=environment(GOMP_SPINCOUNT="77"))
        start, = map(json.loads, (self.folder / "run/starts.jsonl").read_text().splitlines())
        self.assertEqual(start["environment"]["GOMP_SPINCOUNT"], "77")

    def test_a_single_rank_says_its_threads(self):
        env = environment(OMP_NUM_THREADS="1")
        self.assertRegex(self.trainer("tiny.yaml", "training.max_steps=1", env=env).stdout,
                         r"\ncores +\S+.*; 1 thread\n")


if __name__ == "__main__":
    runs.main()
