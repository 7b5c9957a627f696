#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# follow_document.sh DOCUMENT.md EXTRACT.py BAZELW [BUILT_BAZELW.sh PROGRAM ...]: does in a folder outside
# the tree what a document tells its reader: writes the files it shows, then runs the commands it shows
# (file=commands.sh), with PHALANX replaced by this checkout, the folder of BAZELW. A metrics file of a run
# must come out of it.
#
# With PROGRAMs, which are built from the document's files already (document_repository.bzl), PHALANX is a
# folder whose bazelw is BUILT_BAZELW.sh: the commands find what they build, and Bazel is not needed.
#
# The variable TRAINER is the path of a trainer, if the document runs one before it builds its own.
set -euo pipefail
document=$(readlink -f "$1")
extract=$(readlink -f "$2")
bazelw=$(readlink -f "$3")
built_bazelw=${4:-}
programs=("${@:5}")
trainer=${TRAINER:+$(readlink -f "$TRAINER")}
# Bazel would take this variable for its own.
unset TEST_TMPDIR
folder=$(mktemp -d)
variables=(PATH=/usr/bin:/bin)

# The reader's commands call bazelw, which calls this: Bazel with a server and an output base of its own,
# so that it does not wait for the Bazel that runs this test.
use_bazel() {
  phalanx=$(dirname "$bazelw")
  local bazel=${BAZEL:-/usr/bin/bazel}
  [[ -x $bazel ]] || bazel=$(command -v bazel)
  cat >"$folder/bazel" <<TXT
#!/bin/sh
exec $bazel --output_base=$folder/output_base --max_idle_secs=60 "\$@"
TXT
  chmod +x "$folder/bazel"
  variables+=("BAZEL=$folder/bazel")
  local name
  for name in HOME PHALANX_TORCH XDG_CACHE_HOME; do
    [[ -z ${!name:-} ]] || variables+=("$name=${!name}")
  done
}

use_programs() {
  phalanx=$folder/phalanx
  mkdir -p "$phalanx/built"
  cp "$built_bazelw" "$phalanx/bazelw"
  local program
  for program in "${programs[@]}"; do
    ln -s "$(readlink -f "$program")" "$phalanx/built/"
  done
}

# What is Phalanx's own must have come out of the cache: "700 processes: 690 remote cache hit, 10 local."
require_little_work() {
  local most=60 ran
  ran=$(sed -nE 's/.*INFO: .*processes.* ([0-9]+) local.*/\1/p' "$folder/output" | paste -sd+)
  if [[ ! $ran ]]; then
    echo "Bazel said nowhere how many processes ran" >&2
    exit 1
  fi
  echo "processes that ran here: $ran"
  if ((ran > most)); then
    echo "more than $most processes ran: Phalanx was compiled anew" >&2
    exit 1
  fi
}

finish() {
  if [[ -x $folder/bazel ]]; then
    (cd "$folder/project" && "$folder/bazel" shutdown) || true
  fi
  chmod -R u+w "$folder"
  rm -rf "$folder"
}
trap finish EXIT

if [[ $built_bazelw ]]; then use_programs; else use_bazel; fi
mkdir "$folder/project"
cd "$folder/project"
echo "The document's files:"
/usr/bin/python3 "$extract" "$document" . "PHALANX=$phalanx" ${trainer:+"TRAINER=$trainer"}

echo "The document's commands:"
cat commands.sh
env -i "${variables[@]}" bash -euo pipefail commands.sh 2>&1 | tee "$folder/output"
[[ $built_bazelw ]] || require_little_work

metrics=$(find runs -path '*/logs/metrics.jsonl' -size +0)
if [[ -z $metrics ]]; then
  echo "no run wrote logs/metrics.jsonl under $PWD/runs" >&2
  exit 1
fi
head -n 3 $metrics
