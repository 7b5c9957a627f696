# SPDX-License-Identifier: Apache-2.0
"""What asks about configs starts nothing and loads nothing: it costs what linking to LibTorch costs."""

import os
import pathlib
import re
import statistics
import subprocess
import sys

from tests.end_to_end import runs
from tests.end_to_end.no_processes import forbid_processes

# main() { return 0; }, linked to the same LibTorch.
EMPTY_MAIN = pathlib.Path(sys.argv[2]).resolve()

MOST_SECONDS = 0.05
# Rounds until the bound holds: on a machine that does other things the least time is met late.
LEAST_ROUNDS, MOST_ROUNDS = 5, 30

# Arguments, and the exit code. The config asks for two ranks, and for CUDA.
CASES = {
    "help": (["--help"], 0),
    "help of train": (["train", "--help"], 0),
    "version": (["--version"], 0),
    "config print": (["config", "print", "tiny.yaml", "launcher.processes=2",
                      "parallel.device=cuda"], 0),
    "config explain": (["config", "explain", "optimizer", "tiny.yaml"], 0),
    "config diff": (["config", "diff", "tiny.yaml", "tiny.yaml"], 0),
    "config new": (["config", "new", "task=copying", "model=gpt2", "optimizer=sgd"], 0),
    "config schema": (["config", "schema"], 0),
    "list": (["list"], 0),
    "completion table": (["completion", "table"], 0),
    "a mistake in the config": (["tiny.yaml", "launcher.processes=2", "parallel.device=cuda",
                                 "optimizer.lr=fast", "modle.n_layer=2"], 2),
    "a mistake across fields": (["tiny.yaml", "launcher.processes=2", "parallel.device=cuda",
                                 "model.n_head=3"], 2),
    "no such config": (["none.yaml"], 2),
    "no such command": (["trian"], 2),
}
TIMED = ("help", "help of train", "version", "config print", "completion table",
         "a mistake in the config", "a mistake across fields")


class StartTest(runs.RunTest):

    def cpu_seconds(self, command, code):
        """User and system time of one run, which must end with this code."""
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.assertEqual(process.returncode, code, command)
        return usage.ru_utime + usage.ru_stime

    def loaded(self, command):
        """The shared objects that a run loads, by name."""
        log = self.folder / "loaded"
        subprocess.run(command, cwd=self.folder, stdin=subprocess.DEVNULL,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                       timeout=runs.TIMEOUT_SECONDS,
                       env={"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(log)})
        text = "".join(path.read_text() for path in self.folder.glob("loaded.*"))
        for path in self.folder.glob("loaded.*"):
            path.unlink()
        return {os.path.basename(path)
                for path in re.findall(r"calling init: (\S+)", text)}

    def test_it_costs_at_most_50_ms_more_than_an_empty_main(self):
        """Processor time, in turns: the least of several runs, as what others do on the machine makes
        a run longer, never shorter; or the median of what a round's runs differ by, where the
        machine changes from round to round."""
        commands = {"an empty main": ([EMPTY_MAIN], 0)}
        for name in TIMED:
            arguments, code = CASES[name]
            commands[name] = ([runs.TRAINER, *arguments], code)
        rounds = []
        for number in range(MOST_ROUNDS):
            rounds.append({name: self.cpu_seconds(command, code)
                           for name, (command, code) in commands.items()})
            least = {name: min(row[name] for row in rounds) - min(row["an empty main"] for row in rounds)
                     for name in commands}
            median = {name: statistics.median(row[name] - row["an empty main"] for row in rounds)
                      for name in commands}
            beyond = min(max(least.values()), max(median.values()))
            if number + 1 >= LEAST_ROUNDS and beyond < MOST_SECONDS:
                break
        for name in commands:
            print(f"{name}: {1e3 * least[name]:+.0f} ms by the least, {1e3 * median[name]:+.0f} ms "
                  "by the median", flush=True)
        print(f"after {number + 1} rounds", flush=True)
        self.assertLess(beyond, MOST_SECONDS)

    def test_it_loads_nothing_that_an_empty_main_does_not(self):
        # The wheel's libtorch_cpu.so is itself linked to CUDA's runtime.
        allowed = self.loaded([EMPTY_MAIN])
        self.assertIn("libtorch_cpu.so", allowed)
        self.assertFalse([name for name in allowed if re.match("libtorch_cuda|libcuda.so|libnccl", name)])
        for name, (arguments, _) in CASES.items():
            with self.subTest(name):
                self.assertEqual(self.loaded([runs.TRAINER, *arguments]) - allowed, set())

    def test_it_starts_no_process(self):
        def forbid():
            forbid_processes(kill=True)
        for name, (arguments, code) in CASES.items():
            with self.subTest(name):
                self.trainer(*arguments, code=code, preexec_fn=forbid)
        # The filter sees what a training run does.
        self.trainer("tiny.yaml", "launcher.processes=2", code=-31, preexec_fn=forbid)

    def test_it_leaves_nothing_behind(self):
        before = self.files()
        for arguments, code in CASES.values():
            self.trainer(*arguments, code=code)
        self.assertEqual(self.files(), before)


if __name__ == "__main__":
    runs.main()
