// Over MPI: operators next to collectives, in one dimension and in two, of experts and of quantized
// products, have the bits of the calls apart, and quantized weights the sums of double.
#include "comm/mpi/ranks.hpp"
#include "tests/sched/overlap/expert_apart.hpp"
#include "tests/sched/overlap/overlap_apart.hpp"
#include "tests/sched/overlap/quantized_calls.hpp"

using namespace velo::testing;

namespace {

// The groups of a rank in a grid of two columns: its row's ranks gather, its column's ranks sum. Of
// two ranks both are groups of all.
class grid {
 public:
  explicit grid(const rank_of_group& me) {
    const int r = me.rank;
    const std::vector<std::int32_t> across = {r & ~1, r | 1};
    std::vector<std::int32_t> down;
    for (int rank = me.size > 2 ? r % 2 : 0; rank<me.size; rank += me.size> 2 ? 2 : 1)
      down.push_back(rank);
    make(me.group, across, groups.first);
    make(me.group, down, groups.second);
  }
  ~grid() {
    velo_group_destroy(groups.first);
    velo_group_destroy(groups.second);
  }
  grid(const grid&) = delete;

  overlap_groups groups{};

 private:
  static void make(velo_group of, const std::vector<std::int32_t>& ranks, velo_group& made) {
    REQUIRE(velo_group_create_part(of, ranks.data(), static_cast<std::int32_t>(ranks.size()),
                                   nullptr, &made) == VELO_OK);
  }
};

// Operands of this rank, whose number is its place among two.
void check_overlap(const rank_of_group& me, const overlap_groups& in, overlap_kind how,
                   velo_dtype dtype, std::int64_t rows) {
  const bool transposed = rows > 8;
  const auto make = [&](overlap_kind kind) {
    return std::make_unique<overlap_call>(kind, dtype, overlap_call::sizes{rows, 40, 24}, me.rank,
                                          2, transposed);
  };
  const auto fused = make(how), apart = make(how);
  fused->slices = transposed ? 3 : 0;
  CHECK(fused->run(me.stream, in) == VELO_OK);
  CHECK(run_apart(*apart, me.stream, in) == VELO_OK);
  CHECK(fused->same_bits(*apart));
  CHECK(fused->borders_kept());
}

}  // namespace

TEST_CASE("operators next to collectives have the bits of the calls apart", "[operators]") {
  const joined all;
  const grid of(all.me);
  for (const char* level : {"0", "1", "2"}) {
    REQUIRE(velo_config_set(all.me.context, "level", level) == VELO_OK);
    for (const overlap_kind how : overlap_kinds)
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t rows : {8, 200}) {
          INFO(name_of(how) << ", level " << level << ", " << int{dtype.code} << "."
                            << int{dtype.bits} << ", " << rows << " rows");
          check_overlap(all.me, of.groups, how, dtype, rows);
        }
  }
}

TEST_CASE("quantized products have the bits of the calls apart", "[operators]") {
  const joined all;
  for (const char* level : {"0", "1", "2"}) {
    REQUIRE(velo_config_set(all.me.context, "level", level) == VELO_OK);
    for (const quantized::weight_form& form : quantized::weight_forms) {
      INFO(form.name << ", level " << level);
      const quantized::weight_calls calls = quantized::make_calls(form, bf16, 40, all.me.size);
      const quantized::weight_call& mine = *calls[at(all.me.rank)];
      REQUIRE(mine.run(all.me) == VELO_OK);
      quantized::check_sums(calls, mine, 40, 0x1p-8);
      CHECK(mine.norm_has_bits_of_calls_apart());
      CHECK(mine.borders_kept());
    }
    for (const quantized::integer_form& form : quantized::integer_forms) {
      INFO(form.name << ", level " << level);
      const quantized::integer_call one(form, 40, all.me.rank);
      REQUIRE(one.run(all.me) == VELO_OK);
      CHECK(one.has_bits_of_calls_apart());
    }
  }
}

TEST_CASE("experts' products have the bits of the calls apart", "[operators]") {
  const joined all;
  for (int ep = 1; ep <= all.me.size; ep *= 2) {
    expert_case layout;
    layout.ep = ep, layout.tp = all.me.size / ep;
    grid_groups in;
    REQUIRE(in.make(layout, all.me) == VELO_OK);
    for (const char* level : {"0", "1", "2"}) {
      REQUIRE(velo_config_set(all.me.context, "level", level) == VELO_OK);
      for (const expert_case& of : forms_of(layout.ep, layout.tp, false)) {
        INFO("level " << level << ", " << text_of(of));
        CHECK(different_results(of, all.me, in) == 0);
      }
    }
  }
}
