#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Stands in for bazelw where everything is built already: `bazelw build //:NAME` links the program of that
# name, which lies in `built` beside this script, into bazel-bin; it can do nothing else.
set -euo pipefail
here=$(dirname "$0")

if (($# != 2)) || [[ $1 != build || $2 != //:* || ! -x $here/built/${2#//:} ]]; then
  echo "bazelw $*: this test follows 'build //:NAME' only, of: $(ls "$here/built")" >&2
  exit 2
fi

mkdir -p bazel-bin
cp -P "$here/built/${2#//:}" bazel-bin/
