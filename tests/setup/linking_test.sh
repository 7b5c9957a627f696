#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# linking_test.sh BINARY: a binary of ours needs LibTorch and the C and C++ run-time libraries, and no
# other shared object; a copy of it runs from elsewhere with an empty environment.
set -euo pipefail
allowed=' libtorch_cpu.so libc10.so libstdc++.so.6 libm.so.6 libgcc_s.so.1 libc.so.6 ld-linux-x86-64.so.2 '
for library in $(readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
  echo "needs $library"
  if [[ $allowed != *" $library "* ]]; then
    echo "$library is not to be needed: third-party code is linked statically" >&2
    exit 1
  fi
done
cp "$1" "$TEST_TMPDIR/copy"
cd /
env -i "$TEST_TMPDIR/copy"
