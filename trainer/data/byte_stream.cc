// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/byte_stream.h"

#include <algorithm>
#include <system_error>

#include "trainer/base/user_error.h"

namespace phalanx {

ByteStream::ByteStream(const std::string& field, const std::vector<std::filesystem::path>& files) {
  int64_t end = 0;
  for (const auto& path : files) {
    try {
      MappedFile file(path);
      if (file.size() == 0) continue;
      end += static_cast<int64_t>(file.size());
      files_.push_back(std::move(file));
      ends_.push_back(end);
    } catch (const std::system_error& error) {
      throw UserError(field + ": cannot read '" + path.string() + "': " + error.code().message());
    }
  }
}

template <class Element>
void ByteStream::read(int64_t offset, std::span<Element> out) const {
  auto file =
      static_cast<size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) - ends_.begin());
  while (!out.empty()) {
    const auto bytes = files_.at(file).bytes();
    const auto begin =
        static_cast<size_t>(offset - (ends_[file] - static_cast<int64_t>(bytes.size())));
    const size_t count = std::min(bytes.size() - begin, out.size());
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(begin), count, out.begin());
    out = out.subspan(count);
    offset += static_cast<int64_t>(count);
    ++file;
  }
}

template void ByteStream::read(int64_t offset, std::span<unsigned char> out) const;
template void ByteStream::read(int64_t offset, std::span<int64_t> out) const;

}  // namespace phalanx
