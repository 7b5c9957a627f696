# SPDX-License-Identifier: Apache-2.0
"""What is to be checked wherever a GPU is: see docs/gpu.md. benchmarks/gpu_checklist.sh starts it."""

import argparse
import os
import resource
import signal
import sys
import tempfile
import traceback
from pathlib import Path

import ceilings
import failures
import host
import kernels
import models
import one_gpu
import parity
import parts
import races
import speed
import two_ranks
import writing
from findings import SANITIZER
from kit import Kit, count_gpus, torch_folder
from outcome import FAIL, PASS, Ended
from runner import Report, Runner, Summary

ROOT = Path(__file__).absolute().parents[2]
SECONDS = 560
JOBS, CORES = 4, 8  # at once, on a host with so many cores
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SIGNALLED = 128  # the exit code of a run that a signal ends is so much above its number
# What is wrong comes before what is slow.
GROUPS = {"host": [host], "parts": [parts], "one-gpu": [one_gpu], "parity": [parity], "two-ranks": [two_ranks],
          "races": [races], "models": [models], "failures": [failures], "ceilings": [ceilings],
          "speed": [speed, writing], "kernels": [kernels]}
ITEMS = [item for modules in GROUPS.values() for module in modules for item in module.ITEMS]
# A group whose items hang takes no more than this from the others.
GROUP_SECONDS = {name: sum(module.SECONDS for module in modules) for name, modules in GROUPS.items()}


def refuse(reason):
    print(f"gpu_checklist: {reason}", file=sys.stderr)
    sys.exit(2)


def chosen(names):
    """Items by name or group."""
    unknown = [name for name in names if name not in GROUPS and name not in {item.name for item in ITEMS}]
    if unknown:
        refuse(f"no such item: {', '.join(unknown)}; --list lists them")
    return [item for item in ITEMS if not names or item.name in names or item.group in names]


def default_jobs():
    """4 on a host with 8 cores or more: an item runs up to two ranks of several threads. Else 1."""
    return JOBS if len(os.sched_getaffinity(0)) >= CORES else 1


def parse():
    parser = argparse.ArgumentParser(prog="gpu_checklist.sh run", description=__doc__)
    parser.add_argument("--dry-run", action="store_true", help="every item on the CPU, in small sizes")
    parser.add_argument("--only", nargs="+", default=[], metavar="ITEM", help="these items or groups")
    parser.add_argument("--list", action="store_true", help="the items, with the most seconds of each")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for all items together (%(default)s)")
    parser.add_argument("--jobs", type=int, default=default_jobs(), metavar="N",
                        help="so many items at once that do not measure time (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT") or ROOT / "gpu_checklist"),
                        help="the folder of the results: $OUT, else gpu_checklist/")
    parser.add_argument("--kit", type=Path, help="the folder that `pack` made, if it is not .gpu-bin/ or this one")
    parser.add_argument("--item", help=argparse.SUPPRESS)  # one of them, in a process of its own
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error(f"--jobs: {options.jobs} items at once are none")
    return options


def kit_folder(options):
    packed = ROOT / ".gpu-bin"
    return (options.kit or (packed if packed.is_dir() else ROOT)).absolute()


def run_item(options, item):
    """In a process of its own, which the runner may end at any time."""
    kit = Kit(ROOT, kit_folder(options), options.work, options.out.absolute(), options.dry_run)
    report = Report(options.work / f"{item.name}.json")
    try:
        item.run(kit, report)
        report.end(PASS)
    except Ended as end:
        print(f"{end.result}: {end.reason}", flush=True)
        report.end(end.result, end.reason)
    except Exception as error:  # the item is at fault, or its script
        traceback.print_exc()
        report.end(FAIL, f"{type(error).__name__}: {error}")


def require_host(options):
    if torch_folder() is None:
        refuse(f"{sys.executable} has no torch: set PHALANX_PYTHON to a Python that has it")
    if not options.dry_run and count_gpus() == 0:
        refuse("no NVIDIA GPU that this job may use (/dev/nvidia0, CUDA_VISIBLE_DEVICES): nothing is checked. "
               "--dry-run tries the items on the CPU")


def end_by(number, _frame):
    """Ends the run by way of its `finally` clauses."""
    for each in ENDING:
        signal.signal(each, signal.SIG_IGN)
    sys.exit(SIGNALLED + number)


def run_all(options, items):
    options.out.mkdir(parents=True, exist_ok=True)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # of a process with a GPU it takes long
    (options.out / SANITIZER).unlink(missing_ok=True)  # items add to it
    for each in ENDING:
        if signal.getsignal(each) != signal.SIG_IGN:  # as nohup has it
            signal.signal(each, end_by)
    summary = Summary(options.out)
    with tempfile.TemporaryDirectory(prefix="gpu_checklist-", ignore_cleanup_errors=True) as work:
        def command_of(item):
            command = [sys.executable, __file__, "--item", item.name, "--work", work, "--out", str(options.out),
                       "--kit", str(kit_folder(options))]
            return command + ["--dry-run"] * options.dry_run

        try:
            Runner(command_of, Path(work), summary, options.seconds, GROUP_SECONDS, options.jobs).run(items)
        finally:
            summary.close(items)  # before the run folders are removed, which may take a while
    return 0 if all(row["result"] == PASS for row in summary.rows) else 1


def main():
    options = parse()
    if options.list:
        for item in chosen(options.only):
            print(f"{item.name:32} {item.seconds:4} s  {item.meaning}")
        return 0
    if options.item:
        run_item(options, next(item for item in ITEMS if item.name == options.item))
        return 0
    items = chosen(options.only)
    require_host(options)
    return run_all(options, items)


if __name__ == "__main__":
    sys.exit(main())
