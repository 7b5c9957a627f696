// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/stop_reason.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <system_error>

namespace phalanx {
namespace {

struct Shared {
  std::atomic<size_t> size = 0;  // of the text, which is whole then
  std::array<char, 512> text{};

  static_assert(std::atomic<size_t>::is_always_lock_free, "it is shared between processes");
};

Shared* shared = nullptr;

}  // namespace

void StopReason::clear() {
  if (shared == nullptr) {
    void* memory =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw std::system_error(errno, std::generic_category(), "cannot share memory with ranks");
    }
    shared = new (memory) Shared;
  }
  shared->size = 0;
}

void StopReason::set(std::string_view reason) {
  if (shared == nullptr) return;
  const size_t size = std::min(reason.size(), shared->text.size());
  std::copy_n(reason.begin(), size, shared->text.begin());
  shared->size = size;
}

std::string StopReason::text() {
  if (shared == nullptr) return {};
  return {shared->text.data(), shared->size.load()};
}

}  // namespace phalanx
