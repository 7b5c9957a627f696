// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace file_faults {

/// A change of a file or folder that a program is about to make.
struct Operation {
  std::string_view kind;   ///< "pwrite", "rename", …: the call's name.
  std::string path;        ///< Absolute.
  std::string other = {};  ///< Where a rename leads to.
  std::size_t bytes = 0;   ///< How many a write has.
  std::function<long(std::size_t bytes)> call =
      {};  ///< The system call: -1 and errno, or a result.
};

/// What has become of it, for the journal.
struct Change {
  std::string_view kind;  ///< "" if nothing has changed.
  ino_t inode = 0;
  int64_t offset = 0;
  std::string_view data = {};
};

/// What to do with an operation. Written `moment|action|who|name|occurrence`, for example
/// `half|kill|1|pwrite run/checkpoints/step.tmp/model.safetensors|3`.
struct Rule {
  std::string moment;  ///< "before", "half" (of a write) or "after".
  /// "kill", "kill-all", "kill-launcher", "signal-15", "signal-launcher-15", "short", or an errno's
  /// number.
  std::string action;
  std::string who;
  std::string name;
  long occurrence = 0;     ///< The first is 1.
  bool and_later = false;  ///< Written `3+`.
};

/// Looks at every change of one folder and of what is below it, and lets it happen, fail, or be the
/// process's last. Told what to do by the environment:
///   FILE_FAULTS_ROOT     the folder, an absolute path without links
///   FILE_FAULTS_RULES    rules, with line ends between them
///   FILE_FAULTS_TRACE    a folder: a file for each process gets a line after each operation
///   FILE_FAULTS_JOURNAL  a file that gets every change of all processes in order, with its data
///   FILE_FAULTS_LOCKS    an errno's number: every lock fails with it, as on a file system without
///                        locks
///
/// An operation's name is its kind and its path below the folder, without the numbers that differ
/// from run to run: `rename run/checkpoints/step.tmp run/checkpoints/step`.
class FaultLayer {
 public:
  static FaultLayer& instance();

  bool watches(std::string_view path) const;

  /// What locks of watched files fail with; 0: they do not.
  int lock_error() const { return lock_error_; }

  /// Does what the rules want, or makes the call and notes it. `changed` is asked after success.
  long perform(const Operation& operation, const std::function<Change(long result)>& changed);

 private:
  FaultLayer();
  void begin_process();
  std::string relative(std::string_view path) const;
  std::string name_of(const Operation& operation) const;
  const Rule* rule_for(const std::string& name, long occurrence, std::string_view moment) const;
  long perform_once(const Operation& operation, const std::string& name, long occurrence);
  void trace(const Operation& operation, const std::string& name, long occurrence,
             long result) const;
  void note(const Operation& operation, const Change& change) const;

  std::string root_;
  std::string trace_folder_;
  std::string journal_path_;
  int lock_error_;
  std::vector<Rule> rules_;
  std::mutex mutex_;  // of what follows, and of the operations themselves
  pid_t process_ = 0;
  std::string who_;  // RANK of the environment, or "main"
  std::unordered_map<std::string, long> occurrences_;
  int trace_ = -1;
  int journal_ = -1;
};

}  // namespace file_faults
