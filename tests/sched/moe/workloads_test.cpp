// The workloads of a layer of experts: hot experts and ranks, ranks and experts without tokens, and
// hot experts that move. Ranks are threads of a process, processes with shared memory, and ranks of
// two hosts; all have the bits of one rank.
#include <deque>

#include "comm/processes.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/sched/moe/layer_pass.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

constexpr std::int64_t tokens = 512, top_k = 2, width = 40;
constexpr int workload_count = 8, steps = 3;

// The j-th choice of a token among 16 experts, or more for a number of ranks that 16 cannot serve.
// first: the choice of a workload without hot experts.
std::int32_t choice_of(int workload, int step, std::int64_t first, std::int64_t j,
                       std::int64_t experts) {
  const auto each = [&](std::int64_t of) {
    return static_cast<std::int32_t>((first + j * (of / 2)) % of);
  };
  switch (workload) {
    case 1:  // half of the choices for experts 0, 1, of the first rank, and 8, of another
      return j == 0 ? std::array{0, 1, 8, 8}[at(first % 4)] : each(experts);
    case 2:  // all on rank 0
      return each(2);
    case 3:  // every fourth expert, on all ranks
      return each(experts / 4) * 4;
    case 5:  // no odd expert
      return each(experts / 2) * 2;
    case 6:  // another one in each step
      return j == 0 ? static_cast<std::int32_t>((5 * step + 3) % experts) : each(experts);
    case 7:  // one step that all is on rank 0
      return each(step == 1 ? 2 : experts);
    default:
      return each(experts);
  }
}

micro_batch batch_of(int workload, int step, int ranks) {
  const std::int64_t experts = ranks == 3 ? 24 : 16, all = workload == 4 ? 769 : tokens;
  micro_batch of(all, top_k, experts, width, workload % 2 == 0 ? f32 : bf16, 1);
  random_numbers<std::mt19937> draw(at(workload * 10 + step));
  for (std::int64_t t = 0; t < all; ++t) {
    const auto first = static_cast<std::int64_t>(draw.below(at(experts)));
    for (std::int64_t j = 0; j < top_k; ++j)
      of.choices[at(t * top_k + j)] = choice_of(workload, step, first, j, experts);
  }
  if (workload == 4) of.layout = token_layout::halved;
  return of;
}

// The layers that a workload runs in: without and with a capacity.
velo_dispatcher_desc layer_of(const micro_batch& of, bool limited,
                              velo_dispatch_kind kind = VELO_DISPATCH_ALL_TO_ALL) {
  velo_dispatcher_desc desc = desc_of(of);
  desc.kind = kind;
  if (!limited) return desc;
  desc.capacity_rule = VELO_CAPACITY_FACTOR, desc.capacity_factor = 1.25;
  desc.pad = 1;
  return desc;
}

// The steps of a workload on one rank.
std::deque<pass_results> steps_alone(int workload, int ranks, bool limited,
                                     const char* level = "2") {
  std::deque<pass_results> all;
  const group_of_one one;
  REQUIRE(velo_config_set(one.context, "level", level) == VELO_OK);
  const rank_of_group me{one.context, one.stream, one.group, 0, 1};
  for (int step = 0; step < steps; ++step) {
    const micro_batch of = batch_of(workload, step, ranks);
    const pass_inputs in(of);
    all.emplace_back(of);
    rank_pass pass(of, in, me);
    REQUIRE(pass.run(me.stream, layer_of(of, limited), all.back()) == VELO_OK);
  }
  return all;
}

// The steps of a workload on a rank of several; wrong: receives the steps with other bits.
velo_status run_steps(int workload, bool limited, const rank_of_group& me,
                      const std::deque<pass_results>& alone, std::int64_t& wrong) {
  const velo_dispatch_kind kind = workload % 4;  // of all kinds
  const open_layer layer(me.group, layer_of(batch_of(workload, 0, me.size), limited, kind));
  for (int step = 0; step < steps; ++step) {
    const micro_batch of = batch_of(workload, step, me.size);
    const pass_inputs in(of);
    pass_results into(of);
    rank_pass pass(of, in, me);
    const velo_status done = pass.run_in(layer, me.stream, layer_of(of, limited, kind), into);
    if (done != VELO_OK) return done;
    wrong += !pass.agrees(alone[at(step)]);
  }
  return VELO_OK;
}

template <class Ranks>
void check_on(const Ranks& ranks, int workload, bool limited, const char* level = "2") {
  const std::deque<pass_results> alone = steps_alone(workload, ranks.size(), limited, level);
  std::vector<std::int64_t> wrong(at(ranks.size()));
  ranks.require([&](const rank_of_group& me) {
    return run_steps(workload, limited, me, alone, wrong[at(me.rank)]);
  });
  CHECK(std::count(wrong.begin(), wrong.end(), 0) == ranks.size());
}

}  // namespace

TEST_CASE("threads have the bits of one rank in every workload, at every level") {
  for (const int size : {1, 2, 3, 4, 8}) {
    const local_ranks ranks(size);
    for (const char* level : {"0", "1", "2"}) {
      if (size != 4 && *level != '2') continue;
      set_all(ranks, "level", level);
      for (int workload = 0; workload < workload_count; ++workload)
        for (const bool limited : {false, true}) {
          INFO(size << " ranks, W" << workload << ", limited: " << limited << ", level " << level);
          check_on(ranks, workload, limited, level);
        }
    }
  }
}

TEST_CASE("processes have the bits of one rank in every workload") {
  for (const int size : {2, 3, 4, 8}) {
    processes all;
    all.start_all(size, group_desc(60000), [](const rank_of_group& me) {
      std::int64_t wrong = 0;
      velo_status done = VELO_OK;
      for (int workload = 0; workload < workload_count && done == VELO_OK; ++workload)
        for (const bool limited : {false, true})
          if (done == VELO_OK)
            done = run_steps(workload, limited, me, steps_alone(workload, me.size, limited), wrong);
      return ending_of(done, wrong);
    });
    check_right(all.wait());
  }
}

TEST_CASE("ranks of two hosts have the bits of one rank in every workload") {
  for (const char* hosts : {"01", "0011"}) {
    const ranks_on_hosts ranks(hosts);
    for (int workload = 0; workload < workload_count; ++workload)
      for (const bool limited : {false, true}) {
        INFO(hosts << ", W" << workload << ", limited: " << limited);
        check_on(ranks, workload, limited);
      }
  }
}
