// SPDX-License-Identifier: Apache-2.0
#include "trainer/io/lfs_pointer.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <span>

#include "trainer/base/user_error.h"
#include "trainer/io/bytes_text.h"

namespace phalanx {
namespace {

// The names of its specification, today's and the first one.
constexpr std::string_view kVersion = "version https://git-lfs.github.com/spec/v";
constexpr std::string_view kOldVersion = "version https://hawser.github.com/spec/v";

// The size of the file that the pointer stands for.
std::optional<uint64_t> true_size(std::string_view text) {
  constexpr std::string_view kSize = "\nsize ";
  const size_t place = text.find(kSize);
  if (place == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(place + kSize.size());
  uint64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  return error == std::errc() ? std::optional(size) : std::nullopt;
}

}  // namespace

std::optional<std::string> lfs_pointer_problem(std::string_view text) {
  if (text.size() > kLargestLfsPointer) return std::nullopt;
  if (!text.starts_with(kVersion) && !text.starts_with(kOldVersion)) return std::nullopt;
  const std::optional<uint64_t> size = true_size(text);
  return fmt::format(
      "is a Git LFS pointer, not the file itself{}: run `git lfs pull` in its folder",
      size ? fmt::format(", which has {}", bytes_text(*size)) : "");
}

std::optional<std::string> lfs_pointer_problem(const File& file) {
  const uint64_t size = file.size();
  if (size > kLargestLfsPointer) return std::nullopt;
  std::string text(size, '\0');
  file.read(std::as_writable_bytes(std::span(text)), 0);
  return lfs_pointer_problem(text);
}

void refuse_lfs_pointer(const File& file) {
  const std::optional<std::string> problem = lfs_pointer_problem(file);
  if (problem) throw UserError(fmt::format("'{}' {}", file.path().string(), *problem));
}

void refuse_lfs_pointer(const std::filesystem::path& path, std::string_view text) {
  const std::optional<std::string> problem = lfs_pointer_problem(text);
  if (problem) throw UserError(fmt::format("'{}' {}", path.string(), *problem));
}

}  // namespace phalanx
