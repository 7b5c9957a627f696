// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace phalanx {

/// An open file descriptor, or none; closed at scope exit.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Descriptor old(std::exchange(number_, other.release()));
    return *this;
  }
  ~Descriptor() { close(); }

  /// -1 when there is none.
  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();
  /// Gives the descriptor away; the caller closes it.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

/// Takes a descriptor that a system call returned; throws std::system_error ("cannot <operation>:
/// reason") for -1. Never one of 0, 1 and 2, even where the process began with one of these closed:
/// what is meant for the screen must not get into a pipe or socket.
Descriptor take_descriptor(int number, std::string_view operation);

/// Both ends of a pipe, closed on exec. Reading never waits, writing does.
struct Pipe {
  Descriptor read_end;
  Descriptor write_end;
};
Pipe make_pipe();

/// What an attempt to read came to.
enum class ReadResult {
  some,         ///< There were bytes.
  nothing_yet,  ///< Later, perhaps.
  end,          ///< All writers are gone, or the reading failed.
};

/// Appends to `buffer` what a non-blocking descriptor has, 64 KiB at most.
ReadResult read_some(const Descriptor& source, std::string& buffer);

/// Throws std::system_error for the present errno: "cannot <operation>: reason".
[[noreturn]] void throw_system_error(std::string_view operation);

}  // namespace phalanx
