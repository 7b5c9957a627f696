// SPDX-License-Identifier: Apache-2.0
#include "trainer/step/batch_look.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "trainer/base/unsigned_nan.h"

namespace phalanx {
namespace {

constexpr size_t kMostTensors = 16;
constexpr size_t kMostSamples = 3;

bool is_integral(const at::Tensor& tensor) {
  return at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false);
}

// Its values, one after the other, as integers or as floating-point numbers.
at::Tensor values_of(const at::Tensor& tensor) {
  const at::ScalarType type = tensor.is_floating_point() ? at::kDouble : at::kLong;
  return tensor.detach().to(at::kCPU, type).contiguous();
}

template <class Value>
std::pair<const Value*, const Value*> range_of(const at::Tensor& values) {
  const Value* const first = values.const_data_ptr<Value>();
  return {first, first + values.numel()};
}

std::string text_of(int64_t value) { return fmt::format("{}", value); }
std::string text_of(double value) { return fmt::format("{}", unsigned_nan(value)); }

std::string extent_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || tensor.is_complex() || tensor.scalar_type() == at::kBool) return "";
  const at::Tensor values = values_of(tensor);
  if (is_integral(tensor)) {
    const auto [first, end] = range_of<int64_t>(values);
    const auto [least, most] = std::minmax_element(first, end);
    return fmt::format(", from {} to {}", *least, *most);
  }
  double least = std::numeric_limits<double>::infinity();
  double most = -least;
  int64_t finite = 0;
  const auto [first, end] = range_of<double>(values);
  std::for_each(first, end, [&](double value) {
    if (!std::isfinite(value)) return;
    ++finite;
    least = std::min(least, value);
    most = std::max(most, value);
  });
  const std::string others = finite == values.numel()
                                 ? ""
                                 : fmt::format(", {} of {} values are not finite",
                                               values.numel() - finite, values.numel());
  return finite == 0 ? others : fmt::format(", from {:.6g} to {:.6g}{}", least, most, others);
}

// Whether all that is not finite is minus infinity, beside nothing but 0.
bool is_mask(const at::Tensor& values) {
  const auto [first, end] = range_of<double>(values);
  return std::all_of(first, end, [](double value) {
    return value == 0 || value == -std::numeric_limits<double>::infinity();
  });
}

// "[3, 1]" behind the name: the place within a sample's part of a tensor.
std::string place_text(const at::Tensor& tensor, int64_t place, int64_t first_dimension) {
  std::vector<int64_t> places;
  for (int64_t dimension = tensor.dim() - 1; dimension >= first_dimension; --dimension) {
    places.insert(places.begin(), place % tensor.size(dimension));
    place /= tensor.size(dimension);
  }
  return places.empty() ? "" : fmt::format("[{}]", fmt::join(places, ", "));
}

std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors) {
  for (NamedTensor& named : tensors) named.tensor = named.tensor.to(at::kCPU);
  return tensors;
}

}  // namespace

std::vector<NamedTensor> named_tensors(const Batch& batch) {
  // Batch::tensors is there to move them, which this does not.
  const std::vector<at::Tensor*> tensors = const_cast<Batch&>(batch).tensors();
  const std::vector<std::string_view> names = batch.tensor_names();
  std::vector<NamedTensor> named;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    named.push_back({.name = i < names.size() ? std::string(names[i]) : fmt::format("tensor {}", i),
                     .tensor = *tensors[i]});
  }
  return named;
}

std::string shape_of(const at::Tensor& tensor) {
  return fmt::format("{} [{}]", c10::getDtypeNames(tensor.scalar_type()).first,
                     fmt::join(tensor.sizes(), ", "));
}

BatchLook::BatchLook(const Batch& batch, const KnownSamples& samples)
    : numbers_(batch.sample_numbers), rows_(batch.samples), samples_(samples) {
  try {
    tensors_ = on_host(named_tensors(batch));
  } catch (const std::exception&) {
    if (const auto again = samples.read_again(numbers_)) tensors_ = named_tensors(*again);
  }
}

std::vector<std::string> BatchLook::lines() const {
  std::vector<std::string> lines;
  for (const auto& [name, tensor] : tensors_) {
    if (lines.size() == kMostTensors) {
      lines.push_back(fmt::format("and {} more tensors", tensors_.size() - kMostTensors));
      break;
    }
    lines.push_back(fmt::format("{}: {}{}", name, shape_of(tensor), extent_of(tensor)));
  }
  if (!numbers_.empty()) {
    lines.push_back(samples_.describe(
        numbers_.front(), numbers_.size() == 1 ? "is its sample" : "is the first of its samples"));
  }
  return lines;
}

std::optional<int64_t> BatchLook::row_of(const at::Tensor& tensor, int64_t place) const {
  if (tensor.dim() == 0 || tensor.size(0) != rows_) return std::nullopt;
  return place / (tensor.numel() / rows_);
}

template <class Value, class IsBad>
void BatchLook::find(const NamedTensor& named, const IsBad& is_bad,
                     std::vector<BadValue>& found) const {
  const at::Tensor values = values_of(named.tensor);
  const auto [first, end] = range_of<Value>(values);
  std::optional<int64_t> last;  // The row that one was found of.
  for (const Value* value = first; value != end; ++value) {
    if (!is_bad(*value)) continue;
    const auto place = static_cast<int64_t>(value - first);
    const auto row = row_of(named.tensor, place);
    if (row && row == last) continue;
    last = row;
    found.push_back(
        {.row = row,
         .text = fmt::format("{}{} is {}", named.name, place_text(named.tensor, place, row ? 1 : 0),
                             text_of(*value))});
    if (!row) return;
  }
}

std::string BatchLook::words_of(const BadValue& value) const {
  if (!value.row) return value.text;
  const auto row = static_cast<size_t>(*value.row);
  if (row < numbers_.size()) return samples_.describe(numbers_[row], value.text);
  return fmt::format("row {} of the micro-batch: {}", row, value.text);
}

std::vector<std::string> BatchLook::words_of(const std::vector<BadValue>& values) const {
  std::vector<std::string> lines;
  std::set<std::optional<int64_t>> rows;
  for (const BadValue& value : values) {
    if (!rows.insert(value.row).second || rows.size() > kMostSamples) continue;
    lines.push_back(words_of(value));
  }
  if (rows.size() > kMostSamples) {
    lines.push_back(fmt::format("and {} more", rows.size() - kMostSamples));
  }
  return lines;
}

std::vector<std::string> BatchLook::nonfinite_samples() const {
  std::vector<BadValue> found;
  for (const NamedTensor& named : tensors_) {
    if (!named.tensor.is_floating_point() || is_mask(values_of(named.tensor))) continue;
    find<double>(
        named, [](double value) { return !std::isfinite(value); }, found);
  }
  return words_of(found);
}

std::vector<std::string> BatchLook::samples_beyond(const IndexRange& range) const {
  std::set<int64_t> beyond;
  const at::Tensor indices = values_of(range.indices);
  const auto [first, end] = range_of<int64_t>(indices);
  std::for_each(first, end, [&](int64_t index) {
    if ((index < range.lowest || index >= range.limit) && index != range.ignored) {
      beyond.insert(index);
    }
  });
  const bool is_one_of_them = std::ranges::any_of(
      tensors_, [&](const auto& named) { return named.tensor.is_alias_of(range.indices); });
  std::vector<BadValue> found;
  for (const NamedTensor& named : tensors_) {
    // What the task has made of a tensor is known by its values alone.
    if (!is_integral(named.tensor)) continue;
    if (is_one_of_them && !named.tensor.is_alias_of(range.indices)) continue;
    find<int64_t>(
        named, [&](int64_t value) { return beyond.contains(value); }, found);
  }
  for (BadValue& value : found) {
    value.text +=
        fmt::format(", but {} takes {} to {}", range.operation, range.lowest, range.limit - 1);
  }
  return words_of(found);
}

}  // namespace phalanx
