// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "trainer/registry/registry.h"

namespace phalanx {

class AnyTask;
class CommHook;
class Launcher;
class LrScheduler;
class ModelBase;
class Optimizer;
class Sink;

template <>
struct RegistryKind<AnyTask> {
  static constexpr std::string_view kName = "task";
};
template <>
struct RegistryKind<ModelBase> {
  static constexpr std::string_view kName = "model";
};
template <>
struct RegistryKind<Optimizer> {
  static constexpr std::string_view kName = "optimizer";
};
template <>
struct RegistryKind<LrScheduler> {
  static constexpr std::string_view kName = "lr_scheduler";
};
template <>
struct RegistryKind<Sink> {
  static constexpr std::string_view kName = "sink";
};
template <>
struct RegistryKind<CommHook> {
  static constexpr std::string_view kName = "comm_hook";
};
template <>
struct RegistryKind<Launcher> {
  static constexpr std::string_view kName = "launcher";
};

}  // namespace phalanx

/// REGISTER_TASK("language_modeling", LanguageModeling): the class has a `Config` with `describe`
/// and is constructed from it. In a .cc file of a target with `alwayslink = True`.
#define REGISTER_TASK(name, ...) PHALANX_REGISTER(::phalanx::AnyTask, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from Model<Interfaces...>.
#define REGISTER_MODEL(name, ...) PHALANX_REGISTER(::phalanx::ModelBase, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from Optimizer.
#define REGISTER_OPTIMIZER(name, ...) PHALANX_REGISTER(::phalanx::Optimizer, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from LrScheduler.
#define REGISTER_LR_SCHEDULER(name, ...) PHALANX_REGISTER(::phalanx::LrScheduler, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from Sink: where metrics go.
#define REGISTER_SINK(name, ...) PHALANX_REGISTER(::phalanx::Sink, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from Launcher: who starts the ranks.
#define REGISTER_LAUNCHER(name, ...) PHALANX_REGISTER(::phalanx::Launcher, name, __VA_ARGS__)
/// As REGISTER_TASK, for a class derived from CommHook: how DDP reduces a bucket of gradients.
#define REGISTER_COMM_HOOK(name, ...) PHALANX_REGISTER(::phalanx::CommHook, name, __VA_ARGS__)
