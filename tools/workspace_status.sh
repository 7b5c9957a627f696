#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What Bazel asks before a build (.bazelrc, --workspace_status_command): the commit of the sources,
# with -dirty where they were changed since, for `trainer --version`. No line where git does not know.
commit=$(GIT_OPTIONAL_LOCKS=0 git describe --always --dirty --abbrev=7 --exclude='*' 2>/dev/null) &&
  echo "STABLE_PHALANX_COMMIT $commit"
exit 0
