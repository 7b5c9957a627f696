// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/pipeline/mailbox.h"

#include <stdexcept>
#include <utility>

namespace phalanx::pipeline {

rpc::Values Mailbox::addressed(const std::string& key, rpc::Values letter) {
  letter.text = key + '\n' + letter.text;
  return letter;
}

rpc::Function Mailbox::put() {
  return rpc::function_of([this](rpc::Values letter) {
    const size_t end = letter.text.find('\n');
    if (end == std::string::npos) throw std::invalid_argument("a letter of a stage without a key");
    std::string key = letter.text.substr(0, end);
    letter.text.erase(0, end + 1);
    const std::scoped_lock lock(mutex_);
    letters_[std::move(key)] = std::move(letter);
    came_.notify_all();
    return rpc::Values{};
  });
}

std::optional<rpc::Values> Mailbox::take(const std::string& key,
                                         std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  if (!came_.wait_for(lock, patience, [&] { return letters_.contains(key); })) return std::nullopt;
  return std::move(letters_.extract(key).mapped());
}

}  // namespace phalanx::pipeline
