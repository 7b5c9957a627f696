# SPDX-License-Identifier: Apache-2.0
"""The programs of library.md learn, alone and as two ranks, and go on from their checkpoints."""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from tests.ports import free_port


def run(program, ranks, *arguments):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if ranks > 1:
        environment |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {}
              for rank in range(ranks)]
    processes = [subprocess.Popen([program, *arguments], env=environment | place, text=True,
                                  stdout=subprocess.PIPE) for place in places]
    output = "".join(process.communicate(timeout=60)[0] for process in processes)
    assert [process.returncode for process in processes] == [0] * ranks, output
    return output


def learn(programs):
    # A loss that nothing was learned for: of own_loop and own_join some 5, of the others 0.3.
    for (program, most), ranks in itertools.product(zip(programs, (0.5, 0.02, 0.02, 0.5)), (1, 2)):
        output = run(program, ranks)
        found = re.fullmatch(r"(\d) ranks, loss ([0-9.]+)\n", output)
        assert found and int(found[1]) == ranks, output
        assert float(found[2]) < most, output
        print(output, end="")


def go_on(program):
    """A loop that goes on from its checkpoints ends as one that did not stop, and on other ranks as well."""
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (1, 2):
            whole, parts = f"{folder}/whole_{ranks}", f"{folder}/parts_{ranks}"
            expected = run(program, ranks, whole, "22")
            assert run(program, ranks, parts, "12") != expected
            output = run(program, ranks, parts, "22")
            assert output == expected, output + expected
            left = sorted(os.listdir(parts))
            # The two newest, and the one that it came from.
            assert left == ["latest", "step-00000012", "step-00000020", "step-00000022"], left
            # One that is damaged is passed over.
            damaged = pathlib.Path(parts, "step-00000022/model.safetensors")
            damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
            output = run(program, ranks, parts, "22")
            assert "skipped step-00000022" in output and output.endswith(expected), output
        assert run(program, 1, f"{folder}/whole_2", "30").startswith("1 ranks, loss 0.0")


def main():
    *programs, replicas, checkpoint = sys.argv[1:]
    learn(programs)
    output = run(replicas, 1)
    assert re.fullmatch(r"2 replicas, loss 0\.0\d+\n", output), output
    go_on(checkpoint)


if __name__ == "__main__":
    main()
