// One rank of four calls something else than the others: another collective, dtype, count, root or
// reduction, or the next call first. All ranks get a record that names it. VELO_MISMATCHES: how
// many are tried.
#include <cstdlib>

#include "comm/collective/every_collective.hpp"
#include "comm/ranks.hpp"
#include "tests/random.hpp"

using namespace velo::testing;

namespace {

constexpr int size = 4;

// The call of a rank. Numbers that its collective does not use are ignored.
struct asked {
  int kind = 0, dtype = 0, count = 0, root = 0, op = 0;

  static constexpr velo_collective_kind kinds[] = {
      VELO_COLLECTIVE_BARRIER,    VELO_COLLECTIVE_ALL_REDUCE, VELO_COLLECTIVE_REDUCE,
      VELO_COLLECTIVE_BROADCAST,  VELO_COLLECTIVE_ALL_GATHER, VELO_COLLECTIVE_REDUCE_SCATTER,
      VELO_COLLECTIVE_ALL_TO_ALL, VELO_COLLECTIVE_GATHER,     VELO_COLLECTIVE_SCATTER};
  static constexpr int counts[] = {1, 2, 17, 1000, 30000};
  static constexpr velo_reduce_op ops[] = {VELO_REDUCE_SUM, VELO_REDUCE_AVG, VELO_REDUCE_MIN,
                                           VELO_REDUCE_MAX};

  velo_collective_kind what() const { return kinds[kind]; }
  bool moves() const { return what() != VELO_COLLECTIVE_BARRIER; }
  bool reduces() const {
    return what() == VELO_COLLECTIVE_ALL_REDUCE || what() == VELO_COLLECTIVE_REDUCE ||
           what() == VELO_COLLECTIVE_REDUCE_SCATTER;
  }
  bool has_root() const {
    return what() == VELO_COLLECTIVE_REDUCE || what() == VELO_COLLECTIVE_BROADCAST ||
           what() == VELO_COLLECTIVE_GATHER || what() == VELO_COLLECTIVE_SCATTER;
  }
  bool like(const asked& other) const {
    return kind == other.kind && (!moves() || (dtype == other.dtype && count == other.count)) &&
           (!has_root() || root == other.root) && (!reduces() || op == other.op);
  }
  velo_status call(velo_stream stream, velo_group group) const {
    const bool many_in = what() == VELO_COLLECTIVE_REDUCE_SCATTER ||
                         what() == VELO_COLLECTIVE_ALL_TO_ALL || what() == VELO_COLLECTIVE_SCATTER;
    const bool many_out = what() == VELO_COLLECTIVE_ALL_GATHER ||
                          what() == VELO_COLLECTIVE_ALL_TO_ALL || what() == VELO_COLLECTIVE_GATHER;
    const velo_dtype type = reduced_dtypes[dtype].dtype;
    const elements in(type, counts[count] * (many_in ? size : 1)),
        out(type, counts[count] * (many_out ? size : 1));
    const velo_tensor x = in.view(), y = out.view();
    velo_reduction how = VELO_REDUCTION_INIT;
    how.op = ops[op];
    velo_collective_desc desc = collective_of(what(), &x, &y, root);
    desc.reduction = &how;
    return velo::testing::call(stream, group, desc);
  }
};

class drawn {
 public:
  asked any() { return {below(9), below(8), below(5), below(size), below(4)}; }
  // The same but for one thing, which counts.
  asked other_than(const asked& is) {
    asked odd = is;
    while (odd.like(is)) {
      odd = is;
      switch (below(5)) {
        case 0:
          odd.kind = below(9);
          break;
        case 1:
          odd.dtype = below(8);
          break;
        case 2:
          odd.count = below(5);
          break;
        case 3:
          odd.root = below(size);
          break;
        default:
          odd.op = below(4);
      }
    }
    return odd;
  }
  int below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

 private:
  thread_random32 random_{13};
};

int tries() {
  const char* setting = std::getenv("VELO_MISMATCHES");
  return setting != nullptr ? std::atoi(setting) : 150;
}

}  // namespace

TEST_CASE("every other call of one rank is reported to all with that rank") {
  drawn from;
  const int all = tries();
  REQUIRE(all > 0);
  for (int i = 0; i < all; ++i) {
    const asked is = from.any(), next = from.other_than(is);
    const int culprit = from.below(size);
    const bool early = i % 5 == 0;  // it calls what the others call next
    INFO("try " << i << ": " << is.what() << "/" << is.dtype << "/" << is.count << "/" << is.root
                << "/" << is.op << ", rank " << culprit << " " << next.what() << "/" << next.dtype
                << "/" << next.count << "/" << next.root << "/" << next.op);
    const local_ranks ranks(size);
    const std::vector<call_record> records = ranks.run([&](const rank_of_group& me) {
      const bool odd = me.rank == culprit;
      const velo_status done = (odd ? next : is).call(me.stream, me.group);
      if (done != VELO_OK || !early) return done;
      return (odd ? is : next).call(me.stream, me.group);
    });
    for (const call_record& one : records) {
      INFO(one);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == culprit);
      CHECK(one.got.find("rank " + std::to_string(culprit) + " with ") == 0);
    }
  }
}
