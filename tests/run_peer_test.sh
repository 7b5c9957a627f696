#!/usr/bin/env bash
# run_peer_test.sh PYTHON_PATH_FILE TEST.py [ARGUMENT...]: see peers.bzl.
set -euo pipefail
PYTHONPATH=$(<"$1"):$PWD
export PYTHONPATH OMP_NUM_THREADS=1 PYTHONUNBUFFERED=1
exec /usr/bin/python3 "${@:2}"
