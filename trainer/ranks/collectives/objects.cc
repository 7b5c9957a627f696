// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/collectives/objects.h"

#include <fmt/format.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>

#include "trainer/ranks/collectives/numbers.h"
#include "trainer/ranks/collectives/start_operation.h"
#include "trainer/ranks/collectives/uneven_all_to_all.h"
#include "trainer/tensors/tensors.h"

namespace phalanx {
namespace {

using Json = nlohmann::json;
using Lengths = std::vector<int64_t>;

std::string bytes_of(const Json& value) {
  std::string bytes;
  Json::to_cbor(value, bytes);
  return bytes;
}

Json value_of(const std::string& bytes) { return Json::from_cbor(bytes); }

// Sends `sent`, cut into so many bytes a rank; what comes is as long as the ranks say.
std::vector<std::string> exchange(const Ranks& ranks, const std::string& sent,
                                  const Lengths& to_each, const Lengths& from_each) {
  const at::Tensor input = tensors::empty({static_cast<int64_t>(sent.size())}, at::kByte);
  if (!sent.empty()) std::memcpy(input.mutable_data_ptr(), sent.data(), sent.size());
  const int64_t size = std::accumulate(from_each.begin(), from_each.end(), int64_t{0});
  const at::Tensor output = tensors::empty({size}, at::kByte);
  uneven_all_to_all(ranks, output, input, from_each, to_each);
  std::vector<std::string> texts;
  const char* next = static_cast<const char*>(output.const_data_ptr());
  for (const int64_t length : from_each) {
    texts.emplace_back(next, static_cast<size_t>(length));
    next += length;
  }
  return texts;
}

Lengths none(const Ranks& ranks) { return Lengths(static_cast<size_t>(ranks.world_size())); }

}  // namespace

Json broadcast_object(const Ranks& ranks, const Json& value, int64_t source) {
  require_rank(ranks, "broadcast", source);
  return value_of(
      ranks.broadcast(ranks.rank() == source ? bytes_of(value) : std::string(), source));
}

std::vector<Json> all_gather_objects(const Ranks& ranks, const Json& value) {
  std::vector<Json> values;
  for (const std::string& bytes : ranks.all_gather(bytes_of(value))) {
    values.push_back(value_of(bytes));
  }
  return values;
}

std::vector<Json> gather_objects(const Ranks& ranks, const Json& value, int64_t destination) {
  require_rank(ranks, "gather", destination);
  const std::string bytes = bytes_of(value);
  const auto length = static_cast<int64_t>(bytes.size());
  const Lengths lengths = all_gather_numbers(ranks, std::span(&length, 1));
  Lengths to_each = none(ranks);
  to_each[static_cast<size_t>(destination)] = length;
  const bool is_mine = ranks.rank() == destination;
  const auto texts = exchange(ranks, bytes, to_each, is_mine ? lengths : none(ranks));
  std::vector<Json> values;
  if (!is_mine) return values;
  for (const std::string& text : texts) values.push_back(value_of(text));
  return values;
}

Json scatter_object(const Ranks& ranks, const std::vector<Json>& values, int64_t source) {
  require_rank(ranks, "scatter", source);
  const bool is_mine = ranks.rank() == source;
  const int64_t count = broadcast_number(ranks, static_cast<int64_t>(values.size()), source);
  if (count != ranks.world_size()) {
    throw std::invalid_argument(fmt::format("scatter: rank {} has {} values for {} ranks", source,
                                            count, ranks.world_size()));
  }
  std::string bytes;
  Lengths lengths = none(ranks);
  for (size_t rank = 0; is_mine && rank < values.size(); ++rank) {
    const std::string each = bytes_of(values[rank]);
    lengths[rank] = static_cast<int64_t>(each.size());
    bytes += each;
  }
  const Lengths of_source = all_reduce_numbers(ranks, lengths, Reduction::sum);
  Lengths from_each = none(ranks);
  from_each[static_cast<size_t>(source)] = of_source[static_cast<size_t>(ranks.rank())];
  return value_of(exchange(ranks, bytes, lengths, from_each)[static_cast<size_t>(source)]);
}

}  // namespace phalanx
