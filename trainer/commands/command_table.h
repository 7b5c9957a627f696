// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "trainer/cli/command.h"
#include "trainer/cli/command_parse.h"

namespace phalanx {

/// The program, with its commands as actions; the first is meant where none is named.
NamedCommand program();

int run_train(const Invocation& invocation);
int run_evaluate(const Invocation& invocation);
int run_config_print(const Invocation& invocation);
int run_config_explain(const Invocation& invocation);
int run_config_diff(const Invocation& invocation);
int run_config_new(const Invocation& invocation);
int run_config_schema(const Invocation& invocation);
int run_config_reference(const Invocation& invocation);
int run_checkpoint_list(const Invocation& invocation);
int run_checkpoint_inspect(const Invocation& invocation);
int run_checkpoint_verify(const Invocation& invocation);
int run_checkpoint_diff(const Invocation& invocation);
int run_checkpoint_prune(const Invocation& invocation);
int run_checkpoint_export(const Invocation& invocation);
int run_checkpoint_import(const Invocation& invocation);
int run_list(const Invocation& invocation);
int run_completion_bash(const Invocation& invocation);
int run_completion_table(const Invocation& invocation);
int run_help(const Invocation& invocation);

/// The words that may follow `trainer list`: kinds, then names of one.
std::vector<std::string> listed_words(Arguments before);
/// The words that may follow `trainer help`: a command, then an action.
std::vector<std::string> command_words(Arguments before);
/// Every field that a config may have, for `trainer train --help`.
std::string fields_of_trainers(const TextStyle& style);

}  // namespace phalanx
