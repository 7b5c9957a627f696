// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/descriptor.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace phalanx {
namespace {

constexpr size_t kMaxRead = 1 << 16;  // what a pipe holds

}  // namespace

void Descriptor::close() {
  if (is_open()) ::close(release());
}

Descriptor take_descriptor(int number, std::string_view operation) {
  if (number < 0) throw_system_error(operation);
  Descriptor taken(number);
  if (number > STDERR_FILENO) return taken;
  Descriptor higher(::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
  if (!higher.is_open()) throw_system_error(operation);
  return higher;
}

Pipe make_pipe() {
  constexpr std::string_view kOperation = "make a pipe";
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_system_error(kOperation);
  Descriptor raw_write(ends[1]);  // closed too when the first one is refused
  Pipe pipe;
  pipe.read_end = take_descriptor(ends[0], kOperation);
  pipe.write_end = take_descriptor(raw_write.release(), kOperation);
  // The two ends are two open files, so this leaves the writer's alone.
  if (::fcntl(pipe.read_end.number(), F_SETFL, O_NONBLOCK) != 0) throw_system_error(kOperation);
  return pipe;
}

ReadResult read_some(const Descriptor& source, std::string& buffer) {
  std::array<char, kMaxRead> chunk;
  ssize_t count = 0;
  do {
    count = ::read(source.number(), chunk.data(), chunk.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return ReadResult::nothing_yet;
  if (count <= 0) return ReadResult::end;
  buffer.append(chunk.data(), static_cast<size_t>(count));
  return ReadResult::some;
}

void throw_system_error(std::string_view operation) {
  throw std::system_error(errno, std::generic_category(), "cannot " + std::string(operation));
}

}  // namespace phalanx
