// SPDX-License-Identifier: Apache-2.0
#include "trainer/topology/topology.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/trainer/host/one_core.h"
#include "tests/trainer/io/temporary_folder.h"
#include "trainer/host/cores.h"

namespace phalanx {
namespace {

namespace fs = std::filesystem;

/// A host that hwloc makes up, for as long as it lives.
class MadeUpHost {
 public:
  explicit MadeUpHost(const char* description) { ::setenv("HWLOC_SYNTHETIC", description, 1); }
  ~MadeUpHost() { ::unsetenv("HWLOC_SYNTHETIC"); }
  MadeUpHost(const MadeUpHost&) = delete;
  MadeUpHost& operator=(const MadeUpHost&) = delete;
};

TEST(Topology, HasThePartsOfAHost) {
  const MadeUpHost host("pack:2 [numa] l3:2 core:3 pu:2");
  const ProcessingUnits units = allowed_units();
  ASSERT_EQ(units.size(), 24u);
  EXPECT_EQ(count_cores(units), 12);
  EXPECT_EQ(distinct(units, &ProcessingUnit::package), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(distinct(units, &ProcessingUnit::node), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(distinct(units, &ProcessingUnit::cache), (std::vector<int64_t>{0, 6, 12, 18}));
  EXPECT_EQ(units[13],
            (ProcessingUnit{.index = 13, .core = 6, .cache = 12, .node = 1, .package = 1}));
  EXPECT_EQ(describe(units), "0-23: 12 cores of NUMA nodes 0, 1");
}

TEST(Topology, KnowsAHostThatTellsNothing) {
  const MadeUpHost host("pu:3");
  const ProcessingUnits units = allowed_units();
  EXPECT_EQ(count_cores(units), 3);
  EXPECT_EQ(distinct(units, &ProcessingUnit::cache).size(), 3u);
  EXPECT_EQ(describe(units), "0-2: 3 cores of NUMA node 0");
}

TEST(Topology, IsWhatTheAffinityAllows) {
  const ProcessingUnits all = allowed_units();
  EXPECT_EQ(describe(all).substr(0, allowed_cores().size() + 1), allowed_cores() + ":");
  const OneCore pinned;
  const ProcessingUnits one = allowed_units();
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one.front().index, ::sched_getcpu());
}

TEST(Topology, NamesRangesOfUnits) {
  const auto text = [](std::initializer_list<int64_t> indices) {
    ProcessingUnits units;
    for (const int64_t index : indices) units.push_back({.index = index, .core = index});
    return describe(units);
  };
  EXPECT_EQ(text({0, 1, 2, 8, 10, 11}), "0-2,8,10-11: 6 cores of NUMA node 0");
  EXPECT_EQ(text({5}), "5: 1 core of NUMA node 0");
}

TEST(Topology, BindsAllThreads) {
  const ProcessingUnits all = allowed_units();
  if (all.size() == 1) GTEST_SKIP() << "one core: nothing to choose";
  const std::string before = allowed_cores();
  const ProcessingUnits last{all.back()};
  // It is there before, and tells its own affinity after.
  std::string of_thread;
  {
    std::atomic<bool> is_bound = false;
    const std::jthread thread([&] {
      is_bound.wait(false);
      cpu_set_t set;
      if (::sched_getaffinity(0, sizeof(set), &set) != 0) return;
      if (CPU_COUNT(&set) == 1 && CPU_ISSET(all.back().index, &set)) of_thread = "bound";
    });
    bind_process(last);
    is_bound = true;
    is_bound.notify_all();
  }
  EXPECT_EQ(of_thread, "bound");
  EXPECT_EQ(allowed_units(), last);
  bind_process(all);
  EXPECT_EQ(allowed_cores(), before);
}

TEST(Topology, KnowsTheNodeOfADevice) {
  const TemporaryFolder root;
  const auto node_of = [&](const std::string& text) {
    const fs::path folder = root / "sys/bus/pci/devices/0000:07:00.0";
    fs::create_directories(folder);
    spill(folder / "numa_node", text);
    return numa_node_of("0000:07:00.0", root.path());
  };
  EXPECT_EQ(numa_node_of("0000:07:00.0", root.path()), std::nullopt);
  EXPECT_EQ(node_of("-1\n"), std::nullopt);
  EXPECT_EQ(node_of("0\n"), 0);
  EXPECT_EQ(node_of("3\n"), 3);
}

TEST(Topology, CountsCoresAndNotHardwareThreads) {
  const MadeUpHost host("core:4 pu:2");
  EXPECT_EQ(usable_cores(), std::min<int64_t>(4, std::max<int64_t>(cpu_quota(), 1)));
}

}  // namespace
}  // namespace phalanx
