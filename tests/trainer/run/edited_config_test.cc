// SPDX-License-Identifier: Apache-2.0
// A run is what its checkpoint says: whichever way a field gets another value before a resume, by
// an edit of the run's own config.yaml, an override or a file that includes it, the answer is one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/commands/command_fixture.h"
#include "trainer/base/user_error.h"
#include "trainer/config/syntax/parse.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/diagnostics.h"
#include "trainer/run/load_config.h"
#include "trainer/run/run_config.h"

namespace phalanx::tiny {
namespace {

namespace fs = std::filesystem;

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using List = std::vector<std::string>;

constexpr const char* kOwn = "run/config.yaml";

class EditedConfig : public CommandTest {
 protected:
  EditedConfig() {
    EXPECT_EQ(run({"tiny.yaml", "exp_dir=run", "task.fails_at=5"}).code, 1);
    EXPECT_EQ(run({kOwn, "exp_dir=run", "task.fails_at=null"}).code, 0);
    own_ = read(kOwn);
  }

  static config::Node parsed(const std::string& path) {
    config::Diagnostics diagnostics;
    config::Node tree = config::read_file(path, diagnostics);
    diagnostics.throw_if_any();
    return tree;
  }

  /// The run's config.yaml with another value, as an editor leaves it.
  static void edit(const std::string& path, const config::Node& value) {
    config::Node tree = parsed(kOwn);
    config::Node* place = &tree;
    for (const std::string& key : config::split_path(path)) place = place->find(key);
    *place = value;
    write(kOwn, config::print(tree));
  }

  void restore() const { write(kOwn, own_); }

  std::string own_;
};

TEST_F(EditedConfig, IsRefusedWithTheLineAndTheWayBack) {
  edit("training.seed", config::Node::integer(7));
  const Outcome outcome = run({kOwn, "exp_dir=run", "training.max_steps=10"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("training.seed: was 0, now 7 (run/config.yaml:"),
                    HasSubstr("restore config.yaml, which was edited, from the checkpoint: trainer "
                              "checkpoint inspect run --config | tail -n 1 > run/config.yaml"),
                    Not(HasSubstr("The run's own config goes on"))));
  EXPECT_EQ(run({kOwn, "exp_dir=run", "++training.seed=7", "training.max_steps=10"}).code, 0);
}

TEST_F(EditedConfig, DoesNotCountForAStartWithTheRunsOwnValues) {
  edit("training.seed", config::Node::integer(7));
  const Outcome outcome = run({"tiny.yaml", "exp_dir=run", "training.max_steps=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(parsed(kOwn).find_path("training.seed")->text, "0") << "what the run is";
}

TEST_F(EditedConfig, MayChangeWhatAResumeMayChange) {
  edit("training.max_steps", config::Node::integer(10));
  const Outcome outcome = run({kOwn, "exp_dir=run"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("training.max_steps: was 8, now 10 (run/config.yaml:"));
}

TEST_F(EditedConfig, OfAMovedRunIsItsOwn) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=here", "log_dir_name=in_${exp_dir}_too"}).code, 0);
  fs::create_directory("far");
  fs::rename("here", "far/there");
  const Outcome outcome =
      run({"far/there/config.yaml", "exp_dir=far/there", "training.max_steps=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, Not(HasSubstr("log_dir_name")));
}

TEST_F(EditedConfig, OfARunWithinAnotherWordIsItsOwn) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=un", "log_dir_name=run_${exp_dir}"}).code, 0);
  fs::rename("un", "there");
  EXPECT_EQ(run({"there/config.yaml", "exp_dir=there", "training.max_steps=10"}).code, 0);
}

TEST_F(EditedConfig, ANumberIsNoFolder) {
  EXPECT_EQ(run({"tiny.yaml", "exp_dir=1", "training.seed=1"}).code, 0);
  fs::rename("1", "2");
  EXPECT_THAT(run({"tiny.yaml", "exp_dir=2", "training.seed=2", "training.max_steps=10"}).errors,
              HasSubstr("training.seed: was 1, now 2"));
}

// The next checkpoint comes after the end of the start that was forced.
TEST_F(EditedConfig, OfAForcedStartGoesOnBeforeItsFirstCheckpoint) {
  const Outcome forced =
      run({kOwn, "exp_dir=run", "++training.seed=7", "training.max_steps=10", "task.fails_at=9"});
  EXPECT_EQ(forced.code, 1);
  EXPECT_THAT(forced.output, HasSubstr("training.seed: was 0, now 7"));
  const Outcome next = run({kOwn, "exp_dir=run", "task.fails_at=null"});
  EXPECT_EQ(next.code, 0) << next.errors;
  EXPECT_THAT(next.output, Not(HasSubstr("training.seed: was"))) << "told before";
}

TEST_F(EditedConfig, OfAForcedStartGoesOnBeforeItsFirstCheckpointAlsoWhereItHasMoved) {
  const Outcome forced = run({kOwn, "exp_dir=run", "++log_dir_name=in_${exp_dir}_too",
                              "training.max_steps=10", "task.fails_at=9"});
  EXPECT_EQ(forced.code, 1);
  EXPECT_THAT(forced.output, HasSubstr("log_dir_name: was logs, now in_run_too"));
  fs::rename("run", "there");
  const Outcome next = run({"there/config.yaml", "exp_dir=there", "task.fails_at=null"});
  EXPECT_EQ(next.code, 0) << next.errors;
  EXPECT_THAT(next.output, Not(HasSubstr("log_dir_name: was"))) << "told before";
}

TEST_F(EditedConfig, IsNotForcedByAStartThatTrainsNothing) {
  const Outcome nothing = run({kOwn, "exp_dir=run", "++training.seed=7"});
  EXPECT_EQ(nothing.code, 0) << nothing.errors;
  EXPECT_THAT(nothing.output,
              HasSubstr("at its end, step 8: nothing is trained with what ++ sets"));
  EXPECT_EQ(parsed(kOwn).find_path("training.seed")->text, "0");
  const Outcome next = run({kOwn, "exp_dir=run", "++training.seed=7", "training.max_steps=10"});
  EXPECT_EQ(next.code, 0) << next.errors;
  EXPECT_THAT(next.output, HasSubstr("training.seed: was 0, now 7"));
  EXPECT_EQ(parsed(kOwn).find_path("training.seed")->text, "7");
}

TEST_F(EditedConfig, WithANewKeyOfAMapIsToldSo) {
  const Outcome outcome =
      run({kOwn, "exp_dir=run", "about.tags={site: here}", "training.max_steps=10"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_THAT(outcome.output, HasSubstr("about.tags.site: was (absent), now here (command line)"));
}

TEST_F(EditedConfig, OfAnotherNumberOfSamplesAStepIsRefusedByTheRunsOwn) {
  EXPECT_EQ(run({kOwn, "exp_dir=run", "training.global_batch_size=4", "training.max_steps=9"}).code,
            0)
      << "what the run has";
  const Outcome outcome =
      run({kOwn, "exp_dir=run", "training.global_batch_size=8", "training.max_steps=10"});
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.errors,
              AllOf(HasSubstr("steps hold 4 samples, which a run keeps"),
                    HasSubstr("Set training.global_batch_size=4"), Not(HasSubstr("++key=value"))));
}

// The paths of all values of a config that are no maps.
void add_leaves(const config::Node& node, const std::string& path, List& leaves) {
  for (const config::Entry& entry : node.entries) {
    const std::string inner = config::join_path(path, entry.key);
    if (entry.value.is_map()) {
      add_leaves(entry.value, inner, leaves);
    } else {
      leaves.push_back(inner);
    }
  }
}

std::string override_of(const std::string& path, const config::Node& value) {
  return path + "=" + config::print_inline(value);
}

// Some value that is another one, and that the config takes.
std::optional<config::Node> another(const std::string& path, const config::Node& value) {
  const auto takes = [&](const config::Node& candidate) {
    if (config::same_value(candidate, value)) return false;
    try {
      const UserConfig user = load_config(List{kOwn, override_of(path, candidate)});
      return !config::same_value(*resolve_config(user, "run").find_path(path), value);
    } catch (const UserError&) {
      return false;
    }
  };
  for (const config::Node& candidate :
       {config::Node::boolean(true), config::Node::boolean(false), config::Node::integer(1),
        config::Node::integer(16), config::Node::real(0.5), config::Node::plain("7s"),
        config::Node::plain("other"), config::Node::null()}) {
    if (takes(candidate)) return candidate;
  }
  return std::nullopt;
}

// What a resume with this config is told: the changes, or those that are refused.
std::string answer_to(const std::string& file, const List& overrides = {}) {
  List arguments{file};
  arguments.insert(arguments.end(), overrides.begin(), overrides.end());
  const UserConfig user = load_config(arguments);
  const config::Node resolved = resolve_config(user, "run");
  std::string answer;
  const auto without_place = [](const std::string& line) {
    return line.substr(0, line.find(" ("));
  };
  try {
    for (const auto& change : check_against_earlier("run", user, resolved)) {
      answer += without_place(to_string(change)) + "\n";
    }
  } catch (const UserError& error) {
    const std::string text = error.what();
    answer = "refused";
    for (std::size_t at = text.find("\n  "); at != text.npos; at = text.find("\n  ", at + 1)) {
      answer += "\n" + without_place(text.substr(at + 3, text.find('\n', at + 1) - at - 3));
    }
  }
  return answer;
}

std::string nested(const std::string& path, const config::Node& value) {
  std::string text, indent;
  for (const std::string& key : config::split_path(path)) {
    text += "\n" + indent + key + ":";
    indent += "  ";
  }
  return text + " " + config::print_inline(value) + "\n";
}

TEST_F(EditedConfig, IsAnsweredAsAnOverrideAndAnInclude) {
  const config::Node whole = parsed(kOwn);
  List leaves;
  add_leaves(whole, "", leaves);
  int compared = 0;
  for (const std::string& path : leaves) {
    if (path == "exp_dir") continue;
    const std::optional<config::Node> value = another(path, *whole.find_path(path));
    if (!value) continue;
    const std::string by_override = answer_to(kOwn, {override_of(path, *value)});
    EXPECT_THAT(by_override, HasSubstr(path)) << "it is said";
    write("mine.yaml", "include: run/config.yaml" + nested(path, *value));
    EXPECT_EQ(answer_to("mine.yaml"), by_override) << path;
    edit(path, *value);
    EXPECT_EQ(answer_to(kOwn), by_override) << path;
    restore();
    ++compared;
  }
  EXPECT_GT(compared, 30) << "of " << leaves.size() << " fields; the others take one value only";
}

}  // namespace
}  // namespace phalanx::tiny
