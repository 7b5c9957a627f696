// SPDX-License-Identifier: Apache-2.0
#include "tests/test_device/races.h"

#include <ATen/core/Tensor.h>

#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>

#include "tests/test_device/calls.h"
#include "tests/test_device/memory.h"
#include "tests/test_device/streams.h"
#include "tests/test_device/timeline.h"

namespace phalanx::test_device {
namespace {

struct Range {
  const char* begin = nullptr;
  const char* end = nullptr;

  bool is_empty() const { return begin == end; }
  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  bool holds(const Range& other) const { return begin <= other.begin && other.end <= end; }
  bool operator==(const Range&) const = default;
};

struct Seen {
  Range range;
  Access access;
  uint32_t stream;
  uint64_t number;  // of the operation in its stream
  uint64_t owner;   // of the block
  std::string_view op;

  bool conflicts(const Seen& other) const {
    return range.overlaps(other.range) &&
           (access == Access::writes || other.access == Access::writes);
  }
  std::string does() const { return access == Access::writes ? " writes" : " reads"; }
};

struct Found {
  std::mutex mutex;
  std::unordered_map<const char*, std::vector<Seen>> accesses;  // by the beginning of the block
  std::vector<std::string> races;
  std::set<std::string> told;
};

Found& found() {
  static auto* const found = new Found;
  return *found;
}

Range range_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.numel() == 0 || !tensor.has_storage()) return {};
  int64_t last = 0;
  for (int64_t i = 0; i < tensor.dim(); ++i) last += (tensor.size(i) - 1) * tensor.stride(i);
  const auto item = static_cast<int64_t>(tensor.itemsize());
  const char* const begin = static_cast<const char*>(tensor.storage().data());
  if (begin == nullptr) return {};
  return {begin + tensor.storage_offset() * item,
          begin + (tensor.storage_offset() + last + 1) * item};
}

void tell(const Seen& now, const Seen& before, const BlockOf& block, const std::string& where) {
  const bool is_reuse = before.owner != now.owner;
  std::string text = std::string(now.op) + now.does() + " on " + where + " memory that " +
                     std::string(before.op) + before.does() + " on " + stream_name(before.stream);
  if (block.device == kPinned) text += " (pinned memory of the host)";
  text += is_reuse ? ", and that was freed and handed out again before that was over"
                   : ", without an order";
  if (!found().told.insert(text).second) return;
  found().races.push_back(text + "; in " + calls_of_phalanx());
}

void tell_free(const Seen& seen, const BlockOf& block) {
  const std::string owner = stream_name(block.stream);
  const std::string text = "memory of " + owner + " is given back while " + std::string(seen.op) +
                           seen.does() + " on " + stream_name(seen.stream) + ": " + owner +
                           " does not wait for that";
  if (!found().told.insert(text).second) return;
  found().races.push_back(text + "; in " + calls_of_phalanx());
}

// Keeps what a later access may have no order with: what a write covers is ordered before it, or
// has been told.
void remember(std::vector<Seen>& seen, const Seen& now) {
  bool is_there = false;
  std::erase_if(seen, [&](Seen& before) {
    if (now.access == Access::writes) return now.range.holds(before.range);
    if (before.access == Access::writes || before.stream != now.stream) return false;
    if (before.range != now.range) return false;
    before = now;
    is_there = true;
    return false;
  });
  if (!is_there) seen.push_back(now);
}

void note(uint32_t stream, const Range& range, Access access, std::string_view op) {
  if (range.is_empty()) return;
  const BlockOf block = block_of(range.begin);
  if (block.begin == nullptr) return;
  const Clock clock = clock_of(stream);
  const Seen now{range, access, stream, clock.of(stream), block.owner, op};
  const std::lock_guard lock(found().mutex);
  std::vector<Seen>& seen = found().accesses[block.begin];
  for (const Seen& before : seen) {
    if (now.conflicts(before) && before.number > clock.of(before.stream)) {
      tell(now, before, block, stream_name(stream));
    }
  }
  remember(seen, now);
}

}  // namespace

void note_access(uint32_t stream, const void* memory, std::size_t bytes, Access access,
                 std::string_view op) {
  const char* const begin = static_cast<const char*>(memory);
  note(stream, {begin, begin + bytes}, access, op);
}

void note_access(uint32_t stream, const at::Tensor& tensor, Access access, std::string_view op) {
  note(stream, range_of(tensor), access, op);
}

// What is told here is not told again when the memory is handed out.
void note_free(const void* memory) {
  const BlockOf block = block_of(memory);
  if (block.begin == nullptr) return;
  const Clock over = over_before_reuse(memory);
  const std::lock_guard lock(found().mutex);
  std::erase_if(found().accesses[block.begin], [&](const Seen& seen) {
    if (seen.number <= over.of(seen.stream)) return false;
    tell_free(seen, block);
    return true;
  });
}

void note_access_of_host(const at::Tensor& tensor, Access access, std::string_view op) {
  const Range range = range_of(tensor);
  if (range.is_empty()) return;
  const BlockOf block = block_of(range.begin);
  if (block.begin == nullptr) return;
  const Clock host = clock_of_host();
  const Seen now{range, access, 0, 0, block.owner, op};
  const std::lock_guard lock(found().mutex);
  for (const Seen& before : found().accesses[block.begin]) {
    if (now.conflicts(before) && before.number > host.of(before.stream)) {
      tell(now, before, block, "the host");
    }
  }
}

std::vector<std::string> take_races() {
  const std::lock_guard lock(found().mutex);
  found().told.clear();
  return std::exchange(found().races, {});
}

}  // namespace phalanx::test_device
