# SPDX-License-Identifier: Apache-2.0
"""Work that does not wait for what it needs, and memory that is used after it was given back."""

import two_ranks
from findings import SANITIZER, errors_in, findings, keep_output
from kit import config_of, gpt2, largest_difference, shown
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


def judge(kit, report, item, outputs, end):
    """Notes what was found; `end` is how the program ended, where it failed."""
    keep_output(kit, item, outputs)
    if kit.is_dry:
        report.note(replaced="compute-sanitizer")
    counts, found = [errors_in(output) for output in outputs], findings("\n".join(outputs))
    report.note(errors=counts, **({"findings": found} if found else {}))
    if any(counts):
        most = next(iter(found.items()), ("a kind that the script does not know", sum(filter(None, counts))))
        raise Ended(FAIL, f"compute-sanitizer counts {counts} errors, {most[1]} of them {most[0]}; {SANITIZER} has all")
    if end:
        raise end
    require(kit.is_dry or counts == [0] * len(outputs), f"compute-sanitizer counts {counts} errors")


def tiny(kit, batch_size):
    return config_of(kit, gpt2(256, 32, 2, 32, 2), 2, batch_size) | {"parallel": {
        "device": kit.device, "timeout": "60s", "join_timeout": "60s"}}


def stream_ordered(kit, report):
    """Two ranks in FSDP, with CUDA's own allocator, which knows the order of streams."""
    answer, folder = two_ranks.backend(kit), kit.work / "stream-ordered"
    report.note(backend=answer["backend"])
    config, end = two_ranks.merged(tiny(kit, 2), two_ranks.FULL), None
    try:
        two_ranks.train_two(kit, folder, config, prefix=sanitizer(kit, "--track-stream-ordered-races", "all"),
                            PYTORCH_ALLOC_CONF="backend:cudaMallocAsync", **two_ranks.variables_of(answer))
    except Ended as ended:
        end = ended
    logs = [log.read_text(errors="replace") for log in sorted(folder.glob("rank*.log"))]
    judge(kit, report, "races.stream-ordered", logs, end)


def memory(kit, report):
    """One rank, each tensor in memory of its own, so that its bounds are known."""
    folder = kit.work / "memory"
    config, end = two_ranks.write_config(folder, tiny(kit, 2)), None
    command = [*sanitizer(kit), kit.program("trainer"), str(config), f"exp_dir={folder / 'run'}"]
    print("$", *command, flush=True)
    process = kit.start(command, folder, kit.environment(PYTORCH_NO_CUDA_MEMORY_CACHING=1))
    output = shown(process)
    try:
        kit.require_success(command, process.wait(), output)
    except Ended as ended:
        end = ended
    judge(kit, report, "races.memory", [output], end)


ITEMS = [
    Item("races.blocking", "FULL_SHARD with launches that block: the same losses", 40, blocking),
    Item("races.stream-ordered", "compute-sanitizer on two ranks in FSDP: races of streams", 60, stream_ordered),
    Item("races.memory", "compute-sanitizer on one rank: bounds", 50, memory),
]
