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

constexpr std::string_view kTargets = "BUILD";  // Of a kind: part of a BUILD file, no file.

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

// The path within the folder of a kind; empty for a template of another one.
std::string_view path_in(std::string_view kind, const Template& each) {
  const std::string_view folder = each.path.substr(0, each.path.find('/'));
  return folder == kind ? each.path.substr(folder.size() + 1) : std::string_view();
}

std::string_view template_text(std::string_view kind, std::string_view path) {
  const auto* found = std::find_if(std::begin(kTemplates), std::end(kTemplates),
                                   [&](const Template& t) { return path_in(kind, t) == path; });
  if (found == std::end(kTemplates)) throw std::logic_error("there is no such template");
  return found->text;
}

}  // namespace

std::vector<std::string> skeleton_kinds() {
  return {"task", "model", "optimizer", "lr_scheduler", "sink", "mixin"};
}

std::vector<SkeletonFile> skeleton_files(std::string_view kind, std::string_view name) {
  std::vector<SkeletonFile> files;
  for (const Template& each : kTemplates) {
    const std::string_view path = path_in(kind, each);
    if (path.empty() || path == kTargets) continue;
    files.push_back({.path = named(path, name), .text = named(each.text, name)});
  }
  return files;
}

std::string skeleton_targets(std::string_view kind, std::string_view name) {
  return named(template_text(kind, kTargets), name);
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
