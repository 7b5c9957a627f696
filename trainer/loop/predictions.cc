// SPDX-License-Identifier: Apache-2.0
#include "trainer/loop/predictions.h"

#include <fmt/format.h>

#include "trainer/api/task.h"
#include "trainer/base/user_error.h"
#include "trainer/loop/prediction_rounds.h"
#include "trainer/loop/same_data.h"
#include "trainer/loop/use_model.h"
#include "trainer/step/activity.h"

namespace phalanx {

void make_predictions(const PassContext& context, const std::string& task,
                      const PredictionRequest& request, const PredictionHooks& hooks) {
  const Ranks& ranks = context.parts.data_ranks();
  const auto source =
      context.parts.task_model().task().prediction_data({.files = request.files, .ranks = ranks});
  if (!source) {
    throw UserError(fmt::format(
        "{} makes no predictions (a task that does overrides prediction_data and predict, "
        "trainer/api/task.h)",
        task));
  }
  require_same_data(ranks, source->fingerprint());
  State state = context.state;
  state.phase = Phase::predict;
  enter(ranks, context.state.step, "prediction");
  const auto compute = [&](Batch& batch, bool is_asked_for) {
    context.transport.bring(batch);
    if (is_asked_for && hooks.before) hooks.before(state, batch);
    Predictions predictions;
    use_model(context, {.activity = "prediction", .batch = &batch, .samples = source.get()},
              [&](const TaskModel& used) {
                predictions = used.task().predictions(used.model(), batch, state);
              });
    if (is_asked_for && hooks.after) hooks.after(state, batch, predictions);
    return predictions;
  };
  predict_in_rounds(*source, request, ranks, compute);
}

}  // namespace phalanx
