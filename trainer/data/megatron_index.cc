// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/megatron_index.h"

#include <fmt/format.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "trainer/base/user_error.h"

namespace phalanx {
namespace {

constexpr std::string_view kMagic{"MMIDIDX\0\0", 9};
constexpr uint64_t kVersion = 1;

// Where the header's fields and the first array begin. Nothing here is aligned.
constexpr int64_t kVersionAt = 9;
constexpr int64_t kTypeAt = 17;
constexpr int64_t kSequencesAt = 18;
constexpr int64_t kDocumentsAt = 26;
constexpr int64_t kLengthsAt = 34;

constexpr int64_t kLengthBytes = 4;
constexpr int64_t kPointerBytes = 8;
constexpr int64_t kDocumentBytes = 8;

template <class Number>
Number number_at(const unsigned char* place) {
  Number number;
  std::memcpy(&number, place, sizeof number);
  return number;
}

std::optional<TokenType> type_of_code(uint8_t code) {
  switch (code) {
    case 1:
      return TokenType::uint8;
    case 2:
      return TokenType::int8;
    case 3:
      return TokenType::int16;
    case 4:
      return TokenType::int32;
    case 5:
      return TokenType::int64;
    case 8:
      return TokenType::uint16;
    default:
      return std::nullopt;  // 6 and 7 are of floating point
  }
}

}  // namespace

// The file's three arrays, none of them aligned.
struct MegatronIndex::Arrays {
  const unsigned char* lengths;
  const unsigned char* pointers;
  const unsigned char* documents;

  int64_t length(int64_t sequence) const {
    return number_at<int32_t>(lengths + sequence * kLengthBytes);
  }
  // In bytes.
  int64_t pointer(int64_t sequence) const {
    return number_at<int64_t>(pointers + sequence * kPointerBytes);
  }
  int64_t first_sequence(int64_t document) const {
    return number_at<int64_t>(documents + document * kDocumentBytes);
  }
};

MegatronIndex::Arrays MegatronIndex::arrays(const DataFiles::Mapped& mapped) const {
  const unsigned char* const lengths = mapped.bytes.data() + kLengthsAt;
  const unsigned char* const pointers = lengths + sequences_ * kLengthBytes;
  return {lengths, pointers, pointers + sequences_ * kPointerBytes};
}

MegatronIndex::MegatronIndex(const std::string& field, const std::filesystem::path& path)
    : field_(field), file_(field, path) {
  const DataFiles::Mapped mapped = file_.map();
  read_header(mapped.bytes.data());
  check_sequences(arrays(mapped));
  check_documents(arrays(mapped));
}

void MegatronIndex::fail(const std::string& problem) const {
  throw UserError(fmt::format("{}: '{}' {}", field_, file_.path().string(), problem));
}

void MegatronIndex::read_header(const unsigned char* data) {
  const auto size = static_cast<int64_t>(file_.size());
  if (size < kLengthsAt || std::memcmp(data, kMagic.data(), kMagic.size()) != 0) {
    fail("is no index of Megatron: it does not begin with MMIDIDX");
  }
  if (const auto version = number_at<uint64_t>(data + kVersionAt); version != kVersion) {
    fail(
        fmt::format("is of version {} of Megatron's index; version {} is read", version, kVersion));
  }
  const auto code = number_at<uint8_t>(data + kTypeAt);
  const auto type = type_of_code(code);
  if (!type) fail(fmt::format("says that its tokens are of type {}, which is no integer", code));
  type_ = *type;
  const auto sequences = number_at<uint64_t>(data + kSequencesAt);
  const auto places = number_at<uint64_t>(data + kDocumentsAt);
  // Before they are multiplied.
  const auto room = static_cast<uint64_t>(size - kLengthsAt);
  if (sequences > room / (kLengthBytes + kPointerBytes) || places > room / kDocumentBytes ||
      sequences * (kLengthBytes + kPointerBytes) + places * kDocumentBytes > room) {
    fail(
        fmt::format("is cut off: it names {} sequences and {} places of documents in {} bytes: get "
                    "the file again",
                    sequences, places, size));
  }
  if (places == 0) fail("names no documents");
  sequences_ = static_cast<int64_t>(sequences);
  documents_ = static_cast<int64_t>(places) - 1;  // the last place is the end
}

// They follow each other in all sets that Megatron writes or merges: only so are they one run.
void MegatronIndex::check_sequences(const Arrays& arrays) {
  const int64_t token_bytes = bytes_of(type_);
  int64_t end = 0;
  for (int64_t i = 0; i < sequences_; ++i) {
    const int64_t length = arrays.length(i);
    if (length < 0) fail(fmt::format("gives sequence {} a length of {}", i, length));
    if (arrays.pointer(i) != end) {
      fail(
          fmt::format("has sequence {} begin at byte {}, but the one before it ends at byte {}: "
                      "sequences that do not follow each other are not read",
                      i, arrays.pointer(i), end));
    }
    end += length * token_bytes;
  }
  tokens_ = end / token_bytes;
}

void MegatronIndex::check_documents(const Arrays& arrays) const {
  const int64_t last = arrays.first_sequence(documents_);
  if (arrays.first_sequence(0) != 0 || last != sequences_) {
    fail(fmt::format("has documents from sequence {} to {}, but sequences from 0 to {}",
                     arrays.first_sequence(0), last, sequences_));
  }
  for (int64_t i = 0; i < documents_; ++i) {
    if (arrays.first_sequence(i) > arrays.first_sequence(i + 1)) {
      fail(fmt::format("has document {} begin behind document {}", i, i + 1));
    }
  }
}

int64_t MegatronIndex::Documents::begin_of(int64_t document) const {
  const Arrays arrays = index_.arrays(mapped_);
  const int64_t sequence = arrays.first_sequence(document);
  if (sequence == index_.sequences_) return index_.tokens_;
  return arrays.pointer(sequence) / bytes_of(index_.type_);
}

}  // namespace phalanx
