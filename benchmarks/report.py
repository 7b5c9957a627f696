# SPDX-License-Identifier: Apache-2.0
"""What a benchmark's numbers were taken on, and how they are put together."""

import os
import platform
import statistics
import subprocess

# Of a measurement, and how it is called.
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


def summarize(rounds):
    """Of each quantity both medians, and the median, least and greatest ratio of the rounds."""
    summary = {}
    for quantity in QUANTITIES:
        pairs = [
            (getattr(r["phalanx"], quantity), getattr(r["python"], quantity)) for r in rounds
        ]
        # All four are costs: Python's over Phalanx's is how far Phalanx is ahead.
        ratios = [python / phalanx for phalanx, python in pairs]
        summary[quantity] = {
            "phalanx": statistics.median(phalanx for phalanx, _ in pairs),
            "python": statistics.median(python for _, python in pairs),
            "ratio": statistics.median(ratios),
            "ratio_min": min(ratios),
            "ratio_max": max(ratios),
        }
    return summary


def cells(quantity, values):
    """Both medians in the unit that the quantity is spoken of in."""
    if quantity == "step_seconds":
        return [f"{1 / values[side]:.3f}" for side in ("phalanx", "python")]
    unit = "MiB" if quantity.endswith("mib") else "s"
    digits = 0 if unit == "MiB" else 3
    return [f"{values[side]:.{digits}f} {unit}" for side in ("phalanx", "python")]


def overhead_line(summary, name, alone):
    """What more ranks cost a step, beside the same for Python's."""
    steps = {side: summary[name]["step_seconds"][side] for side in ("phalanx", "python")}
    single = {side: summary[alone]["step_seconds"][side] for side in ("phalanx", "python")}
    phalanx, python = (steps[side] / single[side] for side in ("phalanx", "python"))
    return (
        f"A step takes {phalanx:.2f} times one rank's ({alone}); Python's {python:.2f} times its own."
    )


def markdown(machine, cases, summary):
    lines = [
        "# Phalanx against plain Python",
        "",
        "`benchmarks/run`: the same model, optimizer, text and batch in both, one thread each, in",
        "turns. A ratio is Phalanx's speed (or thrift) over Python's: above 1, Phalanx is ahead.",
        "It is the median of the rounds' ratios, with their least and greatest.",
        "",
    ]
    for name, quantities in summary.items():
        lines += [
            f"## {name}: {cases[name].meaning}",
            "",
            "| | Phalanx | Python | ratio | least – greatest |",
            "|---|---|---|---|---|",
        ]
        for quantity, values in quantities.items():
            phalanx, python = cells(quantity, values)
            lines.append(
                f"| {QUANTITIES[quantity]} | {phalanx} | {python} | **{values['ratio']:.2f}** | "
                f"{values['ratio_min']:.2f} – {values['ratio_max']:.2f} |"
            )
        lines.append("")
        if cases[name].alone in summary:
            lines += [overhead_line(summary, name, cases[name].alone), ""]
    lines += ["## Machine", "", *(f"- {key}: {value}" for key, value in machine.items()), ""]
    return "\n".join(lines)
