// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/load/mismatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "trainer/api/part_names.h"
#include "trainer/base/nearest.h"
#include "trainer/checkpoint/format/safetensors.h"

namespace phalanx {
namespace {

// A model that does not fit at all would fill the screen.
constexpr size_t kMaxLines = 10;

struct Side {
  at::ScalarType dtype;
  std::vector<int64_t> shape;

  bool operator==(const Side&) const = default;
};
using Sides = std::map<std::string, Side>;

std::string describe(const Side& side) {
  return fmt::format("{} [{}]", safetensors_dtype_name(side.dtype), fmt::join(side.shape, ", "));
}

std::vector<std::string> names_of(const Sides& sides) {
  std::vector<std::string> names;
  for (const auto& [name, side] : sides) names.push_back(name);
  return names;
}

// The names that only `left` has, each with the nearest of `right`.
std::vector<std::string> only_in(const Sides& left, const Sides& right, std::string_view text) {
  const std::vector<std::string> candidates = names_of(right);
  std::vector<std::string> lines;
  for (const auto& [name, side] : left) {
    if (right.contains(name)) continue;
    // Finding the nearest of thousands of names is slow, and only the first lines are shown.
    const auto near = lines.size() < kMaxLines ? nearest(name, candidates) : std::nullopt;
    lines.push_back(
        fmt::format("{} '{}'{}", text, name, near ? fmt::format(" (nearest: '{}')", *near) : ""));
  }
  return lines;
}

std::vector<std::string> shortened(std::vector<std::string> lines) {
  const size_t surplus = lines.size() > kMaxLines ? lines.size() - kMaxLines : 0;
  if (surplus > 0) {
    lines.resize(kMaxLines);
    lines.push_back(fmt::format("and {} more", surplus));
  }
  return lines;
}

// "exp_avg" of "h.0.weight.exp_avg": what an optimizer keeps of each parameter.
std::string state_of(const std::string& name) { return name.substr(name.rfind('.') + 1); }

// Of an optimizer of another class a line for each tensor would be as many as the model has, and
// the first of them those of one parameter: here a line names a state, with those that it is of.
std::vector<std::string> states_only_in(const Sides& left, const Sides& right,
                                        std::string_view text) {
  std::map<std::string, std::vector<std::string>> tensors;  // by state
  for (const auto& [name, side] : left) {
    if (!right.contains(name)) tensors[state_of(name)].push_back(name);
  }
  std::vector<std::string> lines;
  for (const auto& [state, names] : tensors) {
    const std::string others =
        names.size() == 1 ? "" : fmt::format(" to '{}', {} in all", names.back(), names.size());
    lines.push_back(fmt::format("{}s '{}': '{}'{}", text, state, names.front(), others));
  }
  return lines;
}

std::vector<std::string> one_sided(const Sides& left, const Sides& right, std::string_view part,
                                   std::string_view which) {
  const std::string text = fmt::format("{} {} tensor", which, part);
  std::vector<std::string> lines = only_in(left, right, text);
  const bool is_many = part == kOptimizerPart && lines.size() > kMaxLines;
  return shortened(is_many ? states_only_in(left, right, text) : std::move(lines));
}

// Tensors of the same name that differ in what `is_other` compares.
template <class Compare>
std::vector<std::string> differing(const Sides& there, const Sides& here, std::string_view part,
                                   const Compare& is_other) {
  std::vector<std::string> lines;
  for (const auto& [name, side] : here) {
    const auto other = there.find(name);
    if (other == there.end() || !is_other(other->second, side)) continue;
    lines.push_back(fmt::format("{} tensor '{}' is {} in the checkpoint, {} here", part, name,
                                describe(other->second), describe(side)));
  }
  return lines;
}

}  // namespace

std::vector<std::string> Mismatches::lines() const {
  std::vector<std::string> all;
  for (const auto* some : {&missing, &unexpected, &shapes, &dtypes}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

TensorCounts count_tensors(const Contents& contents, std::string_view part,
                           std::span<const ShardedTensorView> views) {
  std::set<std::string_view> here;
  for (const ShardedTensorView& view : views) here.insert(view.name);
  TensorCounts counts;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == part) ++(here.contains(tensor.name) ? counts.shared : counts.unexpected);
  }
  counts.missing = std::ssize(here) - counts.shared;
  return counts;
}

Mismatches find_mismatches(const Contents& contents, std::string_view part,
                           std::span<const ShardedTensorView> views) {
  Sides there;
  for (const ManifestTensor& tensor : contents.tensors) {
    if (tensor.part == part) there[tensor.name] = {tensor.dtype, tensor.shape};
  }
  Sides here;
  for (const ShardedTensorView& view : views) {
    require_sound(view);
    here[view.name] = {view.dtype, view.shape};
  }
  const auto other_shape = [](const Side& a, const Side& b) { return a.shape != b.shape; };
  const auto other_dtype = [](const Side& a, const Side& b) {
    return a.shape == b.shape && a.dtype != b.dtype;
  };
  return {.missing = one_sided(here, there, part, "missing"),
          .unexpected = one_sided(there, here, part, "unexpected"),
          .shapes = shortened(differing(there, here, part, other_shape)),
          .dtypes = shortened(differing(there, here, part, other_dtype))};
}

}  // namespace phalanx
