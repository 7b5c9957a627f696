# SPDX-License-Identifier: Apache-2.0
"""Where a step's time goes, kernel by kernel, as ncu measures them."""

import csv
import io
import re

import speed
from kit import shown, write_config
from outcome import Ended, classify, require
from runner import Item

SECONDS = 80
SKIPPED, MEASURED = 6000, 2000  # launches: some steps, then one or more; each that is measured takes milliseconds
SECONDS_OF_UNIT = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "second": 1, "msecond": 1e-3, "usecond": 1e-6,
                   "nsecond": 1e-9}
SHOWN, NAME_LETTERS = 20, 80


def durations(text):
    """(kernel, seconds) of each launch, from ncu's CSV, which stands among lines of its own."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    rows = csv.DictReader(io.StringIO("\n".join(line for line in lines[begin:] if line.startswith('"'))))
    return [(row["Kernel Name"], float(row["Metric Value"].replace(",", "")) * SECONDS_OF_UNIT[row["Metric Unit"]])
            for row in rows if row["Metric Name"] == "gpu__time_duration.sum"]


def one_step(launches):
    """The kernels between the ends of two optimizer steps; all kernels if fewer than two steps ended."""
    updates = [i for i, (kernel, _) in enumerate(launches) if re.search("adam", kernel, re.IGNORECASE)]
    ends = [i for i, after in zip(updates, updates[1:] + [None]) if after is None or after > i + 1]
    # Groups of parameters follow each other at once: ends near each other are of one update.
    apart = [i for i, after in zip(ends, ends[1:] + [None]) if after is None or after > i + 50]
    return launches[apart[0] + 1 : apart[1] + 1] if len(apart) > 1 else launches


def by_kernel(launches):
    """[kernel, milliseconds, launches], the longest first."""
    found = {}
    for kernel, seconds in launches:
        sums = found.setdefault(kernel, [0, 0])
        sums[0] += seconds
        sums[1] += 1
    return sorted(([kernel, round(1000 * seconds, 4), count] for kernel, (seconds, count) in found.items()),
                  key=lambda row: -row[1])


def measure(kit, report):
    case, folder = speed.case_of(kit), kit.work / "kernels"
    config = speed.trainer_config(kit, case, "auto")
    config["training"]["max_steps"] = kit.size(12, 2)
    path, log = write_config(folder, config), folder / "ncu.csv"
    prefix = kit.under("ncu", "--clock-control", "none", "--metrics", "gpu__time_duration.sum", "--launch-skip",
                       str(SKIPPED), "--launch-count", str(MEASURED), "--kill", "yes", "--csv", "--log-file", str(log))
    command = [*prefix, kit.program("trainer"), str(path), f"exp_dir={folder / 'run'}"]
    if kit.is_dry:
        kit.run(command)
        report.note(replaced="ncu")
        return
    print("$", *command, flush=True)
    process = kit.start(command, folder, kit.environment())
    output = shown(process)
    returncode = process.wait()
    text = log.read_text(errors="replace") if log.exists() else ""
    launches = durations(text)
    if not launches:  # ncu ends the program once it has what it wants: its exit code says nothing then
        print(text[-2000:])
        raise Ended(classify(returncode or 1, output + text), "ncu has measured no kernel")
    write_table(kit.out / "kernels.csv", by_kernel(one_step(launches)))
    report.note(**figures_of(launches))


def figures_of(launches):
    step = one_step(launches)
    rows = by_kernel(step)
    return {"is_one_step": len(step) < len(launches), "launches": len(step), "kernels": len(rows),
            "milliseconds": round(sum(row[1] for row in rows), 3),
            "longest": [[row[0][:NAME_LETTERS], *row[1:]] for row in rows[:SHOWN]]}


def write_table(path, rows):
    require(rows, "no kernel")
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["kernel", "milliseconds", "launches"], *rows])


ITEMS = [Item("kernels.step", "a step of GPT-2 124M by kernel", 70, measure, alone=True)]
