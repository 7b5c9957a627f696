// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/safetensors_header.h"

#include <c10/core/ScalarType.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <unordered_set>

#include "trainer/base/utf8.h"
#include "trainer/checkpoint/format/checkpoint_error.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

constexpr const char* kMetadataName = "__metadata__";

struct DtypeName {
  std::string_view name;
  at::ScalarType dtype;
};

// In the order of the Rust package's enumeration, which decides the layout.
constexpr std::array<DtypeName, 10> kDtypes{{{"BOOL", at::kBool},
                                             {"U8", at::kByte},
                                             {"I8", at::kChar},
                                             {"I16", at::kShort},
                                             {"F16", at::kHalf},
                                             {"BF16", at::kBFloat16},
                                             {"I32", at::kInt},
                                             {"F32", at::kFloat},
                                             {"F64", at::kDouble},
                                             {"I64", at::kLong}}};

size_t rank_of(at::ScalarType dtype) {
  const auto found = std::find_if(kDtypes.begin(), kDtypes.end(),
                                  [&](const DtypeName& item) { return item.dtype == dtype; });
  if (found == kDtypes.end()) {
    throw std::logic_error(
        fmt::format("safetensors has no name for the dtype {}", c10::toString(dtype)));
  }
  return static_cast<size_t>(found - kDtypes.begin());
}

// A text from the file as a message may carry it.
std::string shown(std::string_view text) {
  constexpr size_t kLongest = 120;
  std::string result = single_line(first_bytes(text, kLongest));
  if (text.size() > kLongest) result += "...";
  return result;
}

// Reads the header as it is parsed, with room for exactly the shape it must have, so that a
// hostile text cannot build a large tree.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  SafetensorsHeader take() { return std::move(header_); }

  bool key(string_t& text) override {
    if (state_ == State::top) {
      if (!names_.insert(text).second) fail("the key '{}' appears twice", shown(text));
      state_ = text == "__metadata__" ? State::metadata_wanted : State::entry_wanted;
      if (state_ == State::entry_wanted) entry_ = PartialEntry{.name = text};
    } else if (state_ == State::metadata) {
      metadata_key_ = text;
      if (header_.metadata.contains(text)) fail("the metadata key '{}' appears twice", shown(text));
    } else {
      field_ = field_called(text);
    }
    return true;
  }

  bool start_object(size_t) override {
    switch (state_) {
      case State::start:
        state_ = State::top;
        return true;
      case State::metadata_wanted:
        state_ = State::metadata;
        return true;
      case State::entry_wanted:
        state_ = State::entry;
        return true;
      default:
        return unexpected("an object");
    }
  }

  bool end_object() override {
    if (state_ == State::entry) finish_entry();
    state_ = State::top;
    return true;
  }

  bool start_array(size_t) override {
    if (state_ != State::entry || (field_ != Field::shape && field_ != Field::data_offsets)) {
      return unexpected("a list");
    }
    list_ = field_ == Field::shape ? &entry_.shape.emplace() : &entry_.offsets.emplace();
    state_ = State::list;
    return true;
  }

  bool end_array() override {
    state_ = State::entry;
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (state_ != State::list) return unexpected("a number");
    list_->push_back(value);
    return true;
  }

  bool string(string_t& text) override {
    if (state_ == State::metadata) {
      header_.metadata[metadata_key_] = text;
    } else if (state_ == State::entry && field_ == Field::dtype) {
      entry_.dtype = safetensors_dtype(text);
    } else {
      return unexpected("a text");
    }
    return true;
  }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("a boolean"); }
  bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
  bool number_float(number_float_t, const string_t&) override {
    return unexpected("a number that is no 64-bit integer");
  }
  bool binary(binary_t&) override { return unexpected("binary data"); }

  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    fail("the header is not valid JSON in UTF-8: see its byte {}", position);
  }

 private:
  enum class State { start, top, metadata_wanted, metadata, entry_wanted, entry, list };
  enum class Field { dtype, shape, data_offsets };

  struct PartialEntry {
    std::string name;
    std::optional<at::ScalarType> dtype{};
    std::optional<std::vector<uint64_t>> shape{};
    std::optional<std::vector<uint64_t>> offsets{};
  };

  template <class... Args>
  [[noreturn]] static void fail(fmt::format_string<Args...> format, Args&&... args) {
    throw CheckpointError(fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] bool unexpected(std::string_view what) const {
    if (state_ == State::metadata || state_ == State::metadata_wanted) {
      fail("{} in __metadata__, which maps texts to texts", what);
    }
    if (state_ == State::start || state_ == State::top) fail("{} in place of an object", what);
    fail("{} in the entry of tensor '{}', where the format has none", what, shown(entry_.name));
  }

  Field field_called(const std::string& text) const {
    const auto [field, seen] =
        text == "dtype"   ? std::pair(Field::dtype, entry_.dtype.has_value())
        : text == "shape" ? std::pair(Field::shape, entry_.shape.has_value())
        : text == "data_offsets"
            ? std::pair(Field::data_offsets, entry_.offsets.has_value())
            : throw CheckpointError(fmt::format("unknown field '{}' of tensor '{}'", shown(text),
                                                shown(entry_.name)));
    if (seen) fail("the field '{}' of tensor '{}' appears twice", text, shown(entry_.name));
    return field;
  }

  void finish_entry() {
    if (!entry_.dtype || !entry_.shape || !entry_.offsets) {
      fail("tensor '{}' lacks one of dtype, shape and data_offsets", shown(entry_.name));
    }
    if (entry_.offsets->size() != 2) {
      fail("tensor '{}' has {} data_offsets, not 2", shown(entry_.name), entry_.offsets->size());
    }
    SafetensorsEntry entry{.name = entry_.name,
                           .dtype = *entry_.dtype,
                           .shape = {},
                           .begin = (*entry_.offsets)[0],
                           .end = (*entry_.offsets)[1]};
    for (const uint64_t extent : *entry_.shape) {
      if (extent > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
        fail("tensor '{}' has a dimension of {}", shown(entry_.name), extent);
      }
      entry.shape.push_back(static_cast<int64_t>(extent));
    }
    header_.entries.push_back(std::move(entry));
  }

  State state_ = State::start;
  Field field_ = Field::dtype;
  PartialEntry entry_{};
  std::vector<uint64_t>* list_ = nullptr;
  std::string metadata_key_;
  std::unordered_set<std::string> names_;
  SafetensorsHeader header_;
};

// Bytes of a tensor. The strides must fit 64 bits too, which take an empty dimension as 1.
uint64_t checked_bytes(const SafetensorsEntry& entry) {
  uint64_t bytes = c10::elementSize(entry.dtype);
  bool empty = false;
  for (const int64_t extent : entry.shape) {
    empty = empty || extent == 0;
    const auto factor = static_cast<uint64_t>(std::max<int64_t>(extent, 1));
    if (__builtin_mul_overflow(bytes, factor, &bytes) ||
        bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      throw CheckpointError(
          fmt::format("the shape of tensor '{}' is too large", shown(entry.name)));
    }
  }
  return empty ? 0 : bytes;
}

void check_layout(const SafetensorsHeader& header, uint64_t data_size) {
  uint64_t position = 0;
  for (const SafetensorsEntry& entry : header.entries) {
    if (entry.begin != position || entry.end < entry.begin) {
      throw CheckpointError(fmt::format(
          "the data of tensor '{}' stands at [{}, {}), but the data before it ends at {}: a hole, "
          "an overlap or a reversed range",
          shown(entry.name), entry.begin, entry.end, position));
    }
    if (const uint64_t bytes = checked_bytes(entry); entry.end - entry.begin != bytes) {
      throw CheckpointError(
          fmt::format("tensor '{}' has {} bytes of data, but its shape and dtype make {}",
                      shown(entry.name), entry.end - entry.begin, bytes));
    }
    position = entry.end;
  }
  if (position != data_size) {
    throw CheckpointError(
        fmt::format("the tensors end at byte {} of the data, which has {}", position, data_size));
  }
}

}  // namespace

std::string_view safetensors_dtype_name(at::ScalarType dtype) {
  return kDtypes[rank_of(dtype)].name;
}

at::ScalarType safetensors_dtype(std::string_view name) {
  for (const auto& [known, dtype] : kDtypes) {
    if (known == name) return dtype;
  }
  throw CheckpointError(fmt::format("unknown dtype '{}'", shown(name)));
}

bool safetensors_before(at::ScalarType left_dtype, std::string_view left_name,
                        at::ScalarType right_dtype, std::string_view right_name) {
  return std::tuple(rank_of(right_dtype), left_name) < std::tuple(rank_of(left_dtype), right_name);
}

std::string format_safetensors_header(const SafetensorsHeader& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json[kMetadataName] = header.metadata;
  for (const SafetensorsEntry& entry : header.entries) {
    json[entry.name] = {{"dtype", safetensors_dtype_name(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
}

std::string safetensors_head(const SafetensorsHeader& header) {
  std::unordered_set<std::string_view> names{kMetadataName};
  for (const SafetensorsEntry& entry : header.entries) {
    if (names.insert(entry.name).second) continue;
    throw std::logic_error(fmt::format("the tensor name '{}' is taken already", entry.name));
  }
  const std::string text = format_safetensors_header(header);
  const uint64_t length = text.size();
  std::string head(sizeof(length), '\0');
  std::memcpy(head.data(), &length, sizeof(length));
  return head + text;
}

SafetensorsHeader parse_safetensors_header(std::string_view text, uint64_t data_size) {
  if (!text.starts_with('{')) throw CheckpointError("the header does not start with '{'");
  // The JSON library takes a zero byte for the end of its input.
  if (text.find('\0') != std::string_view::npos) {
    throw CheckpointError("the header holds a zero byte");
  }
  HeaderReader reader;
  nlohmann::json::sax_parse(text, &reader);
  SafetensorsHeader header = reader.take();
  std::sort(header.entries.begin(), header.entries.end(), [](const auto& left, const auto& right) {
    return std::tuple(left.begin, left.end, left.name) <
           std::tuple(right.begin, right.end, right.name);
  });
  check_layout(header, data_size);
  return header;
}

}  // namespace phalanx
