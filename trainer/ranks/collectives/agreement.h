// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace phalanx {

class Ranks;

/// Something that must be the same on all ranks, as text: one line for each thing in it.
struct Topic {
  std::string name;  ///< "the config": begins the sentence of a mismatch.
  std::string text;
  /// Says more where the text differs and does not tell in what: compared in its place. Called
  /// then alone, on rank 0 and on the one that differs.
  std::function<std::string()> details = {};
};

/// Compares the topics over all ranks, which call it with the same names. Throws UserError on every
/// rank alike: the first rank that differs from rank 0, its host where that is another, and the
/// first line in which it does.
void require_agreement(const Ranks& ranks, const std::vector<Topic>& topics);

/// This process's program: a checksum of its file.
std::string describe_program();

}  // namespace phalanx
