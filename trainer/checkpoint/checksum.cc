#include "trainer/checkpoint/checksum.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <vector>

#include "trainer/core/io/file.h"

namespace phalanx {

struct Checksum::Impl {
  XXH3_state_t state;
};

Checksum::Checksum() : impl_(std::make_unique<Impl>()) { XXH3_64bits_reset(&impl_->state); }
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(&impl_->state, bytes.data(), bytes.size());
}

void Checksum::update(std::string_view text) { update(std::as_bytes(std::span(text))); }

std::string Checksum::digits() const {
  return fmt::format("{:016x}", static_cast<uint64_t>(XXH3_64bits_digest(&impl_->state)));
}

std::string checksum_of_file(const std::filesystem::path& path) {
  constexpr uint64_t kPiece = uint64_t{1} << 20;
  const File file(path, O_RDONLY | O_NOFOLLOW);
  const uint64_t size = file.size();
  std::vector<std::byte> piece(std::min(size, kPiece));
  Checksum checksum;
  for (uint64_t offset = 0; offset < size; offset += kPiece) {
    const std::span part = std::span(piece).first(std::min(kPiece, size - offset));
    file.read(part, offset);
    checksum.update(part);
  }
  return checksum.digits();
}

}  // namespace phalanx
