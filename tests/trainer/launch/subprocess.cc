// SPDX-License-Identifier: Apache-2.0
#include "tests/trainer/launch/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <thread>

namespace phalanx {
namespace {

bool readable_in_time(const Descriptor& descriptor) {
  pollfd event{descriptor.number(), POLLIN, 0};
  return ::poll(&event, 1, kPatienceSeconds * 1000) > 0;
}

// Appending, because the offset of such a file is not safe from several processes at once.
Descriptor file_in_memory() {
  Descriptor file = take_descriptor(::memfd_create("output", MFD_CLOEXEC), "keep output");
  if (::fcntl(file.number(), F_SETFL, O_APPEND) != 0) throw_system_error("keep output");
  return file;
}

std::string content(const Descriptor& file) {
  std::string text;
  std::array<char, 4096> chunk;
  ssize_t count = 0;
  while ((count = ::pread(file.number(), chunk.data(), chunk.size(),
                          static_cast<off_t>(text.size()))) > 0) {
    text.append(chunk.data(), static_cast<size_t>(count));
  }
  return text;
}

int exit_code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Subprocess::Subprocess(const std::function<int()>& body)
    : out_(file_in_memory()), err_(file_in_memory()) {
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw_system_error("fork");
  ::setpgid(pid_, pid_);
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(kPatienceSeconds);
  ::dup2(out_.number(), STDOUT_FILENO);
  ::dup2(err_.number(), STDERR_FILENO);
  out_.close();
  err_.close();
  int exit_code = 99;
  try {
    exit_code = body();
  } catch (const std::exception& error) {
    std::fputs(error.what(), stderr);
  }
  std::fflush(nullptr);
  ::_exit(exit_code);
}

Subprocess::~Subprocess() {
  if (pid_ <= 0) return;
  send(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

void Subprocess::send(int signal) const {
  if (pid_ > 0) ::kill(pid_, signal);  // -1 would mean everybody
}

void Subprocess::wait_until_stopped() const {
  int status = 0;
  ::waitpid(pid_, &status, WUNTRACED);
  if (!WIFSTOPPED(status)) throw std::runtime_error("the process ended instead of stopping");
}

Subprocess::End Subprocess::wait() {
  int status = 0;
  if (::waitpid(std::exchange(pid_, -1), &status, 0) < 0) throw_system_error("wait");
  return {exit_code_of(status), content(out_), content(err_)};
}

Channel::Channel() : pipe_(make_pipe()) {}

void Channel::tell(int64_t value) const {
  if (::write(pipe_.write_end.number(), &value, sizeof(value)) != sizeof(value)) {
    throw_system_error("tell");
  }
}

int64_t Channel::hear() {
  pipe_.write_end.close();
  int64_t value = 0;
  if (!readable_in_time(pipe_.read_end) ||
      ::read(pipe_.read_end.number(), &value, sizeof(value)) != sizeof(value)) {
    throw std::runtime_error("nothing was told");
  }
  return value;
}

ProcessWatch::ProcessWatch(pid_t pid)
    : process_(take_descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)), "watch")) {}

bool ProcessWatch::ends() const { return readable_in_time(process_); }

char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string stat;
  std::getline(file, stat);  // fails, but does not throw, when the process vanishes right now
  const size_t name_end = stat.rfind(')');
  return name_end == std::string::npos ? kGone : stat.at(name_end + 2);
}

void wait_for_state(pid_t pid, char state) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::seconds(kPatienceSeconds);
  while (state_of(pid) != state) {
    if (Clock::now() > deadline) throw std::runtime_error("the state was never reached");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

int64_t count_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

}  // namespace phalanx
