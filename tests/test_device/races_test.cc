// SPDX-License-Identifier: Apache-2.0
// What the device finds of missing waits between streams, and that it finds nothing else.

#include "tests/test_device/races.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/tensors.h"
#include "tests/test_device/test_device.h"
#include "trainer/tensors/side_stream.h"

namespace phalanx::test_device {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

c10::Stream current() { return current_stream(0); }

void make_wait(c10::Stream later, c10::Stream earlier) {
  c10::Event event(kType);
  event.record(earlier);
  event.block(later);
}

class Races : public testing::Test {
 protected:
  Races() {
    install();
    c10::impl::VirtualGuardImpl(kType).synchronizeDevice(0);  // what other tests left
    take_races();
  }

  at::TensorOptions options_{device()};
  c10::Stream side_ = pool_stream(0, /*high_priority=*/false);

  at::Tensor ones(int64_t size) { return tensors::full({size}, 1.0, options_); }
  at::Tensor pinned() {
    return tensors::full({1000}, 3.0, at::TensorOptions().pinned_memory(true));
  }
  at::Tensor square() { return tensors::full({50, 50}, 0.1, options_).requires_grad_(); }
};

TEST_F(Races, NoneInACopyThatIsJoined) {
  const SideStream copies(device());
  const at::Tensor host = pinned();
  at::Tensor x;
  copies.run_after_computing([&] { x = host.to(device(), /*non_blocking=*/true); });
  copies.join();
  (x * 2).sum();
  EXPECT_THAT(take_races(), IsEmpty());
}

TEST_F(Races, ACopyThatIsJoinedTooLate) {
  const SideStream copies(device());
  const at::Tensor host = pinned();
  at::Tensor x;
  copies.run_after_computing([&] { x = host.to(device(), /*non_blocking=*/true); });
  x * 2;
  copies.join();
  EXPECT_THAT(take_races(),
              ElementsAre(AllOf(HasSubstr("aten::mul.Tensor reads on stream 0 of device 0"),
                                HasSubstr("copy to device writes on stream"),
                                HasSubstr("without an order"))));
}

TEST_F(Races, ACopyIntoWhatIsStillComputedWith) {
  const at::Tensor host = pinned();
  const at::Tensor x = ones(1000);
  const at::Tensor y = x * 2;
  {
    const c10::StreamGuard guard(side_);
    x.copy_(host, /*non_blocking=*/true);
  }
  make_wait(current(), side_);
  EXPECT_THAT(take_races(), testing::Not(IsEmpty()));
}

TEST_F(Races, NoneWhenTheCopyWaitsForTheComputation) {
  const at::Tensor host = pinned();
  const at::Tensor x = ones(1000);
  const at::Tensor y = x * 2;
  make_wait(side_, current());
  {
    const c10::StreamGuard guard(side_);
    x.copy_(host, /*non_blocking=*/true);
  }
  make_wait(current(), side_);
  x.sum();
  EXPECT_THAT(take_races(), IsEmpty());
}

TEST_F(Races, AnEventThatIsRecordedBeforeTheCopy) {
  const at::Tensor host = pinned();
  const at::Tensor x = ones(1000);
  make_wait(side_, current());
  c10::Event event(kType);
  event.record(side_);
  {
    const c10::StreamGuard guard(side_);
    x.copy_(host, /*non_blocking=*/true);
  }
  event.block(current());
  x.sum();
  EXPECT_THAT(take_races(), ElementsAre(HasSubstr("aten::sum")));
}

// What a side stream reads is freed.
std::vector<std::string> races_of_freeing(c10::Stream side, const at::TensorOptions& options,
                                          bool records, bool joins) {
  at::Tensor read;
  {
    const at::Tensor x = tensors::full({1000}, 1.0, options);
    make_wait(side, current());
    if (records) x.record_stream(side);
    {
      const c10::StreamGuard guard(side);
      read = x * 2;
    }
    if (joins) make_wait(current(), side);
  }
  return take_races();
}

TEST_F(Races, MemoryThatIsFreedWhileAnotherStreamReadsIt) {
  const std::string side = stream_name(number_of(side_));
  EXPECT_THAT(races_of_freeing(side_, options_, /*records=*/false, /*joins=*/false),
              ElementsAre(HasSubstr("memory of stream 0 of device 0 is given back while "
                                    "aten::mul.Tensor reads on " +
                                    side + ": stream 0 of device 0 does not wait for that")));
}

TEST_F(Races, NoneWithRecordStream) {
  EXPECT_THAT(races_of_freeing(side_, options_, /*records=*/true, /*joins=*/false), IsEmpty());
}

TEST_F(Races, NoneWhenTheSideStreamIsJoinedBefore) {
  EXPECT_THAT(races_of_freeing(side_, options_, /*records=*/false, /*joins=*/true), IsEmpty());
}

TEST_F(Races, MemoryThatIsFreedWhileAnotherStreamWritesIt) {
  {
    const at::Tensor x = ones(1000);
    make_wait(side_, current());
    const c10::StreamGuard guard(side_);
    x.fill_(2);
  }
  EXPECT_THAT(take_races(), ElementsAre(HasSubstr("while aten::fill_.Scalar writes on")));
}

TEST_F(Races, NoneInMemoryThatIsFreedWhenTheHostHasWaited) {
  {
    const at::Tensor x = ones(1000);
    make_wait(side_, current());
    {
      const c10::StreamGuard guard(side_);
      x.fill_(2);
    }
    side_.synchronize();
  }
  EXPECT_THAT(take_races(), IsEmpty());
}

// Though it is joined before its memory is handed out again: an allocator may have another stream
// that waits.
TEST_F(Races, MemoryThatIsFreedBeforeTheSideStreamIsJoined) {
  {
    const at::Tensor x = ones(1000);
    make_wait(side_, current());
    const c10::StreamGuard guard(side_);
    x.fill_(2);
  }
  make_wait(current(), side_);
  ones(1000);
  EXPECT_THAT(take_races(), ElementsAre(HasSubstr("is given back while aten::fill_")));
}

// What a side stream takes over without a wait is still written by who had it.
TEST_F(Races, MemoryThatASideStreamFillsBeforeItIsOver) {
  ones(1000);
  const at::Tensor x = tensors::empty({1000}, options_);
  {
    const c10::StreamGuard guard(side_);
    x.fill_(2);
  }
  make_wait(current(), side_);
  EXPECT_THAT(take_races(), ElementsAre(HasSubstr("freed and handed out again")));
}

// What a side stream allocates goes back to it, though the computation still reads it.
TEST_F(Races, MemoryOfASideStreamThatComputingReads) {
  const SideStream copies(device());
  {
    at::Tensor x;
    copies.run_after_computing([&] { x = ones(1000); });
    copies.join();
    x * 2;
  }
  copies.run_after_computing([&] { ones(1000); });
  EXPECT_THAT(take_races(), ElementsAre(AllOf(HasSubstr("is given back while aten::mul.Tensor"),
                                              HasSubstr("reads on stream 0 of device 0"))));
}

TEST_F(Races, NoneInMemoryOfComputingThatASideStreamFills) {
  const SideStream copies(device());
  for (int i = 0; i < 2; ++i) {
    const at::Tensor x = tensors::empty({1000}, options_);
    copies.run_after_computing([&] { x.fill_(1); });
    copies.join();
    x * 2;
  }
  EXPECT_THAT(take_races(), IsEmpty());
}

TEST_F(Races, TheHostWritesWhatIsCopied) {
  const at::Tensor host = pinned();
  const at::Tensor x = ones(1000);
  x.copy_(host, /*non_blocking=*/true);
  host.fill_(9);
  EXPECT_THAT(take_races(), ElementsAre(AllOf(HasSubstr("aten::fill_"), HasSubstr("the host"),
                                              HasSubstr("pinned memory"))));
}

TEST_F(Races, NoneWhenTheHostHasWaitedBeforeItWrites) {
  const at::Tensor host = pinned();
  const at::Tensor x = ones(1000);
  x.copy_(host, /*non_blocking=*/true);
  c10::Event event(kType);
  event.record(current());
  event.synchronize();
  host.fill_(9);
  EXPECT_THAT(take_races(), IsEmpty());
}

TEST_F(Races, TheHostReadsWhatIsNotThereYet) {
  const at::Tensor host = pinned();
  host.copy_(ones(1000), /*non_blocking=*/true);
  host.sum();
  EXPECT_THAT(take_races(), ElementsAre(HasSubstr("aten::sum reads on the host")));
}

TEST_F(Races, NoneWhenTheHostHasWaitedBeforeItReads) {
  const at::Tensor host = pinned();
  host.copy_(ones(1000), /*non_blocking=*/true);
  current().synchronize();
  EXPECT_EQ(host.sum().item().toDouble(), 1000);
  EXPECT_THAT(take_races(), IsEmpty());
}

TEST_F(Races, NoneInPinnedMemoryThatIsFreedUnderACopy) {
  const at::Tensor x = ones(1000);
  x.copy_(pinned(), /*non_blocking=*/true);
  x.copy_(pinned(), /*non_blocking=*/true);
  EXPECT_THAT(take_races(), IsEmpty());
}

std::vector<std::string> races_of_slices(c10::Stream side, const at::Tensor& x, int64_t end) {
  make_wait(side, current());
  {
    const c10::StreamGuard guard(side);
    x.narrow(0, 0, end).fill_(1);
  }
  x.narrow(0, 1000, 1000).fill_(2);
  make_wait(current(), side);
  return take_races();
}

TEST_F(Races, NoneInSlicesOfATensor) {
  EXPECT_THAT(races_of_slices(side_, ones(2000), 1000), IsEmpty());
}

TEST_F(Races, SlicesThatOverlap) {
  EXPECT_THAT(races_of_slices(side_, ones(2000), 1001), ElementsAre(HasSubstr("aten::fill_")));
}

// Autograd's engine runs a backward pass on the streams of the forward pass, and orders them.
TEST_F(Races, NoneInABackwardPassOfTwoStreams) {
  const at::Tensor w = square();
  make_wait(side_, current());
  const at::Tensor a = w.mm(w);
  at::Tensor b;
  {
    const c10::StreamGuard guard(side_);
    b = w.mm(w).sum();
  }
  make_wait(current(), side_);
  (a.sum() + b).backward();
  w.grad() * 1;
  EXPECT_THAT(take_races(), IsEmpty());
}

std::vector<std::string> races_of_backward(c10::Stream side, const at::Tensor& w, bool joins) {
  make_wait(side, current());
  {
    const c10::StreamGuard guard(side);
    w.mm(w).sum().backward();
  }
  if (joins) make_wait(current(), side);
  w.grad() * 1;
  return take_races();
}

TEST_F(Races, NoneInABackwardPassOnASideStream) {
  EXPECT_THAT(races_of_backward(side_, square(), /*joins=*/true), IsEmpty());
}

TEST_F(Races, ABackwardPassOnASideStreamThatNobodyWaitsFor) {
  EXPECT_THAT(races_of_backward(side_, square(), /*joins=*/false), testing::Not(IsEmpty()));
}

TEST_F(Races, NoneOnTheWayToAnotherDeviceAndBack) {
  const at::Tensor x = ones(1000);
  const at::Tensor y = x.to(device(1)) * 2;
  (y.to(device()) + x).sum();
  EXPECT_THAT(take_races(), IsEmpty());
}

}  // namespace
}  // namespace phalanx::test_device
