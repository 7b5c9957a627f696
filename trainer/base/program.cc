// SPDX-License-Identifier: Apache-2.0
#include "trainer/base/program.h"

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>
#include <system_error>

namespace phalanx {
namespace {

namespace fs = std::filesystem;

// `bazel run` calls a program by the path of its output, .../bazel-out/k8-opt/bin/trainer/trainer;
// in the workspace bazel-bin is a link to that `bin`.
std::optional<std::string> link_in_workspace(const fs::path& root) {
  const char* workspace = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (workspace == nullptr) return std::nullopt;
  std::error_code unreadable;
  const std::string output = fs::read_symlink(root / "proc/self/exe", unreadable).string();
  constexpr std::string_view kFolder = "/bin/";
  const size_t folder = output.find(kFolder, output.rfind("/bazel-out/"));
  if (folder == std::string::npos) return std::nullopt;
  const fs::path link = fs::weakly_canonical(workspace, unreadable) / "bazel-bin" /
                        output.substr(folder + kFolder.size());
  if (!fs::equivalent(link, output, unreadable)) return std::nullopt;
  const fs::path from_here = link.lexically_proximate(fs::current_path(unreadable));
  return from_here.has_parent_path() ? from_here.string() : "./" + from_here.string();
}

}  // namespace

std::string program_name(const fs::path& root) {
  std::ifstream file(root / "proc/self/cmdline", std::ios::binary);
  std::string name;
  std::getline(file, name, '\0');
  if (name.empty()) return "trainer";
  return link_in_workspace(root).value_or(name);
}

}  // namespace phalanx
