// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace phalanx {

/// A file that `trainer new` writes: its path in the user's folder, and its text.
struct SkeletonFile {
  std::string path;
  std::string text;
};

/// What a skeleton can be of: "task", "model", ….
std::vector<std::string> skeleton_kinds();

/// The files of a class `name` (words in lower case with _ between them) of a kind: NAME.h,
/// NAME.cc, NAME_test.cc, NAME.yaml. Made of the templates in skeletons/KIND, of a task on a CSV
/// file (classification, regression) in skeletons/table. `own_step`: a task runs its own training
/// step.
std::vector<SkeletonFile> skeleton_files(std::string_view kind, std::string_view name,
                                         bool own_step = false);

/// The targets of these files, for a BUILD file.
std::string skeleton_targets(std::string_view kind, std::string_view name);

/// The files of a folder that has none yet: WORKSPACE, and BUILD with `targets` and the program
/// `trainer`. Made of the templates in skeletons/workspace.
std::vector<SkeletonFile> workspace_files(std::string_view name, std::string_view targets);

}  // namespace phalanx
