// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/run_progress.h"

#include <limits.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

// Texts that end with a zero: no pointer is the same in two processes for sure.
template <size_t size>
bool fits(std::string_view text, const std::array<char, size>&) {
  return text.size() < size;
}

}  // namespace

struct RunProgress::Shared {
  std::atomic<bool> is_claimed = false;
  std::atomic<bool> is_begun = false;  // the five below are whole
  std::array<char, PATH_MAX> exp_dir{};
  std::array<char, 64> checkpoint{};
  int64_t number = 0;
  int64_t first_step = 0;
  int64_t samples_a_step = 0;
  std::atomic<int64_t> step = 0;
  std::atomic<bool> is_restored = false;
  std::array<char, 1024> early_end{};  // written once, before the rank that writes it ends

  static_assert(std::atomic<int64_t>::is_always_lock_free, "it is shared between processes");
};

RunProgress::RunProgress() {
  void* memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw std::system_error(errno, std::generic_category(), "cannot share memory with ranks");
  }
  shared_ = new (memory) Shared;
}

RunProgress::~RunProgress() { ::munmap(shared_, sizeof(Shared)); }

void RunProgress::begin(const BegunStart& start) {
  if (!fits(start.exp_dir, shared_->exp_dir) || !fits(start.checkpoint, shared_->checkpoint))
    return;
  if (shared_->is_claimed.exchange(true)) return;
  std::ranges::copy(start.exp_dir, shared_->exp_dir.begin());
  std::ranges::copy(start.checkpoint, shared_->checkpoint.begin());
  shared_->number = start.number;
  shared_->samples_a_step = start.samples_a_step;
  shared_->first_step = shared_->step = start.step;
  shared_->is_begun = true;
}

void RunProgress::note_restored() { shared_->is_restored = true; }

void RunProgress::reach(int64_t step) { shared_->step = step; }

void RunProgress::note_early_end(const std::string& why) {
  std::array<char, 1024>& text = shared_->early_end;
  const std::size_t size = std::min(why.size(), text.size() - 1);
  std::ranges::copy(std::string_view(why).substr(0, size), text.begin());
  text[size] = '\0';
}

void RunProgress::forget() {
  shared_->early_end[0] = '\0';
  shared_->is_restored = false;
  shared_->is_begun = false;
  shared_->is_claimed = false;
}

std::optional<BegunStart> RunProgress::begun() const {
  if (!shared_->is_begun) return std::nullopt;
  return BegunStart{.exp_dir = shared_->exp_dir.data(),
                    .number = shared_->number,
                    .step = shared_->first_step,
                    .checkpoint = shared_->checkpoint.data(),
                    .samples_a_step = shared_->samples_a_step};
}

bool RunProgress::has_restored() const { return shared_->is_restored || has_stepped(); }

bool RunProgress::has_stepped() const {
  return shared_->is_begun && shared_->step > shared_->first_step;
}

std::string RunProgress::early_end() const { return shared_->early_end.data(); }

int64_t RunProgress::step() const { return shared_->step; }

}  // namespace phalanx
