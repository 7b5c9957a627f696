// SPDX-License-Identifier: Apache-2.0
#include "trainer/plan/largest_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "trainer/api/parameters.h"
#include "trainer/config/tree/scalar.h"

namespace phalanx {
namespace {

// A field may be a part of a size, such as the width of one head: it is not found then.
std::vector<std::string> fields_with_sizes(at::IntArrayRef sizes, const config::Node& section) {
  std::vector<std::string> fields;
  for (const config::Entry& entry : section.entries) {
    const bool is_size = entry.value.type == config::ScalarType::integer &&
                         std::any_of(sizes.begin(), sizes.end(), [&](int64_t size) {
                           return size > 1 && entry.value.text == std::to_string(size);
                         });
    if (is_size) fields.push_back(config::join_path("model", entry.key));
  }
  return fields;
}

constexpr std::size_t kShownSizes = 3;
constexpr double kMebibyte = 1024.0 * 1024.0;

}  // namespace

std::string largest_sizes(const config::Node& section) {
  std::vector<std::pair<int64_t, std::string>> sizes;
  for (const config::Entry& entry : section.entries) {
    if (entry.value.type != config::ScalarType::integer) continue;
    const int64_t size = config::parse_integer(entry.value.text).value.value_or(0);
    sizes.emplace_back(size, fmt::format("model.{} {}", entry.key, size));
  }
  std::stable_sort(sizes.begin(), sizes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> texts;
  for (const auto& [size, text] : sizes) {
    if (texts.size() < kShownSizes) texts.push_back(text);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string largest_tensor(ModelBase& model, const config::Node& section, bool is_double) {
  const std::vector<NamedParameter> parameters = named_parameters(model);
  const auto largest = std::max_element(parameters.begin(), parameters.end(),
                                        [](const NamedParameter& a, const NamedParameter& b) {
                                          return a.tensor.numel() < b.tensor.numel();
                                        });
  if (largest == parameters.end()) return {};
  const at::IntArrayRef sizes = largest->tensor.sizes();
  const std::vector<std::string> fields = fields_with_sizes(sizes, section);
  const auto bytes =
      static_cast<double>(is_double ? sizeof(double) : largest->tensor.element_size());
  return fmt::format("the largest tensor is '{}', [{}], {:.1f} MiB{}", largest->name,
                     fmt::join(sizes, ", "),
                     static_cast<double>(largest->tensor.numel()) * bytes / kMebibyte,
                     fields.empty() ? "" : fmt::format(" ({})", fmt::join(fields, ", ")));
}

}  // namespace phalanx
