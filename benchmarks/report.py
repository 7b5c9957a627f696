# SPDX-License-Identifier: Apache-2.0
"""What a benchmark's numbers were taken on, and how they are put together."""

import os
import platform
import statistics
import subprocess

# The names of a measurement's parts.
QUANTITIES = {
    "step_seconds": "steps a second",
    "step_cpu_seconds": "CPU time a step",
    "start_seconds": "command to step 1",
    "peak_resident_mib": "peak resident host memory",
}


def first_value(path, key):
    with open(path) as file:
        for line in file:
            if line.startswith(key):
                return line.partition(":")[2].strip()
    return "unknown"


def ask_python(python, python_path, expression):
    """What an expression about torch comes to there."""
    command = [python, "-c", f"import platform, torch; print({expression})"]
    environment = dict(os.environ, PYTHONPATH=python_path)
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return result.stdout.strip()


def describe_host():
    """What results depend on, whatever they compare; nothing that names the machine."""
    kibibytes = int(first_value("/proc/meminfo", "MemTotal").split()[0])
    with open("/sys/kernel/mm/transparent_hugepage/enabled") as file:
        huge_pages = file.read().partition("[")[2].partition("]")[0]
    return {
        "processor": first_value("/proc/cpuinfo", "model name"),
        "cores": os.cpu_count(),
        "instruction sets": ", ".join(
            name
            for name in ("avx2", "avx512f", "avx512_bf16", "amx_tile")
            if f" {name} " in f" {first_value('/proc/cpuinfo', 'flags')} "
        ),
        "memory": f"{kibibytes / 2**20:.0f} GiB",
        "system": f"Linux {platform.release().split('-')[0]}, {' '.join(platform.libc_ver())}",
        "transparent huge pages": huge_pages,
        "load average at the start": f"{os.getloadavg()[1]:.1f}",
    }


def describe_machine(python, python_path, device):
    """The host, and the peers' torch and Python."""
    gpus = {}
    if device == "cuda":
        gpus["GPUs"] = ask_python(
            python,
            python_path,
            "f'{torch.cuda.device_count()} x {torch.cuda.get_device_name(0)}'",
        )
    return {
        **describe_host(),
        **gpus,
        "torch": ask_python(python, python_path, "torch.__version__"),
        "python": ask_python(python, python_path, "platform.python_version()"),
        "threads a side": 1,
    }


# What the trainer is compared with, and how it is called.
OTHERS = {
    "old": "the older trainer",
    "python": "Python",
    "python_same": "Python with the same products",
}


def ratios_of(rounds, quantity, other):
    """The other's value of a quantity, a cost, over Phalanx's, in each round."""
    return [getattr(r[other], quantity) / getattr(r["phalanx"], quantity) for r in rounds if other in r]


def summarize(rounds):
    """For each quantity the sides' medians, and the median, least and greatest ratio to each other side."""
    summary = {}
    for quantity in QUANTITIES:
        sides = {side: [getattr(r[side], quantity) for r in rounds if side in r]
                 for side in ("phalanx", *OTHERS)}
        ratios = {other: ratios_of(rounds, quantity, other) for other in OTHERS}
        summary[quantity] = {
            "median": {side: statistics.median(values) for side, values in sides.items() if values},
            "ratio": {other: [statistics.median(found), min(found), max(found)]
                      for other, found in ratios.items() if found},
        }
    return summary


def cell(quantity, value):
    """A median in the unit that the quantity is spoken of in."""
    if quantity == "step_seconds":
        return f"{1 / value:.3f}"
    return f"{value:.0f} MiB" if quantity.endswith("mib") else f"{value:.4g} s"


def table(summary):
    others = list(summary["step_seconds"]["ratio"])
    lines = ["| | Phalanx | " + " | ".join(f"{OTHERS[o]} | ratio" for o in others) + " |",
             "|---" * (2 + 2 * len(others)) + "|"]
    for quantity, name in QUANTITIES.items():
        medians, ratios = summary[quantity]["median"], summary[quantity]["ratio"]
        cells = [cell(quantity, medians["phalanx"])]
        for other in others:
            middle, least, greatest = ratios[other]
            cells += [cell(quantity, medians[other]), f"**{middle:.2f}** ({least:.2f} – {greatest:.2f})"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def peak_line(case, summary, peak):
    """How near a rank's steps come to the machine's best matrix products."""
    flop = case.flop_per_token * case.batch_size * case.context
    shares = {side: flop / seconds / peak / 1e9
              for side, seconds in summary["step_seconds"]["median"].items()}
    words = {"phalanx": "Phalanx"} | OTHERS
    return (f"Of {peak:.0f} GFLOP/s, the best products of 2048³ on one thread, a rank's steps reach "
            + ", ".join(f"{share:.1%} ({words[side]})" for side, share in shares.items()) + ".")


def overhead_line(summary, name, alone):
    """What more ranks cost a step, beside the same for Python's."""
    factors = {side: summary[name]["step_seconds"]["median"][side] /
               summary[alone]["step_seconds"]["median"][side] for side in ("phalanx", "python")}
    return (f"A step takes {factors['phalanx']:.2f} times one rank's ({alone}); "
            f"Python's {factors['python']:.2f} times its own.")


def breakdown_line(shares):
    named = sorted(((share, kind) for kind, share in shares.items() if share >= 0.002), reverse=True)
    return "CPU time of later steps, by perf: " + ", ".join(f"{kind} {share:.1%}" for share, kind in named) + "."


def case_lines(name, cases, summary, extra):
    lines = [f"## {name}: {cases[name].meaning}", "", *table(summary[name]), ""]
    if "peak" in extra and not cases[name].precision:
        lines += [peak_line(cases[name], summary[name], extra["peak"]), ""]
    if name in extra["cold_start"]:
        lines += [f"Command to step 1 where the products have never been timed for this model: "
                  f"{extra['cold_start'][name]:.3f} s.", ""]
    if name in extra["breakdown"]:
        lines += [breakdown_line(extra["breakdown"][name]), ""]
    if cases[name].alone in summary and "python" in summary[name]["step_seconds"]["median"]:
        lines += [overhead_line(summary, name, cases[name].alone), ""]
    return lines


def markdown(machine, cases, summary, extra):
    lines = [
        "# Phalanx against plain Python",
        "",
        "`benchmarks/run`: the same model, optimizer, text and batch on all sides, one thread a rank, in turns.",
        "A ratio is Phalanx's speed (or thrift) over the other's: above 1, Phalanx is ahead. It is the median",
        "of the rounds' ratios, with their least and greatest. Phalanx takes `compute.gemm: auto`.",
        "",
    ]
    for name in summary:
        lines += case_lines(name, cases, summary, extra)
    lines += ["## Machine", "", *(f"- {key}: {value}" for key, value in machine.items()), ""]
    return "\n".join(lines)
