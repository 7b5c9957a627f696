// SPDX-License-Identifier: Apache-2.0
#include "trainer/parallel/ddp/rank_group.h"

namespace phalanx {

ShardedTensorView of_group(ShardedTensorView view, const RankGroup& group) {
  const int64_t elements = view.end - view.begin;
  view.shape.insert(view.shape.begin(), group.count);
  view.begin = group.index * elements;
  view.end = view.begin + elements;
  view.replicas = group.members;
  return view;
}

}  // namespace phalanx
