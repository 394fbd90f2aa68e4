// A custom reduction that ends its group, which is how it says that it cannot go on: the rank where it
// did so fails, and no rank takes what was never combined for a result.
#include "comm/host_ranks.hpp"
#include "comm/mpi_threads.hpp"

using namespace velo;
using namespace velo::test;

namespace {

struct terms {
  velo_collective_kind kind;
  std::int64_t count;  // of the result
  int gives_up;        // this rank
  int at_call;         // of its function
};

// The sum of int32, until this rank gives up: from there on nothing is combined.
struct limited_sum {
  velo_group group;
  int calls_left;  // -1: never gives up
  bool has_ended = false;

  static void add(void* user, const void* next, void* total, std::int64_t count,
                  const velo_dtype*) {
    limited_sum& own = *static_cast<limited_sum*>(user);
    if (own.calls_left == 0) {
      own.has_ended = true;
      velo_group_abort(own.group);
      return;
    }
    --own.calls_left;
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::int32_t*>(total)[i] += static_cast<const std::int32_t*>(next)[i];
  }
};

struct outcome {
  said how;
  bool has_given_up = false;
  bool is_right = false;
};

outcome reduce(const rank_of_group& me, const terms& what) {
  const bool scatters = what.kind == VELO_COLLECTIVE_REDUCE_SCATTER;
  const std::int64_t gives = scatters ? what.count * me.size : what.count;
  std::vector<std::int32_t> in(at(static_cast<int>(gives)), me.rank + 1),
      out(at(static_cast<int>(what.count)));
  const velo_dtype i32{VELO_DTYPE_INT, 32, 1};
  const velo_tensor x{in.data(), {VELO_DEVICE_CPU, 0}, 1, i32, &gives, nullptr, 0},
      y{out.data(), {VELO_DEVICE_CPU, 0}, 1, i32, &what.count, nullptr, 0};
  limited_sum sum{me.group, me.rank == what.gives_up ? what.at_call : -1, false};
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = VELO_REDUCE_CUSTOM, how.fn = limited_sum::add, how.user = &sum;
  const bool reduces = what.kind == VELO_COLLECTIVE_REDUCE;
  outcome all;
  if (reduces) {
    all.how =
        told(velo_group_reduce(me.stream, me.group, 0, &how, &x, me.rank == 0 ? &y : nullptr));
  } else if (scatters) {
    all.how = told(velo_group_reduce_scatter(me.stream, me.group, &how, &x, &y));
  } else {
    all.how = told(velo_group_all_reduce(me.stream, me.group, &how, &x, &y));
  }
  all.has_given_up = sum.has_ended;
  const bool gets = !reduces || me.rank == 0;
  const std::int32_t right = me.size * (me.size + 1) / 2;
  all.is_right =
      !gets || std::all_of(out.begin(), out.end(), [&](std::int32_t one) { return one == right; });
  return all;
}

using runner = std::function<void(int size, const std::function<void(const rank_of_group&)>& body)>;

void over_threads(int size, const std::function<void(const rank_of_group&)>& body) {
  const local_ranks ranks(size);
  ranks.require([&](int rank) {
    rank_of_group me;
    me.stream = ranks.stream(rank), me.group = ranks.group(rank), me.rank = rank, me.size = size;
    body(me);
    return velo_status{VELO_OK};
  });
}

void over_a_host(int size, const std::function<void(const rank_of_group&)>& body) {
  fake_host host(size, "gather to_all abort");
  on_ranks(host, 20000, [&](const rank_of_group& me) {
    body(me);
    return velo_status{VELO_OK};
  });
  CHECK(host.await_released(size));  // a thread may still come to call a function
}

void over_mpi(int size, const std::function<void(const rank_of_group&)>& body) {
  const int job = new_job();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      rank_over_mpi one;
      rank_of_group me;
      const bool made = one.join(job, size, rank) == VELO_OK;
      me.stream = one.stream, me.group = one.group, me.rank = rank, me.size = size;
      if (made) body(me);
      velo_group_destroy(one.group);
    });
  for (std::thread& one : threads) one.join();
}

void over_two_hosts(int size, const std::function<void(const rank_of_group&)>& body) {
  ranks_on_hosts(std::string(at(size / 2), '0') + std::string(at(size - size / 2), '1'))
      .require([&](const rank_of_group& me) {
        body(me);
        return velo_status{VELO_OK};
      });
}

}  // namespace

TEST_CASE("a custom reduction that ends its group leaves no result that was never combined") {
  const struct {
    const char* name;
    runner run;
    bool names_who_ended;
    std::vector<int> sizes = {2, 3, 4, 8};
  } transports[] = {{"threads", over_threads, true},
                    {"mpi", over_mpi, true},
                    {"mpi, two hosts", over_two_hosts, true, {4}},
                    {"a host", over_a_host, false}};
  for (const auto& over : transports)
    for (const int size : over.sizes)
      for (const velo_collective_kind kind :
           {VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE, VELO_COLLECTIVE_REDUCE_SCATTER})
        for (const std::int64_t count : {1, 100, 1000, 5000, 100000})
          for (const int at_call : {0, 1, size - 1}) {
            const terms what{kind, count, kind == VELO_COLLECTIVE_REDUCE ? 0 : size - 1, at_call};
            std::vector<outcome> all(at(size));
            over.run(size, [&](const rank_of_group& me) { all[at(me.rank)] = reduce(me, what); });
            for (int rank = 0; rank < size; ++rank) {
              const outcome& one = all[at(rank)];
              INFO(over.name << ", rank " << rank << " of " << size << ", kind " << kind << ", "
                             << count << " elements, call " << at_call);
              if (one.has_given_up) REQUIRE(one.how.code == VELO_ERR_PEER);
              if (one.how.code == VELO_OK) REQUIRE(one.is_right);
              if (one.how.code == VELO_OK) continue;
              REQUIRE(one.how.code == VELO_ERR_PEER);
              if (over.names_who_ended)  // of a host its own ranks know no more than that it failed
                CHECK(one.how.got == "an abort by rank " + std::to_string(what.gives_up));
            }
          }
}
