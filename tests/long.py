# SPDX-License-Identifier: Apache-2.0
"""Tests whose cases take hours run a sample of them, and all with `./bazelw test --config=long`."""

import os


def is_long():
    """Whether all is to be run: .bazelrc's config `long` sets the variable."""
    return os.environ.get("PHALANX_LONG") == "1"


def tell_sample(done, whole, what):
    """Prints how much of it a test runs."""
    print(f"all {whole} {what}" if done >= whole else
          f"a sample: {done} of {whole} {what}; --config=long runs more", flush=True)
