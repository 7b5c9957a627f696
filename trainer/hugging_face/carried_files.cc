// SPDX-License-Identifier: Apache-2.0
#include "trainer/hugging_face/carried_files.h"

#include <algorithm>
#include <utility>

#include "trainer/hugging_face/folder_files.h"
#include "trainer/hugging_face/generation_file.h"
#include "trainer/tokenizers/load_tokenizer.h"

namespace phalanx {
namespace {

const Attachment* find(const Attachments& files, const std::string& name) {
  const auto found = std::find_if(files.begin(), files.end(),
                                  [&](const Attachment& file) { return file.name == name; });
  return found == files.end() ? nullptr : &*found;
}

bool holds_all(const Attachments& source, const Attachments& files) {
  return std::all_of(files.begin(), files.end(), [&](const Attachment& file) {
    const Attachment* there = find(source, file.name);
    return there != nullptr && there->content == file.content;
  });
}

// A tokenizer of another form beside the task's own must not be read in its place later.
void add_those_of_tokenizer(const Attachments& source, Attachments& files) {
  std::vector<std::string> names;
  for (const Attachment& file : files) names.push_back(file.name);
  const std::vector<std::string> read = tokenizer_file_names(names);
  for (const Attachment& file : source) {
    if (!is_tokenizer_file(file.name) || find(files, file.name) != nullptr) continue;
    names.push_back(file.name);
    if (tokenizer_file_names(names) == read) {
      files.push_back(file);
    } else {
      names.pop_back();
    }
  }
}

void add_generation_file(const Attachments& source, std::optional<int64_t> end_of_text,
                         Attachments& files) {
  if (find(files, kGenerationFile) != nullptr) return;
  const Attachment* there = find(source, kGenerationFile);
  if (there == nullptr && !end_of_text) return;
  std::string content = there == nullptr ? "{}" : there->content;
  if (end_of_text) content = with_end_token(content, *end_of_text, kGenerationFile);
  files.push_back({.name = kGenerationFile, .content = std::move(content)});
}

}  // namespace

Attachments carried_files(Attachments of_task, const Attachments& source,
                          std::optional<int64_t> end_of_text) {
  Attachments files = std::move(of_task);
  if (!files.empty() && holds_all(source, files)) add_those_of_tokenizer(source, files);
  add_generation_file(source, end_of_text, files);
  return files;
}

std::set<std::string> names_that_go_along(const std::vector<std::string>& carried) {
  const std::vector<std::string> read = tokenizer_file_names(carried);
  std::set<std::string> names;
  for (const std::string& name : carried) {
    const bool is_read = std::find(read.begin(), read.end(), name) != read.end();
    const bool goes_with_tokenizer = !read.empty() && !is_read && is_tokenizer_file(name);
    if (name == kGenerationFile || goes_with_tokenizer) names.insert(name);
  }
  return names;
}

}  // namespace phalanx
