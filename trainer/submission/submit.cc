// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/submit.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "trainer/base/descriptor.h"
#include "trainer/base/user_error.h"

namespace phalanx {

void submit(const std::vector<std::string>& command, const std::string& text) {
  const Descriptor input =
      take_descriptor(::memfd_create("submitted", MFD_CLOEXEC), "keep what is submitted in memory");
  if (::write(input.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(input.number(), 0, SEEK_SET) != 0 || ::dup2(input.number(), STDIN_FILENO) < 0) {
    throw_system_error("hand the text to " + command.front());
  }
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  throw UserError(fmt::format(
      "{} cannot be started: {}. Submit on a host that has it; --dry-run prints what it would get",
      command.front(), std::strerror(errno)));
}

}  // namespace phalanx
