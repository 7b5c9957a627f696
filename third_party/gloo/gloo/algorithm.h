// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stand-in, see ../BUILD: c10d includes it and uses nothing of it.
