// Ranks as threads of one process: each has its own context and its place in one group, and sums
// with the others by a collective that is planned once and started at every step.
//
// Ranks that are processes call velo::group::create(context) instead of create_local, under mpirun
// or torchrun; the rest stays. Build it against an installed velo with: c++ -std=c++17 ranks.cpp
// $(pkg-config --cflags --libs velo) -pthread
#include <cstdio>
#include <string>
#include <thread>
#include <vector>
#include <velo/velo.hpp>

namespace {

// A rank's result, or why it failed.
struct outcome {
  float sums[3] = {};
  std::string failure;
};

void work(int rank, const velo::context& context, const velo::group& group, outcome& to) try {
  float mine[2], sum[2];
  const velo::tensor_view in(mine, {2}), out(sum, {2});
  velo_collective_desc desc = VELO_COLLECTIVE_DESC_INIT;
  desc.kind = VELO_COLLECTIVE_ALL_REDUCE;
  desc.in = in;
  desc.out = out;
  const velo::collective all_reduce = velo::collective::create(group, desc);
  for (int step = 0; step < 3; ++step) {
    mine[0] = mine[1] = static_cast<float>(10 * step + rank + 1);
    all_reduce.start(context.inline_stream());  // done when it returns, on an inline stream
    to.sums[step] = sum[0];
  }
} catch (const velo::error& failure) {  // the record is the thread's: its sentence goes along
  to.failure = failure.what();
  group.abort();  // the others need not wait until the deadline, 10 minutes by default
}

}  // namespace

int main() try {
  const velo::context contexts[] = {velo::context::create(), velo::context::create()};
  const velo_context each[] = {contexts[0], contexts[1]};
  const auto groups = velo::group::create_local<std::vector<velo::group>>(each, 2);
  outcome outcomes[2];
  std::thread other([&] { work(1, contexts[1], groups[1], outcomes[1]); });
  work(0, contexts[0], groups[0], outcomes[0]);
  other.join();
  for (int rank = 0; rank < 2; ++rank) {
    const outcome& one = outcomes[rank];
    if (!one.failure.empty())
      return std::fprintf(stderr, "rank %d: %s\n", rank, one.failure.c_str()), 1;
    std::printf("rank %d: %g %g %g\n", rank, one.sums[0], one.sums[1], one.sums[2]);
  }
  return 0;
} catch (const velo::error& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
