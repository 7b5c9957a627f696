// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/fsdp/fsdp_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iterator>

#include "trainer/base/user_error.h"
#include "trainer/config/syntax/print.h"
#include "trainer/config/tree/scalar.h"
#include "trainer/config/tree/schema.h"

namespace phalanx {
namespace {

std::optional<std::string> missing_names(const AutoWrap& wrap) {
  if (wrap.policy != WrapPolicy::by_name || !wrap.names.empty()) return std::nullopt;
  return "names: policy by_name needs names of units, such as [h.*]";
}

// PyTorch's FSDP may run ahead of its GPU without it, and take memory for every unit at once.
std::optional<std::string> unlimited_gathers(const FsdpOptions& options) {
  if (options.limit_all_gathers) return std::nullopt;
  return "limit_all_gathers: false is not offered: units use the memory of two buffers in turns, "
         "which bounds peak memory and costs no time, since a gather is begun one unit ahead; "
         "leave "
         "it out, or set it to true";
}

std::optional<std::string> twice_grouped(const FsdpOptions& options) {
  const bool has_mesh = options.mesh.replicate || options.mesh.shard;
  if (!has_mesh || !options.shard_group_size) return std::nullopt;
  return "mesh: shard_group_size says the same: leave one of them out";
}

}  // namespace

void AutoWrap::describe(config::Schema<AutoWrap>& s) {
  s.field("policy", &AutoWrap::policy,
          "which units are sharded for themselves: each (unit), those above a size, those with a "
          "name, or none: the model is one")
      .choices({{"unit", WrapPolicy::unit},
                {"size", WrapPolicy::size},
                {"by_name", WrapPolicy::by_name},
                {"none", WrapPolicy::none}})
      .resume_may_change();
  s.field("min_params", &AutoWrap::min_params,
          "policy size: smaller units go with what is around them")
      .count()
      .unit("parameters")
      .at_least(1)
      .resume_may_change();
  s.field("names", &AutoWrap::names,
          "policy by_name: units by dotted name or by class, `*` and `?` for any letters: h.*, "
          "Block")
      .resume_may_change();
  s.ineffective({"min_params"}, "policy is not size",
                [](const AutoWrap& wrap) { return wrap.policy != WrapPolicy::size; });
  s.ineffective({"names"}, "policy is not by_name",
                [](const AutoWrap& wrap) { return wrap.policy != WrapPolicy::by_name; });
  s.check(missing_names);
}

void FsdpMixedPrecision::describe(config::Schema<FsdpMixedPrecision>& s) {
  const auto precision = [&s](const char* name, std::optional<LowPrecision> FsdpMixedPrecision::*at,
                              const char* former_name, const char* meaning) {
    s.field(name, at, meaning)
        .deprecated(former_name)
        .choices({{"bfloat16", LowPrecision::bfloat16},
                  {"float16", LowPrecision::float16},
                  {"float32", LowPrecision::float32}})
        .resume_may_change();
  };
  precision("param_dtype", &FsdpMixedPrecision::param_dtype, "param",
            "what units compute with, and what is gathered; null: mixed_precision.dtype where that "
            "is enabled, else the parameters' own");
  precision("reduce_dtype", &FsdpMixedPrecision::reduce_dtype, "reduce",
            "what gradients are added up and sent in; null: as param_dtype");
  precision("buffer_dtype", &FsdpMixedPrecision::buffer_dtype, "buffer",
            "what floating-point buffers are cast to, for good; null: as they are");
  s.field("keep_low_precision_grads", &FsdpMixedPrecision::keep_low_precision_grads,
          "reduced gradients stay in the precision they were reduced in until the optimizer uses "
          "them, and are clipped in it: less memory before that")
      .resume_may_change();
  s.field("cast_forward_inputs", &FsdpMixedPrecision::cast_forward_inputs,
          "cast floating-point tensors that go into the model and into units to param_dtype")
      .resume_may_change();
}

void FsdpMesh::describe(config::Schema<FsdpMesh>& s) {
  s.field("replicate", &FsdpMesh::replicate, "copies of the model; null: what `shard` leaves")
      .count()
      .at_least(1)
      .resume_may_change();
  s.field("shard", &FsdpMesh::shard, "ranks that share one copy; null: what `replicate` leaves")
      .unit("ranks")
      .at_least(1)
      .resume_may_change();
}

void FsdpOptions::describe(config::Schema<FsdpOptions>& s) {
  s.field("auto_wrap", &FsdpOptions::auto_wrap, "what is gathered and freed together");
  s.field("ignored_modules", &FsdpOptions::ignored_modules,
          "modules by dotted name that every rank keeps whole; their gradients are averaged")
      .resume_may_change();
  s.field("shard_group_size", &FsdpOptions::shard_group_size,
          "hybrid strategies: how many ranks share one copy of the model; null: those of a host")
      .unit("ranks")
      .at_least(1)
      .resume_may_change();
  s.field("mesh", &FsdpOptions::mesh,
          "hybrid strategies: the ranks as copies x shards, in place of shard_group_size");
  s.field("reshard_after_forward", &FsdpOptions::reshard_after_forward,
          "give a unit's parameters up between forward and backward; a number: so many ranks that "
          "share a copy keep them whole together; null: as the strategy has it")
      .resume_may_change();
  s.field("backward_prefetch", &FsdpOptions::backward_prefetch,
          "when the backward pass gathers the next unit: before this one's gradients are computed, "
          "after, or (none or null) when it is needed")
      .choices({{"BACKWARD_PRE", BackwardPrefetch::pre}, {"BACKWARD_POST", BackwardPrefetch::post}})
      .null_is("none")
      .resume_may_change();
  s.field("forward_prefetch", &FsdpOptions::forward_prefetch,
          "gather the next unit while this one runs, by the order of the pass before; auto: where "
          "passes repeat each other")
      .null_is("auto")
      .resume_may_change();
  s.field("limit_all_gathers", &FsdpOptions::limit_all_gathers,
          "at most two units are whole at a time, beside the root; always so")
      .resume_may_change();
  s.field("accumulated_gradients", &FsdpOptions::accumulated_gradients,
          "what micro-batches before a step's last leave: whole gradients, reduced once (no_sync), "
          "or sharded ones, reduced each time: less memory, more communication")
      .choices({{"whole", AccumulatedGradients::whole}, {"sharded", AccumulatedGradients::sharded}})
      .resume_may_change();
  s.field("broadcast_buffers", &FsdpOptions::broadcast_buffers,
          "rank 0's buffers go to all ranks before each forward pass");
  s.field("mixed_precision", &FsdpOptions::mixed_precision,
          "lower precision for what is gathered, computed and reduced");
  s.field(
       "deferred_init", &FsdpOptions::deferred_init,
       "draw initial values a tensor at a time, straight into shards: a model that is larger than "
       "a rank's memory can start; bitwise as without")
      .resume_may_change();
  s.field(
       "order_timeout", &FsdpOptions::order_timeout,
       "a rank that leaves the order of the passes before waits so long for the others to do the "
       "same, then names itself and the unit")
      .greater_than(std::chrono::milliseconds(0))
      .resume_may_change();
  s.check(twice_grouped);
  s.check(unlimited_gathers);
}

namespace {

// The ranks that share one copy, where the options say so.
std::optional<int64_t> shard_group_size(const FsdpOptions& options, int64_t world_size) {
  const auto [replicate, shard] = options.mesh;
  if (!replicate && !shard) return options.shard_group_size;
  const int64_t shards = shard ? *shard : world_size / *replicate;
  const int64_t copies = replicate ? *replicate : world_size / *shard;
  if (copies * shards == world_size) return shards;
  throw UserError(fmt::format(
      "parallel.fsdp.mesh is {} x {}, and there are {} ranks: copies x shards must be all of them; "
      "each can be {}",
      replicate ? std::to_string(*replicate) : "?", shard ? std::to_string(*shard) : "?",
      world_size, fmt::join(fsdp::divisors(world_size), ", ")));
}

}  // namespace

fsdp::Mesh mesh_of(ShardingStrategy strategy, const FsdpOptions& options, int64_t rank,
                   std::span<const int64_t> hosts) {
  if (!is_hybrid(strategy) && (options.mesh.replicate || options.mesh.shard)) {
    throw UserError(fmt::format(
        "parallel.fsdp.mesh is for HYBRID_SHARD and _HYBRID_SHARD_ZERO2, and the strategy is {}: "
        "leave it out, or choose one of these",
        to_string(strategy)));
  }
  return fsdp::mesh_of(strategy, rank, hosts, shard_group_size(options, std::ssize(hosts)));
}

std::string unsharded_warning(ShardingStrategy strategy, const FsdpOptions& options,
                              const fsdp::Mesh& mesh) {
  if (!is_hybrid(strategy) || mesh.shards > 1 || mesh.replicas == 1) return {};
  const bool has_mesh = options.mesh.replicate || options.mesh.shard;
  const char* const field =
      has_mesh ? "parallel.fsdp.mesh.shard" : "parallel.fsdp.shard_group_size";
  const bool is_chosen = has_mesh || options.shard_group_size;
  const std::vector<int64_t> sizes = fsdp::divisors(mesh.replicas);
  return fmt::format(
      "{} shards nothing here: {}, so that each of the {} ranks keeps the whole model. Set "
      "parallel.sharding_strategy=FULL_SHARD to shard it over all ranks, or {} to the number of "
      "ranks that share a copy: {}",
      to_string(strategy),
      is_chosen ? fmt::format("{} is 1", field) : "a group is the ranks of a host, which has one",
      mesh.replicas, field, fmt::join(sizes.begin() + 1, sizes.end(), ", "));
}

std::string text_of(const FsdpOptions& options) { return config::print(config::write(options)); }

AfterForward after_forward(ShardingStrategy strategy, const FsdpOptions& options, int64_t shards) {
  const ReshardAfterForward wanted =
      options.reshard_after_forward.value_or(reshards_after_forward(strategy));
  if (const bool* gives_up = std::get_if<bool>(&wanted)) return {.gives_up = *gives_up};
  const int64_t ranks = std::get<int64_t>(wanted);
  if (ranks >= 1 && shards % ranks == 0) {
    return {.gives_up = ranks > 1, .kept_by = ranks < shards ? ranks : 1};
  }
  throw UserError(fmt::format(
      "parallel.fsdp.reshard_after_forward is {}, which does not divide the {} ranks that share a "
      "copy of the model: it can be {}",
      ranks, shards, fmt::join(fsdp::divisors(shards), ", ")));
}

namespace config {

Type Binding<ReshardAfterForward>::type() {
  Type type;
  type.own_text = "true, false or a number of ranks";
  type.canonical = [](const std::string& text) -> Parsed<std::string> {
    if (parse_boolean(text).value) return {text, ""};
    const auto ranks = parse_integer(text).value;
    if (ranks && *ranks >= 1) return {std::to_string(*ranks), ""};
    return {std::nullopt, "found '" + text + "'"};
  };
  return type;
}

void Binding<ReshardAfterForward>::from_node(ReshardAfterForward& value, const Type&,
                                             const Node& node) {
  if (const auto reshards = parse_boolean(node.text).value) {
    value = *reshards;
  } else {
    value = *parse_integer(node.text).value;
  }
}

Node Binding<ReshardAfterForward>::to_node(const ReshardAfterForward& value, const Type&) {
  if (const bool* reshards = std::get_if<bool>(&value)) return Node::boolean(*reshards);
  return Node::integer(std::get<int64_t>(value));
}

}  // namespace config
}  // namespace phalanx
