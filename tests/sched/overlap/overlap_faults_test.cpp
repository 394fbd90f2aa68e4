// Failures that end a group in the middle of a product next to a collective: every rank gets the
// ranks at fault, nothing hangs, and no rank uses another's tensors after that one's call. Ranks
// call until the end; tensors go with the call that failed.
#include <sys/mman.h>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

enum class op { all_reduce, reduce_scatter, gather, gather_scatter, norm };
constexpr op all_ops[] = {op::all_reduce, op::reduce_scatter, op::gather, op::gather_scatter,
                          op::norm};

// A tensor in pages of its own, which are unmapped when it is destroyed: a late reader ends the
// test.
class pages {
 public:
  pages(std::int64_t rows, std::int64_t columns) : shape_{rows, columns} {
    memory_ = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  }
  ~pages() { munmap(memory_, bytes()); }
  pages(const pages&) = delete;
  velo_tensor view() const { return view_of(memory_, f32, shape_, 2); }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(shape_[0] * shape_[1] * 4 + 1); }

  std::int64_t shape_[2];
  void* memory_;
};

struct groups {
  velo_group first = nullptr, second = nullptr;
};

// x, weight and y; the residual, which is y, gamma and norm_out of the operator with a norm.
template <class Args>
void fill(Args& args, const velo_tensor (&of)[5]) {
  args.x = &of[0], args.weight = &of[1], args.y = &of[2];
  args.parallel_num = 8;
}

velo_status call_with_norm(velo_stream stream, velo_group group, const velo_tensor (&of)[5]) {
  velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  fill(args, of);
  args.group = group, args.residual = &of[2], args.gamma = &of[3], args.norm_out = &of[4];
  return velo_matmul_all_reduce_add_rms_norm(stream, &args);
}

velo_status call(op called, velo_stream stream, const groups& in, const velo_tensor (&of)[5]) {
  if (called == op::norm) return call_with_norm(stream, in.first, of);
  if (called == op::all_reduce) {
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    fill(args, of);
    args.group = in.first;
    return velo_matmul_all_reduce(stream, &args);
  }
  if (called == op::reduce_scatter) {
    velo_matmul_reduce_scatter_args args = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    fill(args, of);
    args.group = in.first;
    return velo_matmul_reduce_scatter(stream, &args);
  }
  if (called == op::gather) {
    velo_all_gather_matmul_args args = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
    fill(args, of);
    args.group = in.first;
    return velo_all_gather_matmul(stream, &args);
  }
  velo_all_gather_matmul_reduce_scatter_args args = VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
  fill(args, of);
  args.gather_group = in.first, args.scatter_group = in.second;
  return velo_all_gather_matmul_reduce_scatter(stream, &args);
}

// The columns and depth of this rank's product.
struct sizes {
  std::int64_t n = 64, k = 96;
};

// Calls until one fails, each with new tensors; counts those that were done.
velo_status call_for_ever(op called, velo_stream stream, const groups& in, int ranks, sizes of_rank,
                          std::atomic<int>& calls) {
  const bool gathers = called == op::gather || called == op::gather_scatter;
  const bool scatters = called == op::reduce_scatter || called == op::gather_scatter;
  const std::int64_t m = 128 * ranks;
  for (;; ++calls) {
    const pages x(gathers ? m / ranks : m, of_rank.k), weight(of_rank.k, of_rank.n),
        y(scatters ? m / ranks : m, of_rank.n), gamma(1, of_rank.n), norm(m, of_rank.n);
    velo_tensor gain = gamma.view();
    gain.ndim = 1, ++gain.shape;
    const velo_tensor of[] = {x.view(), weight.view(), y.view(), gain, norm.view()};
    const velo_status done = call(called, stream, in, of);
    if (done != VELO_OK) return done;
  }
}

void sleep_ms(int ms) {
  std::this_thread::sleep_for(std::chrono::milliseconds(ms));
}

bool has_ended(velo_group group) {
  velo_group_info info = VELO_GROUP_INFO_INIT;
  return velo_group_get_info(group, &info) != VELO_OK || info.failed != 0;
}

groups groups_of(const two_groups& all, int rank) {
  return {all.ranks.group(rank), all.second(rank)};
}

}  // namespace

TEST_CASE(
    "an abort while slices are multiplied ends every rank's call, and nobody uses its tensors") {
  for (const op called : all_ops)
    for (int round = 0; round < 3; ++round) {
      INFO("operator " << static_cast<int>(called) << ", round " << round);
      const two_groups all(3);
      std::atomic<int> calls{0};
      std::atomic<bool> over{false};
      std::thread aborts([&] {
        while (calls < 4 + round && !over) std::this_thread::yield();
        velo_group_abort(all.ranks.group(2));
      });
      const std::vector<call_record> ends = all.ranks.run([&](const rank_of_group& me) {
        return call_for_ever(called, me.stream, groups_of(all, me.rank), 3, {}, calls);
      });
      over = true;  // a failure before the abort fails the test, and does not keep it waiting
      aborts.join();
      for (const call_record& one : ends) {
        CHECK(one.code == VELO_ERR_PEER);
        // The other one of two groups ends because a rank drops its call.
        if (called != op::gather_scatter) CHECK(one.rank == 2);
      }
    }
}

TEST_CASE("a rank that cannot begin, as one of its groups has ended, is reported to the other") {
  for (const bool gathering : {true, false})
    for (const bool swapped : {false, true}) {  // whichever lies lower in memory
      INFO((gathering ? "gather_group" : "scatter_group") << (swapped ? ", swapped" : ""));
      const two_groups all(3);
      const auto of = [&](int rank) {
        const groups in = groups_of(all, rank);
        return swapped ? groups{in.second, in.first} : in;
      };
      std::atomic<int> calls{0};
      const auto begin = std::chrono::steady_clock::now();
      const std::vector<call_record> ends = all.ranks.run([&](const rank_of_group& me) {
        if (me.rank == 2) {
          sleep_ms(50);  // while the others wait for it in gather_group
          velo_group_abort(gathering ? of(2).first : of(2).second);
          while (gathering && !has_ended(of(2).second)) sleep_ms(1);  // since they drop their calls
        }
        return call_for_ever(op::gather_scatter, me.stream, of(me.rank), 3, {}, calls);
      });
      CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));  // no deadline
      for (const call_record& one : ends) {
        CHECK(one.code == VELO_ERR_PEER);
        CHECK(one.rank == 2);
      }
    }
}

// Rank 0 has little to multiply, and waits while rank 1 reads its rows.
TEST_CASE("a rank that fails keeps its rows until nobody multiplies them any more") {
  for (int round = 0; round < 8; ++round) {
    const two_groups all(2);
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    std::thread aborts([&] {
      while (calls < 2 && !over) std::this_thread::yield();
      sleep_ms(1 + round % 4);
      velo_group_abort(all.ranks.group(1));
    });
    const std::vector<call_record> ends = all.ranks.run([&](const rank_of_group& me) {
      return call_for_ever(op::gather, me.stream, groups_of(all, me.rank), 2,
                           {me.rank == 0 ? 8 : 1000, 2000}, calls);
    });
    over = true;
    aborts.join();
    for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
  }
}

TEST_CASE("a rank whose call has other sizes is named by all") {
  for (const op called : all_ops) {
    INFO("operator " << static_cast<int>(called));
    const two_groups all(3);
    std::atomic<int> calls{0};
    const std::vector<call_record> ends = all.ranks.run([&](const rank_of_group& me) {
      return call_for_ever(called, me.stream, groups_of(all, me.rank), 3,
                           me.rank == 1 ? sizes{72, 104} : sizes(), calls);
    });
    CHECK(calls == 0);
    for (const call_record& one : ends) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 1);
      CHECK(one.expected != one.got);
    }
  }
}

TEST_CASE("a process that is killed between two slices is named by the others") {
  void* shared = mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(shared != MAP_FAILED);
  for (const op called : all_ops) {
    INFO("operator " << static_cast<int>(called));
    auto* calls = new (shared) std::atomic<int>(0);
    processes ranks;
    ranks.start_all(3, group_desc(), [&](const rank_of_group& me) {
      groups in{me.group, nullptr};
      velo_status done = all_of_three(me.group, &in.second);
      if (done == VELO_OK) done = call_for_ever(called, me.stream, in, 3, {}, *calls);
      return ending_of(done);
    });
    while (*calls < 20) sleep_ms(1);
    kill(ranks.pid(1), SIGKILL);
    const std::vector<ending> ends = ranks.wait();
    for (const int rank : {0, 2}) {
      CHECK(ends[at(rank)].code == VELO_ERR_PEER);
      if (called != op::gather_scatter) CHECK(ends[at(rank)].rank == 1);
    }
  }
  munmap(shared, sizeof(std::atomic<int>));
}
