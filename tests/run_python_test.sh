#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_python_test.sh PYTHON_PATH_FILE TEST.py [ARGUMENT...]: see python_test.bzl.
# PYTHON_PATH_FILE holds folders for PYTHONPATH; "-" is none.
set -euo pipefail
# First, so that no package among those of the peers can stand for `tests`.
PYTHONPATH=$PWD
if [[ $1 != - ]]; then
  PYTHONPATH+=:$(<"$1")
fi
export PYTHONPATH OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
exec /usr/bin/python3 "${@:2}"
