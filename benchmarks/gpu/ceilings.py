# SPDX-License-Identifier: Apache-2.0
"""What the GPU itself reaches: a matrix product in bfloat16, a copy on the device."""

import json
import sys
from pathlib import Path

from outcome import require
from runner import Item

SECONDS = 30
PROBE = Path(__file__).absolute().parent / "ceilings_probe.py"


def ceilings(kit, report):
    size, megabytes = kit.size((8192, 4096), (128, 1))
    output = kit.run([sys.executable, str(PROBE), kit.device, str(size), str(megabytes)])
    figures = json.loads(output.strip().splitlines()[-1])
    report.note(**figures)
    require(all(value > 0 for value in figures.values()), "a ceiling of nothing")


ITEMS = [Item("ceilings.ceilings", "8192³ in bfloat16, and a copy of 4 GB", 30, ceilings,
              alone=True)]
