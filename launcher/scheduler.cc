#include "launcher/scheduler.h"

#include <algorithm>
#include <charconv>

#include "launcher/node_list.h"

namespace lrun::launcher {
namespace {

std::optional<std::string> text(const Environment& environment, std::string_view name) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<long> number(const Environment& environment, std::string_view name) {
  const auto found = text(environment, name);
  if (!found) return std::nullopt;
  long value = 0;
  const char* end = found->data() + found->size();
  const auto [stop, error] = std::from_chars(found->data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<std::string> first_text(const Environment& environment,
                                      std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    if (auto found = text(environment, name)) return found;
  }
  return std::nullopt;
}

// More than one task on a node would start more than one agent there.
bool has_several_tasks_a_node(const Environment& environment) {
  if (number(environment, "SLURM_LOCALID").value_or(0) > 0) return true;
  const auto counts =
      first_text(environment, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"});
  if (!counts) return false;
  const auto tasks = expand_counts(*counts);
  return tasks && std::any_of(tasks->begin(), tasks->end(), [](int count) { return count > 1; });
}

std::string run_id_of(const Environment& environment, const std::string& job,
                      const std::string& step) {
  std::string id = job + "." + step;
  const long restarts = number(environment, "SLURM_RESTART_COUNT").value_or(0);
  if (restarts > 0) id += ".r" + std::to_string(restarts);
  return id;
}

// Two steps of one job, or neighbouring jobs, begin at different ports.
int first_port_of(const std::string& job, const std::string& step) {
  unsigned hash = 2166136261U;  // FNV-1a, the same on every node
  for (const char c : job + "." + step) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return kSlurmPortsBegin + static_cast<int>(hash % static_cast<unsigned>(kSlurmPorts));
}

int slots_of(const Environment& environment) {
  if (const auto devices = text(environment, "CUDA_VISIBLE_DEVICES")) {
    return 1 + static_cast<int>(std::count(devices->begin(), devices->end(), ','));
  }
  return static_cast<int>(std::max(1L, number(environment, "SLURM_GPUS_ON_NODE").value_or(1)));
}

UsageError unreadable(std::string_view name, const Environment& environment) {
  const auto found = text(environment, name);
  return {
      std::string(name) + "='" + found.value_or("") +
      "' cannot be understood; give --nnodes, --node-rank, --rdzv-endpoint and --rdzv-id yourself"};
}

}  // namespace

Scheduler detect_scheduler(const Environment& environment) {
  const auto job = text(environment, "SLURM_JOB_ID");
  if (!job) return NoScheduler{};
  const auto step = text(environment, "SLURM_STEP_ID");
  if (!step) {
    if (number(environment, "SLURM_NNODES").value_or(1) < 2) return NoScheduler{};
    return OutsideStep{
        "this is a Slurm job of several nodes, but lrun was not started by srun: it runs on "
        "this node alone; write: srun --ntasks-per-node=1 lrun ..."};
  }
  if (has_several_tasks_a_node(environment)) {
    return UsageError{
        "srun started more than one task on this node, and lrun starts the workers itself; "
        "write: srun --ntasks-per-node=1 lrun --nproc N ..."};
  }
  const auto list = first_text(environment, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"});
  const auto hosts = expand_node_list(list.value_or(""));
  if (!hosts) return unreadable("SLURM_STEP_NODELIST", environment);
  const long count = static_cast<long>(hosts->size());
  const long nodes = number(environment, "SLURM_STEP_NUM_NODES")
                         .value_or(number(environment, "SLURM_NNODES").value_or(count));
  const long place = number(environment, "SLURM_NODEID").value_or(-1);
  if (nodes < 1 || nodes > count) return unreadable("SLURM_STEP_NUM_NODES", environment);
  if (place < 0 || place >= nodes) return unreadable("SLURM_NODEID", environment);
  return SlurmStep{.nodes = static_cast<int>(nodes),
                   .node_rank = static_cast<int>(place),
                   .hosts = *hosts,
                   .run_id = run_id_of(environment, *job, *step),
                   .first_port = first_port_of(*job, *step),
                   .slots = slots_of(environment)};
}

}  // namespace lrun::launcher
