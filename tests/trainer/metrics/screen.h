// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

namespace phalanx {

/// What was written to one end comes out of the other.
class Screen {
 public:
  /// A terminal of so many columns, or a pipe for none.
  explicit Screen(unsigned short columns) {
    if (columns == 0) {
      std::array<int, 2> ends{};
      if (::pipe(ends.data()) != 0) std::abort();
      reader_ = ends[0];
      writer_ = ends[1];
    } else {
      const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
      termios raw{};
      ::cfmakeraw(&raw);
      if (::openpty(&reader_, &writer_, nullptr, &raw, &size) != 0) std::abort();
    }
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
  }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen() {
    ::close(reader_);
    ::close(writer_);
  }

  int descriptor() const { return writer_; }

  /// What has come so far and was not taken before.
  std::string take() const {
    std::string text;
    std::array<char, 4096> piece{};
    for (ssize_t size; (size = ::read(reader_, piece.data(), piece.size())) > 0;) {
      text.append(piece.data(), static_cast<size_t>(size));
    }
    return text;
  }

  /// The same, once it holds `text`, or half a minute has passed.
  std::string take_until(const std::string& text) const {
    std::string taken = take();
    pollfd ready{.fd = reader_, .events = POLLIN, .revents = 0};
    while (taken.find(text) == std::string::npos && ::poll(&ready, 1, 30'000) == 1) {
      taken += take();
    }
    return taken;
  }

 private:
  int reader_ = -1;
  int writer_ = -1;
};

}  // namespace phalanx
