// SPDX-License-Identifier: Apache-2.0
#include "trainer/checkpoint/format/sha256.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "trainer/checkpoint/format/checkpoint_error.h"
#include "trainer/io/file.h"

namespace phalanx {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;
constexpr std::size_t kDigits = 64;
/// Between a digest and its name: sha256sum's for a file that is read as it is.
constexpr std::string_view kBetween = "  ";

void require(int result) {
  if (result != 1) throw std::runtime_error("OpenSSL cannot compute a SHA-256");
}

/// OpenSSL's digest, which takes bytes piece by piece.
class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), &EVP_MD_CTX_free) {
    require(EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr));
  }
  void add(std::span<const std::byte> bytes) {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()));
  }
  std::string digits() {
    std::array<unsigned char, kDigits / 2> digest{};
    require(EVP_DigestFinal_ex(context_.get(), digest.data(), nullptr));
    std::string text;
    for (const unsigned char byte : digest) text += fmt::format("{:02x}", byte);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

bool is_digest(std::string_view text) {
  return text.size() == kDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

std::string sha256_of(const std::filesystem::path& path, ByteProgress* progress) {
  const File file(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const uint64_t size = file.size();
  std::vector<std::byte> buffer(std::min<uint64_t>(size, kPiece));
  Sha256 digest;
  for (uint64_t place = 0; place < size; place += kPiece) {
    const auto piece = std::span(buffer).first(std::min<uint64_t>(kPiece, size - place));
    file.read(piece, place);
    digest.add(piece);
    if (progress != nullptr) progress->done += piece.size();
  }
  return digest.digits();
}

std::string format_sha256_sums(const std::map<std::string, std::string>& digests) {
  std::string text;
  for (const auto& [name, digest] : digests)
    text += fmt::format("{}{}{}\n", digest, kBetween, name);
  return text;
}

std::map<std::string, std::string> parse_sha256_sums(std::string_view text) {
  std::map<std::string, std::string> digests;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    const std::string_view digest = line.substr(0, std::min(kDigits, line.size()));
    const std::string_view rest = line.substr(digest.size());
    const bool is_whole = line.size() < text.size() && is_digest(digest) &&
                          rest.starts_with(kBetween) && rest.size() > kBetween.size();
    if (!is_whole) throw CheckpointError(fmt::format("line {} is none of SHA-256 sums", number));
    digests[std::string(rest.substr(kBetween.size()))] = digest;
    text.remove_prefix(line.size() + 1);
  }
  return digests;
}

}  // namespace phalanx
