// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace phalanx {

/// A number of a JSON file as the package tokenizers reads it, given the nearest double. Its parser
/// rounds twice and so may be one bit off, which decides between ways to cut a text that are
/// equally likely.
double score_number(double nearest);

}  // namespace phalanx
