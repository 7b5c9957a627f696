// SPDX-License-Identifier: Apache-2.0
#include "trainer/commands/command_table.h"

#include "trainer/commands/export_format.h"
#include "trainer/commands/written_dtype.h"

namespace phalanx {
namespace {

using Takes = Positional::Takes;
using Count = Positional::Count;

constexpr Positional kConfig{"CONFIG", Takes::config};
constexpr Positional kConfigs{"CONFIG", Takes::config, Count::any};
constexpr Positional kOverrides{"key=value", Takes::override, Count::any};

Command train_command() {
  return {
      .name = "train",
      .summary = "train; what is meant without a command",
      .help =
          "Trains the model that the config describes. Several files are laid over each other "
          "from left to right, then come the overrides, in Hydra's grammar "
          "(docs/overrides.md). A run goes into a new folder, runs/NAME/run_N; with "
          "exp_dir=FOLDER it goes on from the newest good checkpoint there.",
      .examples = {"configs/quickstart.yaml", "my.yaml optimizer.lr=1e-3 '~validation'",
                   "train base.yaml large.yaml exp_dir=runs/large/run_0"},
      .positionals = {kConfig, kConfigs, kOverrides},
      .run = run_train,
      .details = fields_of_trainers,
  };
}

Command evaluate_command() {
  return {
      .name = "evaluate",
      .summary = "validate the model of a run or a checkpoint",
      .help =
          "Computes the validation loss of the newest good checkpoint in a run's folder, or of "
          "one checkpoint, with the config of the run.",
      .examples = {"evaluate runs/quickstart/run_0",
                   "evaluate runs/quickstart/run_0/checkpoints/step-00000200"},
      .positionals = {{"FOLDER", Takes::run}, kOverrides},
      .run = run_evaluate,
  };
}

Command config_command() {
  return {
      .name = "config",
      .summary = "look at configs",
      .help = "Nothing is trained or written.",
      .actions =
          {
              {
                  .name = "print",
                  .summary = "the whole config, and where each value comes from",
                  .help = "Prints what files and overrides resolve to, with every default, as a "
                          "config that makes the same run.",
                  .examples = {"config print my.yaml",
                               "config print base.yaml large.yaml "
                               "model.n_layer=8"},
                  .positionals = {kConfig, kConfigs, kOverrides},
                  .flags = {{"--minimal", "only what differs from the defaults"},
                            {"--json", "one line of JSON"}},
                  .run = run_config_print,
              },
              {
                  .name = "explain",
                  .summary = "a field's, or a section's, type, range, default and meaning",
                  .help = "Tells all that is declared of the fields at and below a dotted path; "
                          "with a config also the values there, and where they are written.",
                  .examples = {"config explain optimizer.lr", "config explain training my.yaml"},
                  .positionals = {{"PATH", Takes::key}, kConfigs, kOverrides},
                  .run = run_config_explain,
              },
              {
                  .name = "diff",
                  .summary = "what differs between two configs or runs",
                  .help = "Compares what two files, or the configs of two runs' folders, resolve "
                          "to: a line for each field that differs.",
                  .examples = {"config diff my.yaml runs/my/run_0"},
                  .positionals = {{"A", Takes::config}, {"B", Takes::config}},
                  .run = run_config_diff,
              },
              {
                  .name = "new",
                  .summary = "a commented config to begin with",
                  .help =
                      "Prints a config for the trainer, task, model, optimizer and schedule that "
                      "the overrides name, with every other field as a comment. Where there is "
                      "only one of a kind it is taken.",
                  .examples = {"config new task=language_modeling model=gpt2 optimizer=adamw "
                               "> my.yaml"},
                  .positionals = {kOverrides},
                  .run = run_config_new,
              },
              {
                  .name = "schema",
                  .summary = "JSON Schema, by which editors complete and check configs",
                  .help = "With the schema in a file, and `# yaml-language-server: $schema=FILE` "
                          "as a config's first line, VS Code's YAML extension completes and checks "
                          "the config.",
                  .examples = {"config schema > phalanx.schema.json"},
                  .run = run_config_schema,
              },
              {
                  .name = "reference",
                  .summary = "every field as a page of Markdown",
                  .help = "Prints what docs/config.md holds.",
                  .examples = {"config reference > docs/config.md"},
                  .run = run_config_reference,
              },
          },
  };
}

Flag dtype_flag() {
  Flag flag{"--dtype", "the precision of what is written; else the one that it has"};
  for (const WrittenDtype& dtype : written_dtypes()) flag.values.push_back({dtype.name});
  return flag;
}

Flag format_flag() {
  Flag flag{"--format", "the form of what is written"};
  for (const ExportFormat& format : export_formats()) {
    flag.values.push_back({format.name, format.meaning});
  }
  return flag;
}

Command checkpoint_command() {
  constexpr Positional kCheckpoints{"FOLDER", Takes::run};
  return {
      .name = "checkpoint",
      .summary = "look at checkpoints, take them elsewhere",
      .help = "FOLDER is a run's, its checkpoints folder, or one checkpoint.",
      .actions =
          {
              {
                  .name = "list",
                  .summary = "a run's checkpoints: when, how large, what was measured, health",
                  .help = "Health is told by manifests, sizes and headers; `checkpoint verify` "
                          "reads all bytes. A star marks the newest.",
                  .examples = {"checkpoint list runs/quickstart/run_0"},
                  .positionals = {kCheckpoints},
                  .run = run_checkpoint_list,
              },
              {
                  .name = "inspect",
                  .summary = "what a checkpoint says of itself",
                  .help = "Tells of the newest checkpoint of a run, or of one: where the run "
                          "stood, and what is in which file.",
                  .examples = {"checkpoint inspect runs/quickstart/run_0 --tensors"},
                  .positionals = {kCheckpoints},
                  .flags = {{"--tensors", "every tensor"},
                            {"--config", "the run's config, as JSON"}},
                  .run = run_checkpoint_inspect,
              },
              {
                  .name = "verify",
                  .summary = "read every byte and compare it with its checksum",
                  .help = "Exits with 1 where a checkpoint is damaged.",
                  .examples = {"checkpoint verify runs/quickstart/run_0"},
                  .positionals = {kCheckpoints},
                  .run = run_checkpoint_verify,
              },
              {
                  .name = "diff",
                  .summary = "which tensors differ between two checkpoints, and how much",
                  .help = "A and B are checkpoints, or runs, whose newest ones are meant.",
                  .examples = {"checkpoint diff runs/my/run_0 runs/my/run_1"},
                  .positionals = {{"A", Takes::run}, {"B", Takes::run}},
                  .run = run_checkpoint_diff,
              },
              {
                  .name = "prune",
                  .summary = "remove the checkpoints that need not stay",
                  .help = "By the rules of the run's config, which overrides change.",
                  .examples = {"checkpoint prune runs/my/run_0 checkpoint.keep_last=1"},
                  .positionals = {kCheckpoints, kOverrides},
                  .flags = {{"--dry-run", "only say what would be removed"}},
                  .run = run_checkpoint_prune,
              },
              {
                  .name = "export",
                  .summary =
                      "write the model as a folder that Hugging Face's from_pretrained opens",
                  .help = "Takes one checkpoint, or the newest of a run, and compares all that it "
                          "reads with its checksums. DESTINATION is a new or empty folder.",
                  .examples = {"checkpoint export runs/my/run_0 my_gpt2",
                               "checkpoint export runs/my/run_0 my_gpt2 --dtype=bf16"},
                  .positionals = {kCheckpoints, {"DESTINATION", Takes::run}},
                  .flags = {format_flag(), dtype_flag()},
                  .run = run_checkpoint_export,
              },
              {
                  .name = "import",
                  .summary = "make a checkpoint of a folder that save_pretrained wrote",
                  .help =
                      "FOLDER holds config.json and safetensors. DESTINATION is a new or empty "
                      "folder, which becomes a checkpoint with a model and nothing else. Prints a "
                      "config, to be laid over one of yours, that begins with it.",
                  .examples = {"checkpoint import gpt2 runs/gpt2 > gpt2.yaml",
                               "checkpoint import gpt2 runs/gpt2 model.attn_pdrop=0 --dtype=fp32"},
                  .positionals = {{"FOLDER", Takes::run}, {"DESTINATION", Takes::run}, kOverrides},
                  .flags = {dtype_flag()},
                  .run = run_checkpoint_import,
              },
          },
  };
}

Command list_command() {
  return {
      .name = "list",
      .summary = "what is registered: tasks, models, optimizers, ...",
      .help =
          "Lists everything that a config can name, what a task needs of a model and what "
          "models offer; with KIND only that kind, with NAME the fields of that one.",
      .examples = {"list", "list models", "list models gpt2"},
      .positionals = {{"KIND", Takes::word, Count::optional},
                      {"NAME", Takes::word, Count::optional}},
      .run = run_list,
      .words = listed_words,
  };
}

Command completion_command() {
  return {
      .name = "completion",
      .summary = "make the Tab key complete command lines",
      .help = "Completes commands, flags, files, the keys of overrides and their values.",
      .actions =
          {
              {
                  .name = "bash",
                  .summary = "a script for ~/.bashrc: source <(trainer completion bash)",
                  .help = "The script asks the program once for each build what can be completed, "
                          "and keeps the answer in ${XDG_CACHE_HOME:-~/.cache}/phalanx/completion.",
                  .run = run_completion_bash,
              },
              {
                  .name = "table",
                  .summary = "what that script completes from",
                  .help = "Lines of fields between tabs: what kind of line it is, the command or "
                          "section, and what may follow there.",
                  .run = run_completion_table,
              },
          },
  };
}

Command help_command() {
  return {
      .name = "help",
      .summary = "the same as COMMAND --help",
      .help = "Tells of the program, a command or an action of one.",
      .examples = {"help config", "help config print"},
      .positionals = {{"COMMAND", Takes::word, Count::any}},
      .run = run_help,
      .words = command_words,
  };
}

}  // namespace

NamedCommand program() {
  static const Command command{
      .name = "trainer",
      .help =
          "Trains the models that config files describe, and tells of them. Without a command "
          "it trains.",
      .examples = {"configs/quickstart.yaml", "my.yaml optimizer.lr=1e-3", "train --help",
                   "config print my.yaml"},
      .flags = {{"--version", "versions of the program and of what it was built with"}},
      .actions = {train_command(), evaluate_command(), config_command(), checkpoint_command(),
                  list_command(), completion_command(), help_command()},
  };
  return {.command = &command, .name = "trainer"};
}

}  // namespace phalanx
