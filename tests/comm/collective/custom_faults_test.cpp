// A custom reduction that ends its group, which is how it says that it cannot go on, or that
// throws: the rank where it did so fails, and no rank takes what was never combined for a result.
#include "comm/transports.hpp"
#include "tests/tensors.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

struct terms {
  velo_collective_kind kind;
  std::int64_t count;  // of the result
  int gives_up;        // this rank
  int at_call;         // of its function
  bool throws;         // instead of ending the group
};

// The sum of int32, until this rank gives up: from there on nothing is combined.
struct limited_sum {
  velo_group group;
  int calls_left;  // -1: never gives up
  bool throws;
  bool has_ended = false;

  static void add(void* user, const void* next, void* total, std::int64_t count,
                  const velo_dtype*) {
    limited_sum& own = *static_cast<limited_sum*>(user);
    if (own.calls_left == 0) {
      own.has_ended = true;
      if (own.throws) throw std::runtime_error("no sum");
      velo_group_abort(own.group);
      return;
    }
    --own.calls_left;
    for (std::int64_t i = 0; i < count; ++i)
      static_cast<std::int32_t*>(total)[i] += static_cast<const std::int32_t*>(next)[i];
  }
};

enum : std::int64_t { has_given_up = 1, is_right = 2 };

bool scatters(velo_collective_kind kind) {
  return kind == VELO_COLLECTIVE_REDUCE_SCATTER || kind == VELO_COLLECTIVE_REDUCE_SCATTER_V;
}

answer reduce(const rank_of_group& me, const terms& what) {
  std::vector<std::int64_t> counts(at(me.size), what.count);  // uneven: the last rank has more
  if (what.kind == VELO_COLLECTIVE_REDUCE_SCATTER_V) counts.back() += 3;
  std::int64_t gives = what.count, gets = what.count;
  if (scatters(what.kind)) {
    gives = 0, gets = counts[at(me.rank)];
    for (const std::int64_t one : counts) gives += one;
  }
  std::vector<std::int32_t> in(static_cast<std::size_t>(gives), me.rank + 1),
      out(static_cast<std::size_t>(gets));
  const velo_tensor x = view_of(in.data(), i32, gives), y = view_of(out.data(), i32, gets);
  limited_sum sum{me.group, me.rank == what.gives_up ? what.at_call : -1, what.throws};
  velo_reduction how = VELO_REDUCTION_INIT;
  how.op = VELO_REDUCE_CUSTOM, how.fn = limited_sum::add, how.user = &sum;
  velo_collective_desc desc = collective_of(what.kind, &x, &y);
  desc.reduction = &how;
  desc.in_counts = counts.data();
  answer all;
  all.code = call(me.stream, me.group, desc);
  if (sum.has_ended) all.value |= has_given_up;
  const bool has_result = what.kind != VELO_COLLECTIVE_REDUCE || me.rank == 0;
  const std::int32_t right = me.size * (me.size + 1) / 2;
  if (!has_result ||
      std::all_of(out.begin(), out.end(), [&](std::int32_t one) { return one == right; }))
    all.value |= is_right;
  return all;
}

// The ranks of a host know only that the host failed.
void check(const outcome& one, const terms& what, bool names_who_ended) {
  if ((one.value & has_given_up) != 0 && what.throws) {
    REQUIRE(one.code == VELO_ERR_FOREIGN);
    if (!one.argument.empty()) CHECK(one.argument == "reduction.fn");  // of threads
    return;
  }
  if ((one.value & has_given_up) != 0) REQUIRE(one.code == VELO_ERR_PEER);
  if (one.code == VELO_OK) REQUIRE((one.value & is_right) != 0);
  if (one.code == VELO_OK) return;
  REQUIRE(one.code == VELO_ERR_PEER);
  if (names_who_ended && !what.throws)
    CHECK(one.got == "an abort by rank " + std::to_string(what.gives_up));
}

}  // namespace

TEST_CASE("a custom reduction that ends its group leaves no result that was never combined") {
  for (const transport_case& over : every_transport)
    for (const int size : {1, 2, 3, 4, 8})
      for (const velo_collective_kind kind :
           {VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE, VELO_COLLECTIVE_REDUCE_SCATTER,
            VELO_COLLECTIVE_REDUCE_SCATTER_V})
        for (const std::int64_t count : {1, 100, 1000, 5000, 100000})
          for (const int at_call : {0, 1, size - 1}) {
            const std::string by = over.name;
            const bool throws = count == 5000 && at_call == 0;
            if (by == "processes" && (size > 4 || at_call == 1 || count == 100)) continue;
            if (size % 5 == 3 && count != 1 && count != 100000) continue;  // 3 and 8: as of 2 and 4
            const terms what{kind, count, kind == VELO_COLLECTIVE_REDUCE ? 0 : size - 1, at_call,
                             throws};
            const std::vector<outcome> all =
                over.run(size, 20000, [&](const rank_of_group& me) { return reduce(me, what); });
            for (int rank = 0; rank < size; ++rank) {
              INFO(over.name << ", rank " << rank << " of " << size << ", kind " << kind << ", "
                             << count << " elements, call " << at_call);
              check(all[at(rank)], what, by != "a host");
            }
          }
}
