// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// Number of edits (insert, delete, replace, swap of two neighbours) that turn `a` into `b`,
/// letters compared without case: the optimal string alignment form of the Damerau-Levenshtein
/// distance.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// `candidates` in the order of their distance to `name`; equally near ones keep their order.
std::vector<std::string> by_nearness(std::string_view name, std::vector<std::string> candidates);

/// The candidate that `name` is probably a misspelling of, or nothing when none is close: at most
/// a third of the letters, and at least one, may differ; a candidate that `name` begins or that
/// begins with `name` counts as close from three letters on.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string>& candidates);

/// "unknown optimizer 'adamw2'; did you mean 'adamw'? There are: adamw, adam, sgd": what a registry
/// says of a name that it lacks, nearest first; without the question where none is close.
std::string unknown_name(std::string_view kind, std::string_view name,
                         std::vector<std::string> candidates);

/// The same of a class that registers itself by its name: where no other name is close, it may not
/// be linked.
std::string unknown_class(std::string_view kind, std::string_view name,
                          const std::vector<std::string>& candidates);

}  // namespace phalanx
