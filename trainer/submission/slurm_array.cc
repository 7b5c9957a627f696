// SPDX-License-Identifier: Apache-2.0
#include "trainer/submission/slurm_array.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "trainer/base/user_error.h"
#include "trainer/io/file.h"
#include "trainer/run/load_config.h"
#include "trainer/submission/shell_words.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// Collects what is wrong with lines of a file; what is wrong with several alike, once.
class LineMistakes {
 public:
  explicit LineMistakes(const fs::path& file) : file_(file) {}

  void collect(int64_t line, const std::function<void()>& check) {
    try {
      check();
    } catch (const UserError& error) {
      if (!told_.insert(error.what()).second) return;
      text_ +=
          fmt::format("{}{}:{}: {}", text_.empty() ? "" : "\n", file_.string(), line, error.what());
    }
  }

  void throw_if_any() const {
    if (!text_.empty()) throw UserError(text_);
  }

 private:
  const fs::path& file_;
  std::set<std::string> told_;
  std::string text_;
};

/// Checks one run after another.
class RunCheck {
 public:
  explicit RunCheck(Arguments before) : before_(before) {}

  void operator()(const ArrayRun& run) {
    std::vector<std::string> arguments(before_.begin(), before_.end());
    arguments.insert(arguments.end(), run.words.begin(), run.words.end());
    const UserConfig user = load_config(arguments);
    const config::Node resolved = resolved_config(user);
    if (is_given(user, "exp_dir")) take_folder(resolved.find("exp_dir")->text, run.line);
  }

 private:
  // What a config warns of is most often the same for all runs, and in the log of each.
  config::Node resolved_config(const UserConfig& user) {
    const bool is_first = std::exchange(is_first_, false);
    return is_first ? checked_config(user) : resolve_config(user, std::nullopt);
  }

  void take_folder(const fs::path& folder, int64_t line) {
    const auto [taken, is_free] = lines_.try_emplace(folder.lexically_normal(), line);
    if (is_free) return;
    throw UserError(fmt::format("exp_dir={} is that of line {} too; each run needs its own",
                                folder.string(), taken->second));
  }

  Arguments before_;
  std::map<fs::path, int64_t> lines_;  // of the folders
  bool is_first_ = true;
};

}  // namespace

std::vector<ArrayRun> read_array(const fs::path& file, Arguments before) {
  if (!fs::is_regular_file(file)) {
    throw UserError(fmt::format("--array names a file with a run a line, and there is no file '{}'",
                                file.string()));
  }
  LineMistakes mistakes(file);
  RunCheck check(before);
  std::vector<ArrayRun> runs;
  std::istringstream text(read_text(file));
  int64_t number = 0;
  for (std::string line; std::getline(text, line);) {
    mistakes.collect(++number, [&] {
      ArrayRun run{.line = number, .words = shell_words(line)};
      if (run.words.empty()) return;
      check(run);
      runs.push_back(std::move(run));
    });
  }
  mistakes.throw_if_any();
  if (!runs.empty()) return runs;
  throw UserError(
      fmt::format("--array: '{}' holds no run: write one a line, as configs and "
                  "key=value",
                  file.string()));
}

}  // namespace phalanx
