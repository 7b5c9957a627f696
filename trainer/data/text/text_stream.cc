// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/text/text_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/io/lfs_pointer.h"

namespace phalanx {
namespace {

constexpr size_t kChunk = size_t{1} << 18;

// The bytes of a file as it lies there.
class FileBytes {
 public:
  explicit FileBytes(const std::filesystem::path& path) : file_(path, O_RDONLY) {
    refuse_lfs_pointer(file_);
    size_ = file_.size();
  }

  size_t read(std::span<char> out) {
    const size_t count = std::min<uint64_t>(out.size(), size_ - done_);
    file_.read(std::as_writable_bytes(out.first(count)), done_);
    done_ += count;
    return count;
  }

  // Without passing them on.
  size_t look_at(std::span<char> out) const {
    const size_t count = std::min<uint64_t>(out.size(), size_);
    file_.read(std::as_writable_bytes(out.first(count)), 0);
    return count;
  }

  void skip(uint64_t bytes) { done_ = std::min(size_, done_ + bytes); }
  uint64_t done() const { return done_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  File file_;
  uint64_t size_ = 0;
  uint64_t done_ = 0;
};

[[noreturn]] void fail(const FileBytes& file, std::string_view what, uint64_t unpacked) {
  throw UserError(
      fmt::format("'{}' {} at byte {} of what it unpacks to: get the file again, or leave "
                  "it out",
                  file.path().string(), what, unpacked));
}

class PlainStream : public TextStream {
 public:
  explicit PlainStream(FileBytes file) : file_(std::move(file)) {}

  size_t read(std::span<char> out) override { return file_.read(out); }
  void skip(uint64_t bytes) override { file_.skip(bytes); }
  uint64_t read_of_file() const override { return file_.done(); }
  bool is_packed() const override { return false; }

 private:
  FileBytes file_;
};

// gzip (RFC 1952), several members one after the other included.
class GzipStream : public TextStream {
 public:
  explicit GzipStream(FileBytes file) : file_(std::move(file)), packed_(kChunk) {
    constexpr int kGzipOnly = 16;
    if (inflateInit2(&state_, kGzipOnly + MAX_WBITS) != Z_OK) throw std::bad_alloc();
  }
  ~GzipStream() override { inflateEnd(&state_); }
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;

  size_t read(std::span<char> out) override {
    out = out.first(std::min<size_t>(out.size(), std::numeric_limits<uInt>::max()));
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(out.size());
    while (state_.avail_out > 0 && !at_end_) unpack_some(out.size());
    const size_t count = out.size() - state_.avail_out;
    unpacked_ += count;
    return count;
  }

  uint64_t read_of_file() const override { return file_.done(); }

 private:
  void unpack_some(size_t asked) {
    if (state_.avail_in == 0) {
      state_.avail_in = static_cast<uInt>(file_.read(packed_));
      state_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    }
    if (state_.avail_in == 0) {
      if (!between_members_) fail(file_, "is cut off", unpacked_ + asked - state_.avail_out);
      at_end_ = true;
      return;
    }
    if (between_members_ && skip_padding()) return;
    between_members_ = false;
    const int result = inflate(&state_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      inflateReset(&state_);
      between_members_ = true;
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail(file_, "is broken", unpacked_ + asked - state_.avail_out);
    }
  }

  // Zeros behind a member, as gzip(1) allows; whether they are all that was read.
  bool skip_padding() {
    while (state_.avail_in > 0 && *state_.next_in == 0) {
      ++state_.next_in;
      --state_.avail_in;
    }
    return state_.avail_in == 0;
  }

  FileBytes file_;
  std::vector<char> packed_;
  z_stream state_{};
  bool between_members_ = false;
  bool at_end_ = false;
  uint64_t unpacked_ = 0;
};

// Zstandard (RFC 8878), several frames one after the other included.
class ZstdStream : public TextStream {
 public:
  explicit ZstdStream(FileBytes file)
      : file_(std::move(file)), packed_(kChunk), state_(ZSTD_createDStream()) {
    if (!state_) throw std::bad_alloc();
    // As `zstd --long=31` writes; the memory is taken only where a file asks for it.
    constexpr int kLargestWindow = 31;
    ZSTD_DCtx_setParameter(state_.get(), ZSTD_d_windowLogMax, kLargestWindow);
  }

  size_t read(std::span<char> out) override {
    ZSTD_outBuffer target{out.data(), out.size(), 0};
    while (target.pos < target.size) {
      if (input_.pos == input_.size) input_ = {packed_.data(), file_.read(packed_), 0};
      if (input_.size == 0 && between_frames_) break;
      const size_t before = target.pos;
      const bool had_input = input_.pos < input_.size;
      const size_t result = ZSTD_decompressStream(state_.get(), &target, &input_);
      if (ZSTD_isError(result) != 0) fail(file_, "is broken", unpacked_ + target.pos);
      between_frames_ = result == 0;
      if (!had_input && !between_frames_ && target.pos == before) {
        fail(file_, "is cut off", unpacked_ + target.pos);
      }
    }
    unpacked_ += target.pos;
    return target.pos;
  }

  uint64_t read_of_file() const override { return file_.done(); }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ZSTD_freeDStream(state); }
  };

  FileBytes file_;
  std::vector<char> packed_;
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer input_{nullptr, 0, 0};
  bool between_frames_ = false;
  uint64_t unpacked_ = 0;
};

}  // namespace

void TextStream::skip(uint64_t bytes) {
  std::vector<char> dropped(std::min<uint64_t>(bytes, kChunk));
  while (bytes > 0) {
    const size_t count = read(std::span(dropped).first(std::min<uint64_t>(bytes, kChunk)));
    if (count == 0) return;
    bytes -= count;
  }
}

std::unique_ptr<TextStream> open_text(const std::filesystem::path& path) {
  FileBytes file(path);
  std::array<char, 4> first{};
  const std::string_view magic(first.data(), file.look_at(first));
  if (magic.starts_with("\x1F\x8B")) return std::make_unique<GzipStream>(std::move(file));
  if (magic == "\x28\xB5\x2F\xFD") return std::make_unique<ZstdStream>(std::move(file));
  return std::make_unique<PlainStream>(std::move(file));
}

}  // namespace phalanx
