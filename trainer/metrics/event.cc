// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/event.h"

#include <bit>
#include <utility>

#include "trainer/metrics/crc32c.h"

namespace phalanx {
namespace {

static_assert(std::endian::native == std::endian::little, "fixed-size values are little-endian");

// Field numbers of tensorflow's Event, Summary, Summary.Value and SessionLog messages.
constexpr int kEventWallTime = 1;
constexpr int kEventStep = 2;
constexpr int kEventFileVersion = 3;
constexpr int kEventSummary = 5;
constexpr int kEventSessionLog = 7;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1;
constexpr int kValueSimpleValue = 2;
constexpr int kSessionLogStatus = 1;
constexpr uint64_t kSessionLogStart = 1;

// One protocol buffer message: https://protobuf.dev/programming-guides/encoding.
class Message {
 public:
  void integer(int field, uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  void real64(int field, double value) {
    tag(field, 1);
    fixed(value);
  }
  void real32(int field, float value) {
    tag(field, 5);
    fixed(value);
  }
  void text(int field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  void message(int field, const Message& value) { text(field, value.bytes_); }

  std::string take() { return std::move(bytes_); }

 private:
  void tag(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }

  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  template <class T>
  void fixed(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string bytes_;
};

Message event(double wall_time, int64_t step) {
  Message event;
  event.real64(kEventWallTime, wall_time);
  if (step != 0) event.integer(kEventStep, static_cast<uint64_t>(step));
  return event;
}

template <class T>
std::string_view bytes_of(const T& value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

}  // namespace

std::string encode_file_version_event(double wall_time) {
  Message message = event(wall_time, 0);
  message.text(kEventFileVersion, "brain.Event:2");
  return message.take();
}

std::string encode_session_start_event(double wall_time, int64_t step) {
  Message log;
  log.integer(kSessionLogStatus, kSessionLogStart);
  Message message = event(wall_time, step);
  message.message(kEventSessionLog, log);
  return message.take();
}

std::string encode_scalars_event(double wall_time, int64_t step,
                                 const std::vector<std::pair<std::string, float>>& scalars) {
  Message summary;
  for (const auto& [tag, scalar] : scalars) {
    Message value;
    value.text(kValueTag, tag);
    value.real32(kValueSimpleValue, scalar);
    summary.message(kSummaryValue, value);
  }
  Message message = event(wall_time, step);
  message.message(kEventSummary, summary);
  return message.take();
}

std::string encode_record(std::string_view event) {
  const uint64_t length = event.size();
  const uint32_t length_sum = masked_crc32c(bytes_of(length));
  const uint32_t data_sum = masked_crc32c(event);
  std::string record;
  record += bytes_of(length);
  record += bytes_of(length_sum);
  record += event;
  record += bytes_of(data_sum);
  return record;
}

}  // namespace phalanx
