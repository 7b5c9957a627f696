// SPDX-License-Identifier: Apache-2.0
#include "trainer/metrics/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "trainer/io/file.h"
#include "trainer/metrics/crc32c.h"

namespace phalanx {
namespace {

// A record is a length and its checksum, the event, and the event's checksum: see encode_record.
constexpr uint64_t kHeadBytes = sizeof(uint64_t) + sizeof(uint32_t);
constexpr uint64_t kTailBytes = sizeof(uint32_t);

template <class T>
T value_at(std::string_view bytes, size_t place) {
  T value{};
  std::memcpy(&value, bytes.data() + place, sizeof(value));
  return value;
}

// Where the whole records end, if half of one follows them; else the file's end.
uint64_t end_of_whole_records(const File& file) {
  const uint64_t size = file.size();
  for (uint64_t end = 0;;) {
    const uint64_t left = size - end;
    if (left < kHeadBytes) return end;
    std::array<char, kHeadBytes> head{};
    file.read(std::as_writable_bytes(std::span(head)), end);
    const std::string_view bytes(head.data(), head.size());
    const auto length = value_at<uint64_t>(bytes, 0);
    const auto checksum = value_at<uint32_t>(bytes, sizeof(length));
    if (checksum != masked_crc32c(bytes.substr(0, sizeof(length)))) return size;
    if (left - kHeadBytes < kTailBytes || length > left - kHeadBytes - kTailBytes) return end;
    end += kHeadBytes + length + kTailBytes;
  }
}

}  // namespace

void cut_torn_event(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  const uint64_t end = end_of_whole_records(file);
  if (end == file.size()) return;
  if (::truncate(path.c_str(), static_cast<off_t>(end)) != 0) {
    throw IoError("cut half an event off", path, errno);
  }
}

}  // namespace phalanx
