#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>

namespace phalanx {

/// Lets a test see what is refused: root may write everywhere, so while this lives, the process is
/// nobody, who owns `folder` from then on. Other users stay who they are.
class AsNobody {
 public:
  explicit AsNobody(const std::filesystem::path& folder) : root_(::geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    if (root_ && (::chown(folder.c_str(), kNobody, kNobody) != 0 || ::seteuid(kNobody) != 0)) {
      throw std::runtime_error("cannot become nobody");
    }
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  ~AsNobody() {
    if (root_ && ::seteuid(0) != 0) std::abort();
  }

 private:
  bool root_;
};

}  // namespace phalanx
