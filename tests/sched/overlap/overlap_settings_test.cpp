// The keys overlap.mode and overlap.slices: which way and how many slices a call has with them. The
// number shows in that ranks agree only on equal slices: one rank has it from its field, the other
// from the table. Results have the bits of calls without the keys.
#include <array>
#include <deque>
#include <string>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/overlap_call.hpp"
#include "tests/sched/parallel/tensor/linear_ranks.hpp"

using namespace velo::testing;

namespace {

using sizes = overlap_call::sizes;
constexpr sizes many{1320, 8, 24}, few{60, 8, 24};

bool is_chosen(const std::string& text, const std::string& kernel) {
  const std::size_t at = text.find(R"("name":")" + kernel + "\"");
  return at != std::string::npos &&
         text.find(R"("chosen":true)", at) < text.find(R"("reason")", at);
}

// A rank's field and keys.
struct asked {
  std::int64_t field = 0;
  const char *table = "", *mode = "auto";
};
void set_keys(velo_context context, const asked& of) {
  REQUIRE(velo_config_set(context, "overlap.slices", of.table) == VELO_OK);
  REQUIRE(velo_config_set(context, "overlap.mode", of.mode) == VELO_OK);
}

const asked keys_to_try[] = {
    {}, {0, "1320x8x24:4,*:2"}, {0, "*x8x*:7"}, {3, "", "whole"}, {0, "", "sliced"}};

// Whether two ranks with these fields and keys have the same slices.
bool agree(overlap_kind how, const sizes& of, const std::array<asked, 2>& by) {
  const two_groups all(2, group_desc(2000));
  std::deque<overlap_call> calls;
  for (int rank = 0; rank < 2; ++rank) {
    set_keys(all.ranks.context(rank), by[at(rank)]);
    calls.emplace_back(how, f32, of, rank, 2);
    calls.back().slices = by[at(rank)].field;
  }
  const std::vector<call_record> ended = all.ranks.run([&](const rank_of_group& me) {
    return calls[at(me.rank)].run(me.stream, groups_of(all, me.rank));
  });
  for (const call_record& one : ended) {
    INFO(one);
    CHECK((one.code == VELO_OK || one.code == VELO_ERR_PEER));
    CHECK(one.code == ended[0].code);
  }
  return ended[0].code == VELO_OK;
}

// Layers whose gradients gather x again or have it, of whole rows and of rows that are cut.
std::vector<linear_case> layers_with_slices(int ranks = 2) {
  std::vector<linear_case> all;
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs})
    for (const bool cuts : {true, false})
      for (const bool keeps : {true, false}) {
        if (keeps && (weight == cut_of::inputs || !cuts)) continue;
        all.push_back(even_linear(weight, ranks, 60, 24));
        all.back().cuts_rows = cuts, all.back().keeps_x = keeps;
      }
  return all;
}
std::string shape_of(const linear_case& of) {
  const std::int64_t n = of.by_outputs() ? of.widths[1] : of.n();
  const std::int64_t k = of.by_outputs() ? of.k() : of.widths[1];
  return std::to_string(of.all_rows() * of.lines) + "x" + std::to_string(k) + "x" +
         std::to_string(n);
}

// A forward call, or one of the gradient, that sends something.
struct linear_call {
  linear_case of;
  bool is_gradient;

  velo_status run(const linear_rank& mine, const rank_of_group& me) const {
    return is_gradient ? mine.gradient(me.stream, me.group, {}) : mine.forward(me.stream, me.group);
  }
  std::string text() const {
    return std::string(of.by_outputs() ? "column" : "row") + (is_gradient ? " gradient" : "") +
           (of.cuts_rows ? ", cut rows" : "") + (of.keeps_x ? ", x kept" : "");
  }
};
std::vector<linear_call> linear_calls() {
  std::vector<linear_call> all;
  for (const linear_case& of : layers_with_slices())
    for (const bool is_gradient : {false, true})
      if (of.cuts_rows || of.by_outputs() == is_gradient) all.push_back({of, is_gradient});
  return all;
}

// How a call of two ranks with these fields and keys ends on both.
velo_status ending_of(const linear_call& call, const std::array<asked, 2>& by) {
  linear_case cases[] = {call.of, call.of};
  const local_ranks ranks(2, group_desc(2000));
  for (int rank = 0; rank < 2; ++rank) {
    cases[rank].slices = by[at(rank)].field;
    set_keys(ranks.context(rank), by[at(rank)]);
  }
  const linear_rank first(cases[0], 0), last(cases[1], 1);
  const std::vector<call_record> ended =
      ranks.run([&](const rank_of_group& me) { return call.run(me.rank == 0 ? first : last, me); });
  CHECK(ended[0].code == ended[1].code);
  return ended[0].code;
}

}  // namespace

TEST_CASE("the table gives the number of slices of a shape where the field leaves it open") {
  for (const overlap_kind how : overlap_kinds) {
    INFO(name_of(how));
    const char* table = "1320x8x24:4,*:2";
    CHECK(agree(how, many, {asked{4}, {0, table}}));
    CHECK(agree(how, few, {asked{2}, {0, table}}));  // another shape
    CHECK_FALSE(agree(how, many, {asked{3}, {0, table}}));
    CHECK_FALSE(agree(how, many, {asked{0}, {0, table}}));
    CHECK(agree(how, many, {asked{2}, {0, "*:2,1320x8x24:4"}}));  // the first that fits
    CHECK(agree(how, many, {asked{4}, {0, "1320x9x24:2,*x8x*:4"}}));
    CHECK(agree(how, many, {asked{0}, {0, "1319x8x24:2,1320x8x23:2,8x24x1320:2"}}));
    CHECK(agree(how, many, {asked{0}, {0, "1320x8x24:0,*:2"}}));
    CHECK(agree(how, many, {asked{4}, {4, "*:3"}}));  // the field comes first
    CHECK(agree(how, many, {asked{1}, {0, "*:1"}}));
    CHECK_FALSE(agree(how, many, {asked{0}, {0, "*:1"}}));
  }
}

TEST_CASE("overlap.mode: whole has no slices whatever asks for them, sliced has them at any size") {
  for (const overlap_kind how : overlap_kinds) {
    INFO(name_of(how));
    CHECK(agree(how, many, {asked{1}, {4, "*:3", "whole"}}));
    CHECK_FALSE(agree(how, many, {asked{4}, {4, "", "whole"}}));
    CHECK(agree(how, many, {asked{4}, {4, "", "sliced"}}));
    CHECK(agree(how, many, {asked{1}, {1, "", "sliced"}}));  // a field of 1 holds
    CHECK_FALSE(agree(how, few, {asked{0}, {0, "", "sliced"}}));
  }
}

TEST_CASE("velo_op_explain shows which way the keys choose") {
  const two_groups all(2);
  const velo_context context = all.ranks.context(0);
  for (const overlap_kind how : overlap_kinds) {
    overlap_call one(how, f32, few, 0, 2);
    const auto explain = [&](const asked& of) {
      set_keys(context, of);
      one.slices = of.field;
      return one.explained(context, groups_of(all, 0));
    };
    INFO(name_of(how));
    CHECK(is_chosen(explain({}), "composition"));
    CHECK(is_chosen(explain({0, "60x8x24:2"}), "sliced"));
    CHECK(is_chosen(explain({0, "", "sliced"}), "sliced"));
    const std::string whole = explain({4, "*:2", "whole"});
    CHECK(is_chosen(whole, "composition"));
    CHECK(whole.find("overlap.mode is whole") != std::string::npos);
  }
}

TEST_CASE("the keys change no bit of a result") {
  for (const int count : {1, 2, 3, 4})
    for (const velo_dtype dtype : {f32, bf16})
      for (const overlap_kind how : overlap_kinds)
        for (const sizes& size : {few, many}) {
          const two_groups all(count);
          std::deque<std::deque<overlap_call>> results;
          for (const asked& of : keys_to_try) {
            std::deque<overlap_call>& calls = results.emplace_back();
            for (int rank = 0; rank < count; ++rank) {
              set_keys(all.ranks.context(rank), of);
              calls.emplace_back(how, dtype, size, rank, count);
              calls.back().slices = of.field;
            }
            all.ranks.require([&](const rank_of_group& me) {
              return calls[at(me.rank)].run(me.stream, groups_of(all, me.rank));
            });
            INFO(count << " ranks, " << name_of(how) << ", " << size.rows << " rows, " << of.table
                       << " " << of.mode << ", bits " << int{dtype.bits});
            for (int rank = 0; rank < count; ++rank)
              CHECK(calls[at(rank)].same_bits(results[0][at(rank)]));
          }
        }
}

TEST_CASE("linear layers have the slices of their shape, and so have their gradients") {
  for (const linear_call& call : linear_calls()) {
    const std::string shape = shape_of(call.of);
    const auto ended = [&](const std::string& table) {
      return ending_of(call, {asked{4}, {0, table.c_str()}});
    };
    INFO(call.text());
    CHECK(ended(shape + ":4") == VELO_OK);
    CHECK(ended(shape + ":3") == VELO_ERR_PEER);
    CHECK(ended("*:3," + shape + ":4") == VELO_ERR_PEER);
  }
}

TEST_CASE("overlap.mode holds for linear layers and their gradients, too") {
  for (const linear_call& call : linear_calls()) {
    INFO(call.text());
    CHECK(ending_of(call, {asked{1}, {4, "*:3", "whole"}}) == VELO_OK);
    CHECK(ending_of(call, {asked{4}, {4, "", "whole"}}) == VELO_ERR_PEER);
    CHECK(ending_of(call, {asked{4}, {4, "", "sliced"}}) == VELO_OK);
    CHECK(ending_of(call, {asked{0}, {0, "", "sliced"}}) == VELO_ERR_PEER);  // few rows
  }
}

TEST_CASE("the keys change no bit of a linear layer's results") {
  for (const int count : {1, 2, 3})
    for (linear_case of : layers_with_slices(count)) {
      const local_ranks ranks(count);
      linear_ranks before;
      for (const asked& keys : keys_to_try) {
        of.slices = keys.field;
        for (int rank = 0; rank < count; ++rank) set_keys(ranks.context(rank), keys);
        linear_ranks now = ranks_of(of);
        ranks.require([&](const rank_of_group& me) { return now[at(me.rank)]->run(me); });
        INFO(count << " ranks, " << keys.table << " " << keys.mode << ", outputs cut "
                   << of.by_outputs() << ", rows cut " << of.cuts_rows << ", x kept "
                   << of.keeps_x);
        for (std::size_t r = 0; r < before.size(); ++r) CHECK(now[r]->same_bits(*before[r]));
        before = std::move(now);
      }
    }
}
