# SPDX-License-Identifier: Apache-2.0
"""Kills or stops one of two ranks, and runs out of memory: checks how the run ends and what it prints."""

import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import two_ranks
from kit import config_of, fresh, gpt2, kept, shown, steps_of, write_config
from outcome import largest, require
from runner import Item

SECONDS = 150
GRACE_SECONDS = 20  # docs/faults.md promises 15; the rest is what a process with a GPU needs to end
POLL_SECONDS = 0.02
SAVED_EVERY, LOST_AFTER = 8, 11  # steps
SHOWN_LETTERS = 1500
REPEATED = 1e-4
MEMORY_SECONDS = 30
ADDRESS_SPACE = 8 << 20  # KiB, of a dry run


def timeout_seconds(kit):
    """The limit of a collective."""
    return kit.size(10, 3)


def endless(kit):
    return two_ranks.config_for(kit, two_ranks.RANKS, {
        "training": {"max_steps": 1_000_000}, "checkpoint": {"save_every_n_steps": SAVED_EVERY, "keep_last": 3},
        "parallel": {"timeout": f"{timeout_seconds(kit)}s"}})


def wait_for_step(run, step, processes):
    """Ends the item if a rank ends before."""
    while True:
        rows = steps_of(run)
        if rows and rows[-1]["step"] >= step:
            return
        require(all(process.poll() is None for process in processes), f"a rank ended before step {step}")
        time.sleep(POLL_SECONDS)


def errors_of(log):
    """The lines that a rank says from its error on: its own, the C++ runtime's, or c10d's ("[E1127 18:44:05")."""
    found = re.search(r"^(?:fatal|error|terminate|what\(\)|(?:\[rank\d+\]:)?\[[EF]\d{4} ).*", log,
                      re.MULTILINE | re.DOTALL)
    return (found[0] if found else log[-SHOWN_LETTERS:])[:SHOWN_LETTERS].strip().splitlines()


def first_error(said):
    return next((line for line in said if line.startswith("error")), said[0] if said else "")[:300]


def lose(kit, folder, how):
    """Sends rank 1 a signal once both have trained, and returns how rank 0 ended."""
    answer, run = two_ranks.backend(kit), folder / "run"
    _, processes = two_ranks.start_two(kit, fresh(folder), endless(kit), **two_ranks.variables_of(answer))
    with ThreadPoolExecutor(two_ranks.RANKS) as readers:
        outputs = [readers.submit(shown, process, f"[{rank}] ") for rank, process in enumerate(processes)]
        try:
            wait_for_step(run, LOST_AFTER, processes)
            processes[1].send_signal(how)
            began = time.monotonic()
            while processes[0].poll() is None and time.monotonic() - began < timeout_seconds(kit) + GRACE_SECONDS:
                time.sleep(POLL_SECONDS)
            seconds, code = time.monotonic() - began, processes[0].poll()
        finally:
            for process in processes:
                process.kill()
                process.wait()
        logs = [output.result() for output in outputs]
    return {"backend": answer["backend"], "code": code, "seconds": round(seconds, 1), "said": errors_of(logs[0]),
            "rows": steps_of(run), "saved": saved_steps(run)}


def saved_steps(run):
    return sorted(int(path.name.removeprefix("step-")) for path in (run / "checkpoints").glob("step-*")
                  if path.name.removeprefix("step-").isdigit())


def judge_loss_of_rank(kit, report, found):
    said = found["said"]
    report.note(backend=found["backend"], code=found["code"], seconds=found["seconds"], steps=len(found["rows"]),
                error=first_error(said), said=said)
    limit = timeout_seconds(kit) + GRACE_SECONDS
    require(found["code"] is not None, f"rank 0 still runs {limit} s after it has lost rank 1")
    require(found["code"] != 0, "rank 0 ended with 0")
    require("rank 1" in "\n".join(said), "rank 0 does not name rank 1")
    require(re.search(r"step \d+", "\n".join(said)), "rank 0 does not name the step")


def loss_by_kill(kit):
    return kept(kit.work / "killed.json", lambda: lose(kit, kit.work / "killed", signal.SIGKILL))


def killed(kit, report):
    judge_loss_of_rank(kit, report, loss_by_kill(kit))


def stopped(kit, report):
    judge_loss_of_rank(kit, report, lose(kit, kit.work / "stopped", signal.SIGSTOP))


def resume_after(kit, report):
    """Goes on from the last checkpoint, with the losses that the lost run had where it came further."""
    before = loss_by_kill(kit)
    require(before["rows"] and before["saved"], "the lost run has saved nothing")
    earlier = {row["step"]: row["loss"] for row in before["rows"]}
    last = max(earlier) + SAVED_EVERY
    config = two_ranks.merged(endless(kit), {"training": {"max_steps": last}})
    rows, logs = two_ranks.train_two(kit, kit.work / "killed", config,
                                     **two_ranks.variables_of(two_ranks.backend(kit)))
    resumed = re.search(r"^resumed +after step (\d+)", logs[0], re.MULTILINE)
    require(resumed, "it does not say after which step it goes on")
    begin = int(resumed[1])
    again = [(row["loss"], earlier[row["step"]]) for row in rows if row["step"] > begin and row["step"] in earlier]
    difference = largest(abs(a - b) / abs(b) for a, b in [*again, (1.0, 1.0)])
    report.note(backend=before["backend"], lost_after=max(earlier), resumed_after=begin, saved=before["saved"],
                steps_again=len(again), losses_differ_by=difference, last_loss=rows[-1]["loss"])
    require(begin in before["saved"] and begin + 2 * SAVED_EVERY > max(earlier),
            f"lost after step {max(earlier)} it goes on after step {begin}")
    require([row["step"] for row in rows] == [*range(1, last + 1)], "its log lacks steps")
    require(difference <= REPEATED, f"the steps after the checkpoint differ by {difference:.1e} when they are repeated")


def out_of_memory(kit, report):
    """A micro-batch that is too large: of a GPU's memory, or in a dry run of the address space."""
    folder = kit.work / "out-of-memory"
    model = gpt2(*kit.size((50257, 256, 8, 1024, 16), (1_000_000, 32, 2, 8, 2)))
    config = config_of(kit, model, 2, kit.size(6144, 128))
    config["task"]["loss"] = {"chunk": 0}  # all logits at once
    path = write_config(folder, config)
    command = [kit.program("trainer"), str(path), f"exp_dir={folder / 'run'}"]
    if kit.is_dry:
        command = ["bash", "-c", f'ulimit -v {ADDRESS_SPACE}; exec "$@"', "bash", *command]
        report.note(replaced="the GPU's memory, by ulimit")
    print("$", *command, flush=True)
    began = time.monotonic()
    process = kit.start(command, folder, kit.environment())
    output = shown(process)
    code, seconds = process.wait(), time.monotonic() - began
    said = errors_of(output)
    report.note(code=code, seconds=round(seconds, 1), error=first_error(said), said=said)
    require(code in (1, 2), f"it ended with {code}")
    require(seconds <= MEMORY_SECONDS, f"it ended after {seconds:.0f} s")
    promised = ["out of memory in step 1", "held on this rank:", "What needs less: "]
    lacking = [text for text in promised + ([] if kit.is_dry else ["cuda:0, now:", "free, of"]) if text not in output]
    require(not lacking, f"it does not say: {'; '.join(lacking)}")


ITEMS = [
    Item("failures.killed", "rank 1 is killed: rank 0 ends and names it", 60, killed),
    Item("failures.stopped", "rank 1 stops: rank 0 ends after its timeout and names it", 75, stopped),
    Item("failures.resume-after", "the run goes on from its last checkpoint", 60, resume_after),
    # Alone: it takes what memory the GPU has.
    Item("failures.out-of-memory", "out of memory: the run says what held the memory and what needs less", 45, out_of_memory,
         alone=True),
]
