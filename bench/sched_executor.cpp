// Executors on two threads over a mailbox, and on two processes over a group.
#include "bench/sched_executor.hpp"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <thread>

#include "bench/harness/protocol.hpp"
#include "bench/harness/require.hpp"

namespace velo::bench {
namespace {

constexpr int ranks = 2;

velo_schedule one_f_one_b(int microbatches) {
  velo_schedule_desc desc = VELO_SCHEDULE_DESC_INIT;
  desc.kind = VELO_SCHEDULE_1F1B;
  desc.ranks = ranks;
  desc.microbatches = microbatches;
  velo_schedule made = nullptr;
  require(velo_schedule_create(&desc, &made));
  return made;
}

velo_context one_thread() {
  velo_context_desc desc = VELO_CONTEXT_DESC_INIT;
  desc.threads = 1;
  velo_context made = nullptr;
  require(velo_context_create(&desc, &made));
  return made;
}

void run(velo_context context, velo_executor executor) {
  velo_stream stream = nullptr;
  require(velo_context_stream(context, &stream));
  require(velo_executor_run(stream, executor));
}

velo_status nothing(void*, velo_executor_call*) {
  return VELO_OK;
}

// Works for a while, and gives a megabyte to the next stage; what that took adds up.
struct worker {
  static constexpr std::int64_t elements = 1 << 18;
  double forward = 0, backward = 0;  // seconds, of all
  std::vector<float> output = std::vector<float>(elements, 1.0f),
                     gradient = std::vector<float>(elements, 1.0f);
  std::int64_t shape[1] = {elements};

  static velo_status act(void* user, velo_executor_call* call) {
    auto& me = *static_cast<worker*>(user);
    const bool is_forward = call->action.kind == VELO_ACTION_F;
    const double begin = now(), until = begin + (is_forward ? 1e-3 : 2e-3);
    velo_tensor& out = call->outputs[0];
    out.data = is_forward ? me.output.data() : me.gradient.data();
    out.device.type = VELO_DEVICE_CPU;
    out.ndim = 1;
    out.dtype = {VELO_DTYPE_FLOAT, 32, 1};
    out.shape = me.shape;
    call->output_count = 1;
    while (now() < until) {
    }
    (is_forward ? me.forward : me.backward) += now() - begin;
    return VELO_OK;
  }
};

// A rank's measurements: its own functions, on average, and how long all took.
struct measured {
  double forward, backward, makespan;
};

// Both ranks', in memory that both see.
class board {
 public:
  board() {
    void* memory = mmap(nullptr, sizeof(measured) * ranks, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require_done(memory == MAP_FAILED ? -1 : 0, "mmap");
    all_ = static_cast<measured*>(memory);
  }
  ~board() { munmap(all_, sizeof(measured) * ranks); }
  board(const board&) = delete;
  board& operator=(const board&) = delete;
  measured& operator[](int rank) { return all_[rank]; }

 private:
  measured* all_;
};

measured rank_of_two(int rank, const std::string& name, int microbatches) {
  const velo_context context = one_thread();
  velo_group_desc by = VELO_GROUP_DESC_INIT;
  by.transport = VELO_TRANSPORT_SHM;
  by.name = name.c_str();
  by.rank = rank;
  by.size = ranks;
  velo_group group = nullptr;
  require(velo_group_create(context, &by, &group));
  velo_link link = VELO_LINK_INIT;
  require(velo_group_get_link(group, &link));
  worker mine;
  velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
  desc.rank = rank;
  desc.flags = VELO_EXECUTOR_RECORD;
  desc.link = &link;
  desc.user = &mine;
  desc.forward = desc.backward = &worker::act;
  const velo_schedule order = one_f_one_b(microbatches);
  velo_executor executor = nullptr;
  require(velo_executor_create(context, order, &desc, &executor));
  run(context, executor);  // the first touches memory
  mine.forward = mine.backward = 0;
  velo_stream stream = nullptr;
  require(velo_context_stream(context, &stream));
  require(velo_group_barrier(stream, group));  // else who was done first would begin first, to wait
  run(context, executor);
  velo_timeline timeline = nullptr;
  require(velo_executor_get_timeline(executor, &timeline));
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  require(velo_timeline_get_stats(timeline, &stats));
  velo_timeline_destroy(timeline);
  velo_executor_destroy(executor);
  velo_schedule_destroy(order);
  velo_group_destroy(group);
  velo_context_destroy(context);
  return {mine.forward / microbatches, mine.backward / microbatches, 1e-9 * stats.makespan};
}

// The simulated time of stages whose functions took as long as each rank's did.
double simulated(board& of, int microbatches) {
  const velo_schedule order = one_f_one_b(microbatches);
  velo_schedule_costs costs = VELO_SCHEDULE_COSTS_INIT;
  double shares[ranks];
  costs.forward = costs.input = costs.weight = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    costs.forward += of[rank].forward / ranks;
    costs.input += of[rank].backward / ranks;
    shares[rank] = of[rank].forward + of[rank].backward;
  }
  costs.shares = shares;
  costs.share_count = ranks;
  velo_timeline timeline = nullptr;
  require(velo_schedule_simulate(order, &costs, &timeline));
  velo_timeline_stats stats = VELO_TIMELINE_STATS_INIT;
  require(velo_timeline_get_stats(timeline, &stats));
  velo_timeline_destroy(timeline);
  velo_schedule_destroy(order);
  return stats.makespan;
}

result row_of(const char* name, const char* shape, const char* unit) {
  result row;
  row.name = name;
  row.shape = shape;
  row.unit = unit;
  row.threads = ranks;
  return row;
}

void keep(result& row, std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  row.p25s.push_back(seconds[seconds.size() / 4]);
  row.mins.push_back(seconds[0]);
}

}  // namespace

result executor_overhead() {
  constexpr int microbatches = 10000, times = 21;
  const velo_schedule order = one_f_one_b(microbatches);
  velo_mailbox letters = nullptr;
  require(velo_mailbox_create(ranks, std::int64_t{10} * 1000000000, &letters));
  velo_context contexts[ranks];
  velo_executor executors[ranks];
  for (int rank = 0; rank < ranks; ++rank) {
    contexts[rank] = one_thread();
    velo_link link = VELO_LINK_INIT;
    require(velo_mailbox_get_link(letters, rank, &link));
    velo_executor_desc desc = VELO_EXECUTOR_DESC_INIT;
    desc.rank = rank;
    desc.link = &link;
    desc.forward = desc.backward = &nothing;
    require(velo_executor_create(contexts[rank], order, &desc, &executors[rank]));
  }
  std::vector<double> seconds;
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    std::thread other([&] { run(contexts[1], executors[1]); });
    run(contexts[0], executors[0]);
    other.join();
    seconds.push_back((now() - begin) / (2.0 * microbatches));  // actions of a rank
  }
  for (int rank = 0; rank < ranks; ++rank) {
    velo_executor_destroy(executors[rank]);
    velo_context_destroy(contexts[rank]);
  }
  velo_mailbox_destroy(letters);
  velo_schedule_destroy(order);
  result row = row_of("executor", "1f1b 2x10000", "s");
  keep(row, seconds);
  row.rates.push_back(1 / row.p25s[0]);
  row.limits.push_back(0);
  return row;
}

result achieved_makespan() {
  constexpr int microbatches = 64, times = 9;
  std::vector<double> seconds, shares;
  board both;
  for (int i = 0; i < times; ++i) {
    const std::string name = "bench-" + std::to_string(getpid()) + "-" + std::to_string(i);
    const pid_t other = fork();
    require_done(other, "fork");
    if (other == 0) {
      both[1] = rank_of_two(1, name, microbatches);
      _exit(0);
    }
    both[0] = rank_of_two(0, name, microbatches);
    require_done(waitpid(other, nullptr, 0), "waitpid");
    seconds.push_back(both[0].makespan);
    shares.push_back(simulated(both, microbatches) / both[0].makespan);
  }
  result row = row_of("makespan", "1f1b 2x64 1 MiB", "of simulated");
  keep(row, seconds);
  std::sort(shares.begin(), shares.end());
  row.rates.push_back(
      shares[shares.size() * 3 / 4]);  // the upper quartile, as times are taken at the lower
  row.limits.push_back(1);
  return row;
}

}  // namespace velo::bench
