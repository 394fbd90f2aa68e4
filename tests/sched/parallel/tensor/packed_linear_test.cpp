// Cut linear layers with packs of their weights: the bits of those without, whoever has packs; read
// in the weight's place where they have the form of the call's instruction set; what is refused.
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/overlap/packs.hpp"
#include "tests/sched/parallel/tensor/linear_ranks.hpp"

using namespace velo::testing;

namespace {

// Gives a rank packs of its weight.
class packs {
 public:
  packs(const local_ranks& all, int rank, linear_rank& of) : of_(of) {
    const velo_tensor weight = of.weight.view();
    of.packed_forward = make_pack(all.context(rank), weight, true);
    of.packed_backward = make_pack(all.context(rank), weight, false);
    for (const velo_pack one : {of.packed_forward, of.packed_backward})
      REQUIRE(velo_pack_update(all.stream(rank), one, &weight) == VELO_OK);
  }
  ~packs() {
    velo_pack_destroy(of_.packed_forward);
    velo_pack_destroy(of_.packed_backward);
    of_.packed_forward = of_.packed_backward = nullptr;
  }
  packs(const packs&) = delete;

 private:
  linear_rank& of_;
};
std::vector<std::unique_ptr<packs>> pack_all(const local_ranks& all, const linear_ranks& ranks) {
  std::vector<std::unique_ptr<packs>> made;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    made.push_back(std::make_unique<packs>(all, static_cast<int>(r), *ranks[r]));
  return made;
}

void run_all(const local_ranks& all, const linear_ranks& ranks) {
  all.require([&](const rank_of_group& me) { return ranks[at(me.rank)]->run(me); });
}

void clear(part_of_matrix& weight) {
  weight.fill([](std::int64_t, std::int64_t) { return 0; });
}

std::vector<linear_case> cases_of(int ranks) {
  std::vector<linear_case> all;
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs})
    for (const bool cuts : {true, false}) {
      all.push_back(even_linear(weight, ranks, 60, 100));
      all.back().cuts_rows = cuts, all.back().keeps_x = cuts;
      all.back().other = 130;
    }
  all.push_back(even_linear(cut_of::outputs, ranks, 6, 40));
  all.back().cuts_rows = false, all.back().gathers_output = true;
  return all;
}

}  // namespace

TEST_CASE("packs of its weight give a cut layer the same bits, and the weight is not read") {
  for (const int count : {1, 2, 3}) {
    const local_ranks all(count, group_desc(), count == 3 ? 2 : 1);
    for (linear_case of : cases_of(count))
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const char* level : {"2", "1"}) {
          of.dtype = dtype;
          set_all(all, "level", level);
          const linear_ranks plain = ranks_of(of), packed = ranks_of(of);
          run_all(all, plain);
          const auto made = pack_all(all, packed);
          for (const auto& one : packed) clear(one->weight);
          run_all(all, packed);
          INFO(count << " ranks, outputs cut " << of.by_outputs() << ", rows cut " << of.cuts_rows
                     << ", level " << level << ", dtype " << int{dtype.code} << "."
                     << int{dtype.bits});
          for (std::size_t r = 0; r < plain.size(); ++r) {
            CHECK(packed[r]->same_bits(*plain[r]));
            CHECK(packed[r]->borders_kept());
          }
        }
  }
}

TEST_CASE("a pack of another form, or at level 0, leaves the product to the weight") {
  const local_ranks all(2);
  const char* origin = nullptr;
  REQUIRE(velo_config_get(all.context(0), "isa", nullptr, 0, nullptr, &origin) == VELO_OK);
  const bool is_isa_given = std::string(origin) == "environment";
  for (linear_case of : cases_of(2)) {
    of.dtype = bf16;
    const linear_ranks plain = ranks_of(of), packed = ranks_of(of);
    if (!is_isa_given) set_all(all, "isa", "avx2");
    const auto made = pack_all(all, packed);
    if (!is_isa_given) set_all(all, "isa", "amx");
    const std::int64_t n = packed[0]->weight.view().shape[0], k = packed[0]->weight.view().shape[1];
    const bool has_other_form =
        has_another_form(all.context(0), packed[0]->packed_forward, of.dtype, k, n);
    if (!has_other_form) WARN("not tested: a pack of another form, of which there is none here");
    for (const char* level : {"0", "2"}) {
      if (*level == '2' && !has_other_form) continue;
      set_all(all, "level", level);
      INFO("outputs cut " << of.by_outputs() << ", level " << level);
      for (const bool clears : {false, true}) {  // the packs still have what is cleared
        for (const linear_ranks* each : {&plain, &packed}) {
          for (const auto& one : *each)
            if (clears) clear(one->weight);
          run_all(all, *each);
        }
        for (std::size_t r = 0; r < plain.size(); ++r) CHECK(packed[r]->same_bits(*plain[r]));
      }
    }
    set_all(all, "level", "2");
  }
}

TEST_CASE("some ranks may have packs, and others none") {
  const local_ranks all(3);
  for (const linear_case& of : cases_of(3)) {
    const linear_ranks plain = ranks_of(of), packed = ranks_of(of);
    const packs one(all, 1, *packed[1]);
    run_all(all, plain);
    run_all(all, packed);
    for (std::size_t r = 0; r < plain.size(); ++r) CHECK(packed[r]->same_bits(*plain[r]));
  }
}

TEST_CASE("packs that are not of the weight are refused by name, with results untouched") {
  const local_ranks all(2);
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs}) {
    const linear_case of = even_linear(weight, 2);
    linear_rank one(of, 0);
    const linear_rank before(of, 0);
    const velo_tensor w = one.weight.view();
    const std::int64_t n = w.shape[0], k = w.shape[1];
    const wrong_packs wrong(all.context(0), k, n);
    const velo_pack back = make_pack(all.context(0), f32, n, k + 1, false);
    const auto forward = [&](velo_pack packed) {
      one.packed_forward = packed;
      return one.forward(all.stream(0), all.group(0));
    };
    CHECK_REFUSED(forward(wrong.half), VELO_ERR_DTYPE, "args.packed");
    CHECK_REFUSED(forward(wrong.turned), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(forward(wrong.wide), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(forward(wrong.experts), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(forward(wrong.integers), VELO_ERR_ARGUMENT, "args.packed");
    const auto gradient = [&](velo_pack packed) {
      one.packed_backward = packed;
      return one.gradient(all.stream(0), all.group(0), {});
    };
    CHECK_REFUSED(gradient(wrong.half), VELO_ERR_DTYPE, "args.packed");
    CHECK_REFUSED(gradient(wrong.wide), VELO_ERR_SHAPE, "args.packed");
    CHECK_REFUSED(gradient(back), VELO_ERR_SHAPE, "args.packed");
    CHECK(one.same_bits(before));
    velo_pack_destroy(back);
  }
  all.require_barrier();
}
