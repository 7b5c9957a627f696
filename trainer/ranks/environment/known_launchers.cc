// SPDX-License-Identifier: Apache-2.0
#include "trainer/ranks/environment/known_launchers.h"

#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "trainer/host/local_address.h"
#include "trainer/host/node_list.h"

namespace phalanx {
namespace {

constexpr int64_t kMaxRanks = std::numeric_limits<int32_t>::max();  // c10d counts ranks as int
constexpr int64_t kHighestNumber = std::numeric_limits<uint32_t>::max();  // of Slurm's jobs, steps
constexpr int64_t kHighestPort = std::numeric_limits<uint16_t>::max();

// Below the ports that Linux gives to outgoing connections.
constexpr uint64_t kFirstPort = 20000;
constexpr uint64_t kPorts = 10000;
// torch.distributed's own.
constexpr int64_t kUsualPort = 29500;

int64_t rank_number(const Variables& v, const char* name) { return v.number(name, 0, kMaxRanks); }
int64_t rank_count(const Variables& v, const char* name) { return v.number(name, 1, kMaxRanks); }

// A port for a job: the same in all its processes, another one for most other jobs. Nothing names
// the job: the usual one.
int64_t port_of_job(std::string_view job) {
  if (job.empty()) return kUsualPort;
  return static_cast<int64_t>(kFirstPort + XXH3_64bits(job.data(), job.size()) % kPorts);
}

// The same for a step of a Slurm job. Jobs that share a host are often numbered one after the
// other, as the tasks of an array are: they never meet.
int64_t port_of_step(const Variables& v) {
  constexpr uint64_t kBetweenSteps = 97;
  const auto number = [&](const char* name) {
    return static_cast<uint64_t>(v.optional_number(name, 0, kHighestNumber).value_or(0));
  };
  const uint64_t step = number("SLURM_JOB_ID") + kBetweenSteps * number("SLURM_STEP_ID");
  return static_cast<int64_t>(kFirstPort + step % kPorts);
}

// MASTER_ADDR and MASTER_PORT count wherever the user has set them.
void set_master(const Variables& v, Environment& place, std::string_view address, int64_t port) {
  if (v.has("MASTER_ADDR")) address = v.text("MASTER_ADDR");
  place.master_addr = address;
  place.master_port =
      static_cast<uint16_t>(v.optional_number("MASTER_PORT", 1, kHighestPort).value_or(port));
}

bool is_on_one_host(const Environment& place) { return place.local_world_size == place.world_size; }

// ---- torchrun, and others that set its variables

bool torch_has_started(const Variables& v) { return v.has("RANK") || v.has("LOCAL_RANK"); }

// Tasks that somebody has started, each of which may have been given another's RANK.
struct Tasks {
  const char* starter;
  const char* rank;
  const char* count;
  const char* needed;  // Is there in such a task alone.
};

constexpr std::array kTasks{
    Tasks{"srun", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    Tasks{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    Tasks{"mpirun", "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
    Tasks{"mpirun", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    Tasks{"jsrun", "JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_RANK"},
};

void refuse_exported_rank(const Variables& v, const Tasks& tasks) {
  if (!v.has_all({"RANK", tasks.rank, tasks.count, tasks.needed})) return;
  const int64_t rank = rank_number(v, "RANK");
  const int64_t world_size = rank_count(v, "WORLD_SIZE");
  const int64_t task = rank_number(v, tasks.rank);
  const int64_t count = rank_count(v, tasks.count);
  if (count == world_size ? task == rank : count == 1 || v.has("LOCAL_RANK")) return;
  refuse_variables("RANK is " + std::to_string(rank) + " and WORLD_SIZE is " +
                   std::to_string(world_size) + ", but " + tasks.starter +
                   " has started this process as task " + std::to_string(task) + " of " +
                   std::to_string(count) + " (" + tasks.rank + ", " + tasks.count +
                   "): unset RANK and WORLD_SIZE, or set launcher.name=torch if they count");
}

// A RANK that a job script has exported is the same in every task. A task may start ranks of its
// own, of another number, which have a LOCAL_RANK. Daemons of an mpirun in a step are its tasks:
// whoever has started this process directly counts.
void refuse_exported_rank(const Variables& v) {
  if (v.has("TORCHELASTIC_RUN_ID")) return;
  const auto innermost = std::find_if(kTasks.begin() + 1, kTasks.end(), [&v](const Tasks& tasks) {
    return v.has_all({tasks.rank, tasks.count, tasks.needed});
  });
  refuse_exported_rank(v, innermost == kTasks.end() ? kTasks.front() : *innermost);
}

Environment torch_place(const Variables& v) {
  Environment place{.rank = 0, .world_size = rank_count(v, "WORLD_SIZE")};
  place.rank = rank_number(v, "RANK");
  // A single rank needs a store only for what is to outlast its restarts.
  place.agent_store = v.text("TORCHELASTIC_USE_AGENT_STORE") == "True";
  if (place.world_size == 1 && !place.agent_store) return place;
  const bool counts_ranks = v.has("LOCAL_WORLD_SIZE");
  if (counts_ranks || v.has("LOCAL_RANK")) {
    place.local_rank = rank_number(v, "LOCAL_RANK");
    place.local_world_size = counts_ranks ? rank_count(v, "LOCAL_WORLD_SIZE") : kFromHosts;
  } else {
    place.local_rank = place.local_world_size = kFromHosts;
  }
  const bool serves = place.rank == 0 && !place.agent_store;
  if (!serves) v.required("MASTER_ADDR");
  v.required("MASTER_PORT");
  set_master(v, place, "", 0);
  return place;
}

// ---- mpirun, jsrun: four numbers for each process, of which the local ones may be missing

// The variables that have them, and who sets them. An empty name is one that nobody sets.
struct Numbers {
  const char* rank;
  const char* world_size;
  const char* local_rank;
  const char* local_world_size;
  const char* starter;

  bool are_in(const Variables& v) const { return v.has_all({rank, world_size}); }
};

constexpr Numbers kOpenMpi{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "mpirun"};
constexpr Numbers kHydra{"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "mpirun"};
constexpr Numbers kPmi{"PMI_RANK", "PMI_SIZE", "", "", "PMI's launcher"};  // Without local ranks.
constexpr Numbers kMvapich{"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE",
                           "MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE", "mpirun"};
constexpr Numbers kJsrun{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE", "JSM_NAMESPACE_LOCAL_RANK",
                         "JSM_NAMESPACE_LOCAL_SIZE", "jsrun"};

// These launchers do not say where rank 0 is, which matters where ranks are on several hosts.
void require_master_of_hosts(const Variables& v, const Environment& place) {
  if (is_on_one_host(place) || v.has("MASTER_ADDR")) return;
  refuse_variables(
      "the ranks may be on several hosts, and MASTER_ADDR, the name or address of rank 0's host, "
      "is not set: give it to mpirun (Open MPI: -x MASTER_ADDR=node1; MPICH, Intel MPI: -genv "
      "MASTER_ADDR node1)");
}

// A WORLD_SIZE that says otherwise: of a job script, or of somebody who has started fewer.
void require_same_world_size(const Variables& v, const Environment& place, const char* starter,
                             const char* count) {
  const auto world_size = v.optional_number("WORLD_SIZE", 1, kMaxRanks);
  if (!world_size || *world_size == place.world_size) return;
  refuse_variables("WORLD_SIZE is " + std::to_string(*world_size) + ", but " + starter +
                   " has started " + std::to_string(place.world_size) + " tasks (" + count +
                   "): unset it, or start as many tasks");
}

Environment numbered_place(const Variables& v, const Numbers& names, std::string_view job) {
  Environment place{.rank = rank_number(v, names.rank),
                    .world_size = rank_count(v, names.world_size)};
  require_same_world_size(v, place, names.starter, names.world_size);
  if (place.world_size > 1) place.local_rank = place.local_world_size = kFromHosts;
  if (v.has(names.local_rank)) {
    place.local_rank = rank_number(v, names.local_rank);
    const auto of_host = v.optional_number(names.local_world_size, 1, kMaxRanks);
    place.local_world_size = of_host.value_or(place.local_world_size);
  }
  if (place.world_size > 1) require_master_of_hosts(v, place);
  set_master(v, place, kLoopbackAddress, port_of_job(job));
  return place;
}

bool open_mpi_has_started(const Variables& v) { return kOpenMpi.are_in(v); }
// Without local ranks it is any PMI.
bool hydra_has_started(const Variables& v) { return kHydra.are_in(v) && v.has(kHydra.local_rank); }
bool mvapich_has_started(const Variables& v) { return kMvapich.are_in(v); }
bool jsrun_has_started(const Variables& v) { return kJsrun.are_in(v); }

Environment open_mpi_place(const Variables& v) {
  return numbered_place(v, kOpenMpi, v.text("PMIX_NAMESPACE"));
}

Environment jsrun_place(const Variables& v) {
  return numbered_place(v, kJsrun, v.text("LSB_JOBID"));
}

// On one host all ranks are children of one process. On several hosts nothing names the job.
Environment place_of_children(const Variables& v, const Numbers& names) {
  const bool one_host = v.optional_number(names.local_world_size, 1, kMaxRanks) ==
                        v.optional_number(names.world_size, 1, kMaxRanks);
  return numbered_place(v, names, one_host ? std::to_string(::getppid()) : std::string());
}

Environment hydra_place(const Variables& v) { return place_of_children(v, kHydra); }
Environment mvapich_place(const Variables& v) { return place_of_children(v, kMvapich); }

// ---- Slurm's srun

// A job's script has the same variables, except SLURM_STEP_ID: it is no task of a step.
bool slurm_has_started(const Variables& v) {
  return v.has_all({"SLURM_STEP_ID", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}) &&
         rank_count(v, "SLURM_STEP_NUM_TASKS") > 1;
}

int64_t slurm_tasks_of_node(const Variables& v) {
  const std::string_view text = v.required("SLURM_STEP_TASKS_PER_NODE");
  const std::vector<int64_t> tasks = expand_task_counts(text);
  const auto node = static_cast<size_t>(rank_number(v, "SLURM_NODEID"));
  if (node < tasks.size()) return tasks[node];
  refuse_variables("SLURM_NODEID is " + std::to_string(node) +
                   ", but SLURM_STEP_TASKS_PER_NODE, '" + std::string(text) + "', names " +
                   std::to_string(tasks.size()) + " nodes");
}

// A task's GPU is the only one that it sees, whatever its local rank is.
bool sees_one_gpu(const Variables& v) {
  const std::string_view visible = v.text("CUDA_VISIBLE_DEVICES");
  return !visible.empty() && visible.find(',') == std::string_view::npos;
}

Environment slurm_place(const Variables& v) {
  Environment place{.rank = rank_number(v, "SLURM_PROCID"),
                    .world_size = rank_count(v, "SLURM_STEP_NUM_TASKS"),
                    .local_rank = rank_number(v, "SLURM_LOCALID"),
                    .local_world_size = slurm_tasks_of_node(v)};
  require_same_world_size(v, place, "srun", "SLURM_STEP_NUM_TASKS");
  place.sees_own_gpu = place.local_world_size > 1 && sees_one_gpu(v);
  const std::string first = is_on_one_host(place)
                                ? std::string(kLoopbackAddress)
                                : expand_node_list(v.required("SLURM_STEP_NODELIST")).front();
  set_master(v, place, first, port_of_step(v));
  return place;
}

// ---- PMI without local ranks: srun --mpi=pmi2 in a container that keeps Slurm's variables out

bool pmi_has_started(const Variables& v) { return kPmi.are_in(v); }

Environment pmi_place(const Variables& v) { return numbered_place(v, kPmi, v.text("PMI_JOBID")); }

// ---- Kubernetes: the pods of an Indexed Job, each with one such process, and with GPUs of its own

bool kubernetes_has_started(const Variables& v) {
  return v.has_all({"JOB_COMPLETION_INDEX", "WORLD_SIZE"});
}

Environment kubernetes_place(const Variables& v) {
  Environment place{.rank = rank_number(v, "JOB_COMPLETION_INDEX"),
                    .world_size = rank_count(v, "WORLD_SIZE")};
  if (place.rank > 0) v.required("MASTER_ADDR");
  set_master(v, place, "", kUsualPort);
  return place;
}

// ---- WORLD_SIZE alone: torch_place says what is missing

bool world_size_alone(const Variables& v) { return v.has("WORLD_SIZE"); }

constexpr std::array kKnown{
    KnownLauncher{"torch", "torchrun, or any that sets RANK and WORLD_SIZE", torch_has_started,
                  torch_place, refuse_exported_rank},
    KnownLauncher{"open_mpi", "mpirun of Open MPI", open_mpi_has_started, open_mpi_place},
    KnownLauncher{"mpich", "mpirun of MPICH or Intel MPI", hydra_has_started, hydra_place},
    KnownLauncher{"mvapich", "mpirun of MVAPICH", mvapich_has_started, mvapich_place},
    KnownLauncher{"lsf", "jsrun of LSF", jsrun_has_started, jsrun_place},
    KnownLauncher{"slurm", "srun of Slurm", slurm_has_started, slurm_place},
    KnownLauncher{"pmi", "PMI, without local ranks", pmi_has_started, pmi_place},
    KnownLauncher{"kubernetes", "an Indexed Job of Kubernetes", kubernetes_has_started,
                  kubernetes_place},
    KnownLauncher{"torch", "WORLD_SIZE without RANK", world_size_alone, torch_place},
};

}  // namespace

std::span<const KnownLauncher> known_launchers() { return kKnown; }

}  // namespace phalanx
