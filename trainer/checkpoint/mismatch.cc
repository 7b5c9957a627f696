#include "trainer/checkpoint/mismatch.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <optional>

#include "trainer/checkpoint/safetensors.h"
#include "trainer/config/nearest.h"

namespace phalanx {
namespace {

// A model that does not fit at all would fill the screen.
constexpr size_t kMostLines = 10;

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
    const auto near = lines.size() < kMostLines ? nearest(name, candidates) : std::nullopt;
    lines.push_back(
        fmt::format("{} '{}'{}", text, name, near ? fmt::format(" (nearest: '{}')", *near) : ""));
  }
  return lines;
}

std::vector<std::string> differing(const Sides& there, const Sides& here, std::string_view part) {
  std::vector<std::string> lines;
  for (const auto& [name, side] : here) {
    const auto other = there.find(name);
    if (other == there.end() || other->second == side) continue;
    lines.push_back(fmt::format("{} tensor '{}' is {} in the checkpoint, {} here", part, name,
                                describe(other->second), describe(side)));
  }
  return lines;
}

void append(std::vector<std::string>& lines, std::vector<std::string> more) {
  const size_t surplus = more.size() > kMostLines ? more.size() - kMostLines : 0;
  if (surplus > 0) {
    more.resize(kMostLines);
    more.push_back(fmt::format("and {} more", surplus));
  }
  lines.insert(lines.end(), more.begin(), more.end());
}

}  // namespace

std::vector<std::string> find_mismatches(const Manifest& manifest, std::string_view part,
                                         std::span<const ShardedTensorView> views) {
  Sides there;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (tensor.part == part) there[tensor.name] = {tensor.dtype, tensor.shape};
  }
  Sides here;
  for (const ShardedTensorView& view : views) {
    require_sound(view);
    here[view.name] = {view.dtype, view.shape};
  }
  std::vector<std::string> lines;
  append(lines, only_in(here, there, fmt::format("missing {} tensor", part)));
  append(lines, only_in(there, here, fmt::format("unexpected {} tensor", part)));
  append(lines, differing(there, here, part));
  return lines;
}

}  // namespace phalanx
