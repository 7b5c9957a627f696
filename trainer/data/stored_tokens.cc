// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/stored_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr int64_t kTokensAtATime = 4096;
constexpr size_t kBytesAtATime = size_t{1} << 15;

// Calls `function` with a zero of the type that tokens are stored as.
template <class Function>
auto with_type(TokenType type, const Function& function) {
  switch (type) {
    case TokenType::uint8:
      return function(uint8_t{});
    case TokenType::int8:
      return function(int8_t{});
    case TokenType::uint16:
      return function(uint16_t{});
    case TokenType::int16:
      return function(int16_t{});
    case TokenType::uint32:
      return function(uint32_t{});
    case TokenType::int32:
      return function(int32_t{});
    case TokenType::int64:
      return function(int64_t{});
  }
  throw std::logic_error("a TokenType without a type");
}

template <class Stored>
void widen(const unsigned char* from, std::span<int64_t> out) {
  for (int64_t& token : out) {
    Stored stored;
    std::memcpy(&stored, from, sizeof stored);
    token = static_cast<int64_t>(stored);
    from += sizeof stored;
  }
}

}  // namespace

StoredTokens::StoredTokens(DataFile file, int64_t offset, int64_t count, TokenType type,
                           std::optional<DocumentEnds> ends)
    : file_(std::move(file)), offset_(offset), count_(count), type_(type), ends_(ends) {
  const int64_t room = static_cast<int64_t>(file_.size()) - offset_;
  if (offset_ < 0 || count_ < 0 || room < 0 || count_ > room / bytes_of(type_)) {
    throw std::invalid_argument(fmt::format("{} tokens from byte {} on are not all in '{}'", count_,
                                            offset_, file_.path().string()));
  }
}

void StoredTokens::read(int64_t begin, std::span<int64_t> out) const {
  const auto token_bytes = static_cast<size_t>(bytes_of(type_));
  size_t place = static_cast<size_t>(offset_) + static_cast<size_t>(begin) * token_bytes;
  std::array<unsigned char, kBytesAtATime> bytes;  // NOLINT(*-member-init): filled right away
  while (!out.empty()) {
    const auto part = out.first(std::min(out.size(), bytes.size() / token_bytes));
    const auto stored = std::span(bytes).first(part.size() * token_bytes);
    file_.read(place, stored);
    with_type(type_, [&](auto zero) { widen<decltype(zero)>(stored.data(), part); });
    place += stored.size();
    out = out.subspan(part.size());
  }
}

std::vector<DocumentBegin> StoredTokens::document_begins(int64_t begin, int64_t end) const {
  std::vector<DocumentBegin> begins;
  // A document may go on from one file to the next where its own token would show that it begins.
  const bool begins_with_file = !ends_ || !ends_->is_first;
  if (begins_with_file && begin == 0 && end > 0) begins.push_back({.place = 0});
  if (!ends_) return begins;
  // A document begins at its end-of-text token, or behind that of the one before it.
  const int64_t behind = ends_->is_first ? 0 : 1;
  std::array<int64_t, kTokensAtATime> tokens{};
  for (int64_t place = std::max(begin, behind) - behind; place < end - behind;) {
    const std::span part(tokens.data(),
                         static_cast<size_t>(std::min(kTokensAtATime, end - behind - place)));
    read(place, part);
    for (const int64_t token : part) {
      const int64_t document = place++ + behind;
      if (token == ends_->end_of_text) {
        begins.push_back({.place = document, .is_end_of_text = ends_->is_first});
      }
    }
  }
  return begins;
}

std::string StoredTokens::place_of(int64_t token) const {
  return fmt::format("'{}', token {}", file_.path().string(), token);
}

}  // namespace phalanx
