#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for bazelw where everything is built already: `bazelw build //:NAME` links the program of that
# name, which lies in `built` beside this script, into bazel-bin; it can do nothing else. The workspace's
# .bazelrc must be a part of Phalanx's own, which lies there too: the program was compiled by that one.
set -euo pipefail
here=$(dirname "$0")

if (($# != 2)) || [[ $1 != build || $2 != //:* || ! -x $here/built/${2#//:} ]]; then
  echo "bazelw $*: this test follows 'build //:NAME' only, of: $(ls "$here/built")" >&2
  exit 2
fi

while read -r line; do
  if ! grep -Fxq -- "$line" "$here/.bazelrc"; then
    echo "$PWD/.bazelrc has a line that is not in Phalanx's own: $line" >&2
    exit 2
  fi
done <.bazelrc

mkdir -p bazel-bin
cp -P "$here/built/${2#//:}" bazel-bin/
