// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace phalanx {

class Ranks;

/// Something that must be the same on all ranks, as text: one line for each thing in it.
struct Topic {
  std::string name;  ///< "the config": begins the sentence of a mismatch.
  std::string text;
};

/// Compares the topics over all ranks, which call it with the same names. Throws UserError on every
/// rank alike: the first rank that differs from rank 0, and the first line in which it does.
void require_agreement(const Ranks& ranks, const std::vector<Topic>& topics);

/// This process's program: a checksum of its file.
std::string describe_program();

}  // namespace phalanx
