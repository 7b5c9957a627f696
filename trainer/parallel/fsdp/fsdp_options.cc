#include "trainer/parallel/fsdp/fsdp_options.h"

namespace phalanx {
namespace {

std::optional<std::string> missing_names(const AutoWrap& wrap) {
  if (wrap.policy != WrapPolicy::by_name || !wrap.names.empty()) return std::nullopt;
  return "names: policy by_name needs names of units, such as [h.*]";
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
  s.field("reshard_after_forward", &FsdpOptions::reshard_after_forward,
          "give a unit's parameters up between forward and backward; null: as the strategy has it")
      .resume_may_change();
  s.field("backward_prefetch", &FsdpOptions::backward_prefetch,
          "when the backward pass gathers the next unit: before this one's gradients are computed, "
          "after, or when it is needed")
      .choices({{"BACKWARD_PRE", BackwardPrefetch::pre},
                {"BACKWARD_POST", BackwardPrefetch::post},
                {"none", BackwardPrefetch::none}})
      .resume_may_change();
  s.field("forward_prefetch", &FsdpOptions::forward_prefetch,
          "gather the next unit while this one runs, by the order of the step before")
      .resume_may_change();
  s.field("accumulated_gradients", &FsdpOptions::accumulated_gradients,
          "what micro-batches before a step's last leave: whole gradients, reduced once (no_sync), "
          "or sharded ones, reduced each time: less memory, more communication")
      .choices({{"whole", AccumulatedGradients::whole}, {"sharded", AccumulatedGradients::sharded}})
      .resume_may_change();
  s.field("broadcast_buffers", &FsdpOptions::broadcast_buffers,
          "rank 0's buffers go to all ranks before each forward pass");
}

}  // namespace phalanx
