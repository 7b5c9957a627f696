# SPDX-License-Identifier: Apache-2.0
"""The tables of benchmarks/checkpoint."""

import statistics

CASES = {
    "1": "One process",
    "2-replicas": "Two ranks that hold the same (DDP)",
    "2-shards": "Two ranks that hold a half each (FULL_SHARD)",
}

# By side and result, how it is called.
SAVES = {
    ("plain", "save"): "plain write + fsync",
    ("plain-allocated", "save"): "plain write + fsync, allocated before",
    ("phalanx", "save"): "**Phalanx**",
    ("torch", "save"): "torch.save + fsync",
    ("safetensors", "save"): "safetensors save_file + fsync",
    ("dcp", "save"): "DCP save (fsyncs itself)",
    ("background", "next until durable"): "**Phalanx**, async",
    ("dcp-async", "next until durable"): "DCP async_save",
}
STALLS = {"background": "**Phalanx**, async", "dcp-async": "DCP async_save"}
LOADS = {
    ("plain", "load"): "plain read",
    ("phalanx", "load"): "**Phalanx**, with checksums",
    ("torch", "load"): "torch.load",
    ("torch", "load mapped"): "torch.load(mmap=True), copied",
    ("safetensors", "load"): "safetensors load_file, copied",
    ("dcp", "load"): "DCP load",
}

HEAD = """\
# Saving and loading checkpoints

`benchmarks/checkpoint`: the weights of GPT-2 and AdamW's two moments of each, {gigabytes:.2f} GB in fp32;
{rounds} rounds, every side in new processes, in turns. Medians, with the least and the greatest; a ratio is
of the same round's. Seconds are those of the slowest rank; CPU time and extra memory, which is what was
resident at the peak above what was before (mapped files count), those of all ranks. Asynchronous saves are
a process's second ones, but for the memory that the first takes.
"""


def spread(values, form="{:.2f}"):
    median, least, greatest = (form.format(f(values)) for f in (statistics.median, min, max))
    return f"{median} ({least} – {greatest})"


def column(rounds, side, result, quantity="seconds"):
    return [found[side][result][quantity] for found in rounds]


def plain_seconds(rounds):
    """The faster of each round's two."""
    return list(map(min, column(rounds, "plain", "save"), column(rounds, "plain-allocated", "save")))


def row(*cells):
    return f"| {' | '.join(cells)} |"


def present(table, rounds):
    return [(*key, name) for key, name in table.items() if key[0] in rounds[0]]


def save_table(rounds):
    plain = plain_seconds(rounds)
    lines = [row("saved until durable", "s", "GB/s", "rate, of the faster plain write's", "CPU, s",
                 "extra MiB"), "|---|---|---|---|---|---|"]
    for side, result, name in present(SAVES, rounds):
        seconds = column(rounds, side, result)
        size = rounds[0]["plain"]["bytes"] / 1e9
        first = result.replace("next", "first")
        lines.append(row(name, spread(seconds), f"{size / statistics.median(seconds):.2f}",
                         spread([p / s for p, s in zip(plain, seconds)]),
                         f"{statistics.median(column(rounds, side, result, 'cpu_seconds')):.2f}",
                         f"{statistics.median(column(rounds, side, first, 'extra_mib')):.0f}"))
    return lines


def stall_table(rounds):
    lines = [row("the caller waits", "first time, s", "then, s"), "|---|---|---|"]
    for side, name in STALLS.items():
        lines.append(row(name, spread(column(rounds, side, "first stall")),
                         spread(column(rounds, side, "next stall"))))
    return lines


def load_table(rounds):
    lines = [row("loaded", "from disk, s", "from the page cache, s", "Phalanx's speed over its, cached",
                 "CPU, s, cached", "extra MiB"), "|---|---|---|---|---|---|"]
    mine = column(rounds, "phalanx", "load warm")
    for side, result, name in present(LOADS, rounds):
        warm = column(rounds, side, f"{result} warm")
        lines.append(row(name, spread(column(rounds, side, f"{result} cold")), spread(warm),
                         spread([w / m for w, m in zip(warm, mine)]),
                         f"{statistics.median(column(rounds, side, f'{result} warm', 'cpu_seconds')):.2f}",
                         f"{statistics.median(column(rounds, side, f'{result} warm', 'extra_mib')):.0f}"))
    return lines


def checksum_line(rounds):
    """Checksums of one process, whose state is all that is saved."""
    seconds = statistics.median(column(rounds, "phalanx", "checksums", "cpu_seconds"))
    cpu = {name: statistics.median(column(rounds, "phalanx", name, "cpu_seconds"))
           for name in ("save", "load warm")}
    rate = rounds[0]["phalanx"]["bytes"] / 1e9 / seconds
    shares = [f"{seconds / cpu[name]:.0%}" for name in ("save", "load warm")]
    return (f"Checksums (XXH3 of each 64 KiB) run at {rate:.1f} GB/s, {seconds:.2f} s of all: as much as "
            f"{shares[0]} of a save's CPU time, {shares[1]} of a load's.")


def training_lines(rounds):
    def of(name):
        return [found[name] for found in rounds]

    shares = [found["next stall"] / found["step"] for found in rounds]
    return [
        "## Training goes on", "",
        "GPT-2 (T 256, batch 1, one thread) with `checkpoint.async: true`; between the end of a step",
        "and the beginning of the next:", "",
        row("", "s"), "|---|---|",
        row("a step", spread(of("step"))),
        row("between steps without a save", spread(of("gap"), "{:.3f}")),
        row("with the first save", spread(of("first stall"))),
        row("with a later save", spread(of("next stall"))),
        row("the longest of a run", spread(of("greatest next stall"))),
        row("a step right after a save, which is written meanwhile", spread(of("step after a save"))),
        row("other steps", spread(of("other steps"))), "",
        f"A save stops training for {spread(shares)} of a step.", "",
    ]


def markdown(machine, rounds):
    cases = {case: found for case, found in rounds.items() if case in CASES}
    lines = []
    for case, found in cases.items():
        lines += [f"## {CASES[case]}", "", *save_table(found), "", *stall_table(found), "",
                  *load_table(found), ""]
        if case == "1":
            lines += [checksum_line(found), ""]
    if "training" in rounds:
        lines += training_lines(rounds["training"])
    sizes = [found[0]["plain"]["bytes"] / 1e9 for found in cases.values()] or [0]
    head = HEAD.format(gigabytes=sizes[0], rounds=max(map(len, rounds.values())))
    return "\n".join([head, *lines, "## Machine", "", *(f"- {k}: {v}" for k, v in machine.items()), ""])
