#!/usr/bin/env bash
# follow_document.sh DOCUMENT.md EXTRACT.py WORKSPACE: does in a folder outside the tree what a document
# tells its reader: writes the files it shows, then runs the commands it shows (file=commands.sh), with
# PHALANX replaced by this checkout. A metrics file of a run must come out of it.
set -euo pipefail
document=$(readlink -f "$1")
extract=$(readlink -f "$2")
phalanx=$(dirname "$(readlink -f "$3")")
# Bazel would take this variable for its own.
unset TEST_TMPDIR
folder=$(mktemp -d)

# The reader's commands call bazelw, which calls this: Bazel with a server and an output base of its own,
# so that it does not wait for the Bazel that runs this test.
cat >"$folder/bazel" <<TXT
#!/bin/sh
exec /usr/bin/bazel --output_base=$folder/output_base --max_idle_secs=60 "\$@"
TXT
chmod +x "$folder/bazel"

finish() {
  (cd "$folder/project" && "$folder/bazel" shutdown) || true
  chmod -R u+w "$folder"
  rm -rf "$folder"
}
trap finish EXIT

mkdir "$folder/project"
cd "$folder/project"
echo "The document's files:"
/usr/bin/python3 "$extract" "$document" . "PHALANX=$phalanx"

echo "The document's commands:"
cat commands.sh
variables=(PATH=/usr/bin:/bin "HOME=$HOME" "BAZEL=$folder/bazel")
for name in XDG_CACHE_HOME PHALANX_TORCH; do
  [[ -z ${!name:-} ]] || variables+=("$name=${!name}")
done
env -i "${variables[@]}" bash -euo pipefail commands.sh

metrics=$(find runs -path '*/logs/metrics.jsonl' -size +0)
if [[ -z $metrics ]]; then
  echo "no run wrote logs/metrics.jsonl under $PWD/runs" >&2
  exit 1
fi
head -n 3 $metrics
