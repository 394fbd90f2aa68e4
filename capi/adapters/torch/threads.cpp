// Regions of velo's as loops of torch's; see the header.
#include "capi/adapters/torch/threads.hpp"

#include <algorithm>
#include <stdexcept>

#include "capi/adapters/host_context.hpp"

namespace velo::adapters {
namespace {

constexpr int most_threads = 256;
std::atomic<velo_context> on_torch{nullptr};
std::atomic<velo_context> on_own[most_threads + 1];  // by number of threads

using parallel_for = decltype(torch::functions::parallel_for);

struct region {
  void (*task)(void* user, std::int64_t index);
  void* user;
};

void run_range(std::int64_t begin, std::int64_t end, void* data) {
  const region& shared = *static_cast<const region*>(data);
  for (std::int64_t i = begin; i < end; ++i) shared.task(shared.user, i);
}

void run_tasks(void* loop, std::int64_t tasks, void (*task)(void* user, std::int64_t index),
               void* user) {
  region shared = {task, user};
  if (reinterpret_cast<parallel_for>(loop)(0, tasks, 1, run_range, &shared) != 0)
    throw std::runtime_error("torch_parallel_for failed");
}

}  // namespace

velo_context torch_context(const torch::binding& torch) {
  if (const velo_context given = supplied_context()) return given;
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  if (torch.parallel_for == nullptr) {
    desc.threads = std::clamp(torch.thread_count(), 1, most_threads);
    return keep_one(on_own[desc.threads], &desc);
  }
  if (const velo_context made = on_torch.load()) return made;
  const velo_parallel_for loops = {sizeof loops, processors(),
                                   reinterpret_cast<void*>(torch.parallel_for), run_tasks};
  desc.parallel_for = &loops;
  return keep_one(on_torch, &desc);
}

}  // namespace velo::adapters
