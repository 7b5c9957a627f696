# SPDX-License-Identifier: Apache-2.0
"""Work that does not wait for what it needs, and memory that is used after it was given back."""

import re

import two_ranks
from kit import config_of, gpt2, largest_difference
from outcome import FAIL, Ended, require
from runner import Item

SECONDS = 115
ROUNDING = 1e-5  # of a loss: kernels that add in no fixed order
ERRORS_FOUND = 86  # compute-sanitizer's exit code


def blocking(kit, report):
    """With each launch waited for, nothing can race: other losses than without are a race."""
    answer = two_ranks.backend(kit)
    expected = two_ranks.losses_of_two_ranks(kit, "full-shard")
    found, _ = two_ranks.train_two(
        kit, kit.work / "blocking", two_ranks.config_for(kit, 2, two_ranks.CASES["full-shard"]),
        CUDA_LAUNCH_BLOCKING=1, **two_ranks.variables_of(answer))
    difference = largest_difference(found, expected)
    report.note(backend=answer["backend"], losses_differ_by=difference)
    require(difference <= ROUNDING, f"losses differ by {difference:.1e} from those without waiting")


def sanitizer(kit, *options):
    return kit.under("compute-sanitizer", "--tool", "memcheck", "--report-api-errors", "no", "--error-exitcode",
                     str(ERRORS_FOUND), *options)


def errors_in(output):
    """What compute-sanitizer counts; None where it says nothing."""
    counts = re.findall(r"ERROR SUMMARY: (\d+) error", output)
    return sum(map(int, counts)) if counts else None


def require_clean(kit, report, outputs):
    counts = [errors_in(output) for output in outputs]
    report.note(errors=counts, **({"replaced": "compute-sanitizer"} if kit.is_dry else {}))
    require(kit.is_dry or counts == [0] * len(outputs), f"compute-sanitizer counts {counts} errors")


def tiny(kit, batch_size):
    return config_of(kit, gpt2(256, 32, 2, 32, 2), 2, batch_size) | {"parallel": {
        "device": kit.device, "timeout": "60s", "join_timeout": "60s"}}


def stream_ordered(kit, report):
    """Two ranks in FSDP, with CUDA's own allocator, which knows the order of streams."""
    answer = two_ranks.backend(kit)
    report.note(backend=answer["backend"])
    config = two_ranks.merged(tiny(kit, 2), two_ranks.FULL)
    try:
        _, logs = two_ranks.train_two(
            kit, kit.work / "stream-ordered", config, prefix=sanitizer(kit, "--track-stream-ordered-races", "all"),
            PYTORCH_ALLOC_CONF="backend:cudaMallocAsync", **two_ranks.variables_of(answer))
    except Ended as end:
        raise with_count(end, kit.work / "stream-ordered") from end
    require_clean(kit, report, logs)


def with_count(end, folder):
    """An end that says how many errors were found, where that is why."""
    counts = [errors_in(log.read_text(errors="replace")) for log in sorted(folder.glob("rank*.log"))]
    return Ended(FAIL, f"compute-sanitizer counts {counts} errors") if any(counts) else end


def memory(kit, report):
    """One rank, each tensor in memory of its own, so that its bounds are known."""
    path = kit.work / "memory"
    prefix = sanitizer(kit)
    path.mkdir()
    config = two_ranks.write_config(path, tiny(kit, 2))
    output = kit.run([*prefix, kit.program("trainer"), str(config), f"exp_dir={path / 'run'}"],
                     PYTORCH_NO_CUDA_MEMORY_CACHING=1)
    require_clean(kit, report, [output])


ITEMS = [
    Item("races.blocking", "FULL_SHARD with launches that block: the same losses", 40, blocking),
    Item("races.stream-ordered", "compute-sanitizer on two ranks in FSDP: races of streams", 60, stream_ordered),
    Item("races.memory", "compute-sanitizer on one rank: bounds", 50, memory),
]
