// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/new/skeleton.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace phalanx {
namespace {

struct Template {
  std::string_view path;  // Below skeletons/, without ".in".
  std::string_view text;
};

constexpr Template kTemplates[] = {
#include "trainer/commands/skeletons.inc"
};

constexpr std::string_view kTargets = "BUILD";  // A part of a BUILD file, no file of its own.

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// count_words: CountWords.
std::string class_name(std::string_view name) {
  std::string joined;
  bool begins_word = true;
  for (const char c : name) {
    if (c != '_') joined += begins_word ? static_cast<char>(std::toupper(c)) : c;
    begins_word = c == '_';
  }
  return joined;
}

// The templates call the class Skeleton, and all else of it skeleton.
std::string named(std::string_view text, std::string_view name) {
  std::string changed(text);
  replace_all(changed, "Skeleton", class_name(name));
  replace_all(changed, "skeleton", name);
  return changed;
}

// Where the templates of a kind are, and which of the two kinds that share a folder it is: the text
// between marks is that of the first and that of the second, ⟨first¦second⟩. A mark that is a line
// by itself goes with its line end.
struct Source {
  std::string_view folder;
  bool is_second = false;
};

Source source_of(std::string_view kind) {
  if (kind == "classification") return {.folder = "table"};
  if (kind == "regression") return {.folder = "table", .is_second = true};
  return {.folder = kind};
}

constexpr std::string_view kBegin = "⟨";
constexpr std::string_view kElse = "¦";
constexpr std::string_view kEnd = "⟩";
// Between these: what a task has that runs its own training step.
constexpr std::string_view kBeginOwnStep = "⟦";
constexpr std::string_view kEndOwnStep = "⟧";

bool is_mark(std::string_view text) {
  return text == kBegin || text == kElse || text == kEnd || text == kBeginOwnStep ||
         text == kEndOwnStep;
}

std::string without_ends_of_marks(std::string_view text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size() - 1);
    const std::string_view line = text.substr(at, end - at);
    result += is_mark(line) ? line : text.substr(at, end + 1 - at);
    at = end + 1;
  }
  return result;
}

std::string with_or_without_own_step(std::string text, bool own_step) {
  for (size_t begin = 0; (begin = text.find(kBeginOwnStep)) != text.npos;) {
    const size_t inner = begin + kBeginOwnStep.size();
    const size_t end = text.find(kEndOwnStep, inner);
    if (end == text.npos) throw std::logic_error("a mark of a template has no counterpart");
    const std::string kept = own_step ? text.substr(inner, end - inner) : std::string();
    text.replace(begin, end + kEndOwnStep.size() - begin, kept);
  }
  return text;
}

std::string chosen(std::string_view text, bool is_second, bool own_step) {
  const std::string both = with_or_without_own_step(without_ends_of_marks(text), own_step);
  std::string result;
  size_t at = 0;
  for (size_t begin = 0; (begin = both.find(kBegin, at)) != both.npos;) {
    const size_t middle = both.find(kElse, begin);
    const size_t end = both.find(kEnd, middle);
    if (end == both.npos) throw std::logic_error("a mark of a template has no counterpart");
    result.append(both, at, begin - at);
    const size_t first = begin + kBegin.size();
    const size_t second = middle + kElse.size();
    result += is_second ? both.substr(second, end - second) : both.substr(first, middle - first);
    at = end + kEnd.size();
  }
  return result.append(both, at);
}

// The path within a folder; empty for a template of another one.
std::string_view path_in(std::string_view folder, const Template& each) {
  const std::string_view own = each.path.substr(0, each.path.find('/'));
  return own == folder ? each.path.substr(own.size() + 1) : std::string_view();
}

std::string_view template_text(std::string_view folder, std::string_view path) {
  const auto* found = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                   [&](const Template& t) { return path_in(folder, t) == path; });
  if (found == std::end(kTemplates)) throw std::logic_error("there is no such template");
  return found->text;
}

}  // namespace

std::vector<std::string> skeleton_kinds() {
  return {"task", "model", "optimizer", "lr_scheduler", "sink", "mixin"};
}

std::vector<SkeletonFile> skeleton_files(std::string_view kind, std::string_view name,
                                         bool own_step) {
  std::vector<SkeletonFile> files;
  const auto [folder, is_second] = source_of(kind);
  for (const Template& each : kTemplates) {
    const std::string_view path = path_in(folder, each);
    if (path.empty() || path == kTargets) continue;
    files.push_back(
        {.path = named(path, name), .text = named(chosen(each.text, is_second, own_step), name)});
  }
  return files;
}

std::string skeleton_targets(std::string_view kind, std::string_view name) {
  const auto [folder, is_second] = source_of(kind);
  return named(chosen(template_text(folder, kTargets), is_second, /*own_step=*/false), name);
}

std::vector<SkeletonFile> workspace_files(std::string_view name, std::string_view targets) {
  std::vector<SkeletonFile> files;
  for (const Template& each : kTemplates) {
    const std::string_view path = path_in("workspace", each);
    if (path.empty()) continue;
    std::string text = named(each.text, name);
    replace_all(text, "TARGETS\n", targets);
    files.push_back({.path = std::string(path), .text = std::move(text)});
  }
  return files;
}

}  // namespace phalanx
