"""The programs of library.md learn, alone and as two ranks."""

import itertools
import os
import re
import subprocess
import sys

from tests.ports import free_port


def run(program, ranks):
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if ranks > 1:
        environment |= {"WORLD_SIZE": str(ranks), "LOCAL_WORLD_SIZE": str(ranks),
                        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    places = [{"RANK": str(rank), "LOCAL_RANK": str(rank)} if ranks > 1 else {}
              for rank in range(ranks)]
    processes = [subprocess.Popen([program], env=environment | place, text=True,
                                  stdout=subprocess.PIPE) for place in places]
    output = "".join(process.communicate(timeout=60)[0] for process in processes)
    assert [process.returncode for process in processes] == [0] * ranks, output
    return output


def main():
    # A loss that nothing was learned for: of own_loop some 5, of the others 0.3.
    programs = zip(sys.argv[1:], (0.5, 0.02, 0.02))
    for (program, most), ranks in itertools.product(programs, (1, 2)):
        output = run(program, ranks)
        found = re.fullmatch(r"(\d) ranks, loss ([0-9.]+)\n", output)
        assert found and int(found[1]) == ranks, output
        assert float(found[2]) < most, output
        print(output, end="")


if __name__ == "__main__":
    main()
