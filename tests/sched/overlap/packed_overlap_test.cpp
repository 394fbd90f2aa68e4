// Products next to collectives with packs of their weights: the bits of those without, whoever has
// packs; read in the weight's place where they have the form of the call's instruction set; what is
// refused, and a pack that goes while its call waits.
#include <deque>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/overlap_call.hpp"
#include "tests/sched/overlap/packs.hpp"
#include "tests/stream_work.hpp"

using namespace velo::testing;

namespace {

// The calls of all ranks with a weight of `columns` columns.
class calls {
 public:
  calls(const two_groups& all, overlap_kind how, velo_dtype dtype, bool transposed,
        std::int64_t columns = 100)
      : all_(all) {
    const int count = all.ranks.size();
    for (int rank = 0; rank < count; ++rank) {
      each_.emplace_back(how, dtype, overlap_call::sizes{60, 40, columns}, rank, count, transposed);
      each_.back().slices = 3;
    }
  }
  ~calls() {
    for (overlap_call& one : each_) velo_pack_destroy(one.packed);
  }

  overlap_call& of(int rank) { return each_[at(rank)]; }
  void pack(int rank) {
    overlap_call& one = of(rank);
    const velo_tensor weight = one.weight.view();
    one.packed = make_pack(all_.ranks.context(rank), weight, one.transposed);
    REQUIRE(velo_pack_update(all_.ranks.stream(rank), one.packed, &weight) == VELO_OK);
  }
  void pack_all() {
    for (int rank = 0; rank < all_.ranks.size(); ++rank) pack(rank);
  }
  void clear_weights() {
    for (overlap_call& one : each_)
      for (std::int64_t i = 0; i < one.weight.count(); ++i) one.weight.set(i, 0);
  }
  void run() {
    all_.ranks.require([&](const rank_of_group& me) {
      return of(me.rank).run(me.stream, groups_of(all_, me.rank));
    });
  }
  bool same_bits(const calls& other) const {
    for (std::size_t i = 0; i < each_.size(); ++i)
      if (!each_[i].same_bits(other.each_[i]) || !each_[i].borders_kept()) return false;
    return true;
  }

 private:
  const two_groups& all_;
  std::deque<overlap_call> each_;
};

// The packs still have the weights that are cleared here: the results show which of them are read.
void check_weights_are_read(calls& plain, calls& packed) {
  plain.clear_weights();
  packed.clear_weights();
  plain.run();
  packed.run();
  CHECK(packed.same_bits(plain));
}

}  // namespace

TEST_CASE("with packs of their weights the calls have the same bits and read no weight") {
  for (const int count : {1, 2, 3}) {
    const two_groups all(count, group_desc(), count == 3 ? 2 : 1);
    for (const char* level : {"2", "1"}) {
      set_all(all.ranks, "level", level);
      for (const overlap_kind how : overlap_kinds)
        for (const velo_dtype dtype : {f32, bf16, f16})
          for (const bool transposed : {false, true})
            for (const std::int64_t columns : {100, 5}) {
              calls plain(all, how, dtype, transposed, columns);
              calls packed(all, how, dtype, transposed, columns);
              plain.run();
              packed.pack_all();
              packed.clear_weights();
              packed.run();
              INFO(count << " ranks, level " << level << ", " << name_of(how) << ", transposed "
                         << transposed << ", dtype " << int{dtype.code} << "." << int{dtype.bits});
              CHECK(packed.same_bits(plain));
            }
    }
  }
}

TEST_CASE("without a group a rank multiplies by its pack alone") {
  const two_groups all(1);
  for (const overlap_kind how : overlap_kinds) {
    calls plain(all, how, f32, true), packed(all, how, f32, true);
    packed.pack_all();
    packed.clear_weights();
    REQUIRE(plain.of(0).run(all.ranks.stream(0), {}) == VELO_OK);
    REQUIRE(packed.of(0).run(all.ranks.stream(0), {}) == VELO_OK);
    INFO(name_of(how));
    CHECK(packed.same_bits(plain));
  }
}

TEST_CASE("at level 0 a call is left to the weight") {
  const two_groups all(2);
  set_all(all.ranks, "level", "0");
  for (const overlap_kind how : overlap_kinds) {
    calls plain(all, how, f32, false), packed(all, how, f32, false);
    packed.pack_all();
    plain.run();
    packed.run();
    INFO(name_of(how));
    CHECK(packed.same_bits(plain));
    check_weights_are_read(plain, packed);
  }
}

TEST_CASE("a pack of another form leaves a call to the weight") {
  const two_groups all(2);
  const char* origin = nullptr;
  REQUIRE(velo_config_get(all.ranks.context(0), "isa", nullptr, 0, nullptr, &origin) == VELO_OK);
  if (std::string(origin) == "environment") {
    WARN("not tested: the environment sets the isa");
    return;
  }
  for (const overlap_kind how : overlap_kinds) {
    calls plain(all, how, bf16, false), packed(all, how, bf16, false);
    set_all(all.ranks, "isa", "avx2");
    packed.pack_all();
    set_all(all.ranks, "isa", "amx");
    if (!has_another_form(all.ranks.context(0), packed.of(0).packed, bf16, 40, 100)) {
      WARN("not tested: this processor's products have one form");
      return;
    }
    plain.run();
    packed.run();
    INFO(name_of(how));
    CHECK(packed.same_bits(plain));
    check_weights_are_read(plain, packed);
  }
}

TEST_CASE("some ranks of an overlapped product may have packs, and others none") {
  const two_groups all(3);
  for (const overlap_kind how : overlap_kinds) {
    calls plain(all, how, bf16, false), packed(all, how, bf16, false);
    packed.pack(1);
    plain.run();
    packed.run();
    INFO(name_of(how));
    CHECK(packed.same_bits(plain));
  }
}

TEST_CASE("packs that are not of the weight are refused by name, and no peer waits") {
  const two_groups all(2);
  const velo_context context = all.ranks.context(0);
  const wrong_packs wrong(context, 40, 100);
  for (const overlap_kind how : overlap_kinds) {
    calls one(all, how, f32, false);
    const calls before(all, how, f32, false);
    const auto run = [&](velo_pack packed) {
      one.of(0).packed = packed;
      const velo_status done = one.of(0).run(all.ranks.stream(0), groups_of(all, 0));
      one.of(0).packed = nullptr;
      return done;
    };
    INFO(name_of(how));
    CHECK_REFUSED(run(wrong.half), VELO_ERR_DTYPE, "args.packed");
    CHECK_REFUSED(run(wrong.turned), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(run(wrong.wide), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(run(wrong.experts), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(run(wrong.integers), VELO_ERR_ARGUMENT, "args.packed");
    CHECK(one.same_bits(before));
    one.run();  // the other rank has heard of none of them
  }
}

TEST_CASE("a quantized weight has no pack beside it") {
  const two_groups all(1);
  const matrix x(f32, {6, 64}, 1), scale(f32, {40}, 2), residual(f32, {6, 40}, 3),
      gamma(f32, {40}, 4), y(f32, {6, 40}), norm(f32, {6, 40});
  const matrix weight(velo_dtype{VELO_DTYPE_INT, 8, 1}, {64, 40});
  const velo_tensor views[] = {x.view(),     weight.view(), scale.view(), residual.view(),
                               gamma.view(), y.view(),      norm.view()};
  velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  args.x = &views[0], args.weight = &views[1], args.scale = &views[2], args.residual = &views[3];
  args.gamma = &views[4], args.y = &views[5], args.norm_out = &views[6];
  const wrong_packs some(all.ranks.context(0), 64, 40);
  args.packed = some.right;
  CHECK_REFUSED(velo_matmul_all_reduce_add_rms_norm(all.ranks.stream(0), &args), VELO_ERR_ARGUMENT,
                "args.packed");
  args.packed = nullptr;
  CHECK(velo_matmul_all_reduce_add_rms_norm(all.ranks.stream(0), &args) == VELO_OK);
}

TEST_CASE("a pack that is destroyed before its call runs ends the call on all ranks") {
  for (const overlap_kind how : overlap_kinds) {
    const two_groups all(2, group_desc(2000));
    calls of(all, how, f32, false);
    of.pack(1);
    std::atomic<bool> open{false};
    std::vector<velo_stream> queues;
    for (int rank = 0; rank < 2; ++rank) queues.push_back(all.ranks.context(rank).new_stream());
    hold(queues[1], open);
    REQUIRE(of.of(1).run(queues[1], groups_of(all, 1)) == VELO_OK);
    velo_pack_destroy(std::exchange(of.of(1).packed, nullptr));
    REQUIRE(of.of(0).run(queues[0], groups_of(all, 0)) == VELO_OK);
    open = true;
    const call_record mine = record_of(velo_stream_synchronize(queues[1])),
                      peer = record_of(velo_stream_synchronize(queues[0]));
    INFO(name_of(how));
    CHECK(mine.code == VELO_ERR_HANDLE);
    CHECK(mine.argument == "args.packed");
    CHECK(peer.code == VELO_ERR_PEER);
    CHECK(peer.rank == 1);
  }
}
