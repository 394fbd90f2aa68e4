// The keys overlap.mode and overlap.slices: which way and how many slices a call has with them. The
// number shows in that ranks agree only on equal slices: one rank has it from its field, the other
// from the table. Results have the bits of calls without the keys.
#include <array>
#include <deque>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/tensor/linear_ranks.hpp"

using namespace velo::testing;

namespace {

enum class kind { all_reduce, norm, scatter, gather };
constexpr kind kinds[] = {kind::all_reduce, kind::norm, kind::scatter, kind::gather};
constexpr const char* names[] = {"matmul_all_reduce", "matmul_all_reduce_add_rms_norm",
                                 "matmul_reduce_scatter", "all_gather_matmul"};
constexpr std::int64_t depth = 8, columns = 24, many = 1320, few = 60;

// A rank's call. rows: of the product.
struct call {
  kind how;
  matrix x, weight, residual, gamma, y, norm, gathered;
  std::int64_t slices = 0;

  call(kind how, velo_dtype dtype, std::int64_t rows, int rank, int ranks)
      : how(how),
        x(dtype, {how == kind::gather ? rows / ranks : rows, depth}, 2 * rank),
        weight(dtype, {depth, columns}, 2 * rank + 1),
        residual(dtype, {rows, columns}, 50),
        gamma(dtype, {columns}, 51),
        y(dtype, {how == kind::scatter ? rows / ranks : rows, columns}),
        norm(dtype, {rows, columns}),
        gathered(dtype, {rows, depth}) {}

  velo_status run(const rank_of_group& me) const {
    const velo_tensor in = x.view(), by = weight.view(), to = y.view();
    const auto fill = [&](auto args) {
      args.group = me.group, args.x = &in, args.weight = &by, args.y = &to;
      args.parallel_num = slices;
      return args;
    };
    const velo_tensor other = residual.view(), gain = gamma.view(), out = norm.view();
    const velo_tensor all = gathered.view();
    if (how == kind::all_reduce) {
      const auto args = fill(velo_matmul_all_reduce_args VELO_MATMUL_ALL_REDUCE_ARGS_INIT);
      return velo_matmul_all_reduce(me.stream, &args);
    }
    if (how == kind::scatter) {
      const auto args = fill(velo_matmul_reduce_scatter_args VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT);
      return velo_matmul_reduce_scatter(me.stream, &args);
    }
    if (how == kind::gather) {
      auto args = fill(velo_all_gather_matmul_args VELO_ALL_GATHER_MATMUL_ARGS_INIT);
      args.gathered = &all;
      return velo_all_gather_matmul(me.stream, &args);
    }
    auto args = fill(
        velo_matmul_all_reduce_add_rms_norm_args VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT);
    args.residual = &other, args.gamma = &gain, args.norm_out = &out;
    return velo_matmul_all_reduce_add_rms_norm(me.stream, &args);
  }

  bool same_bits(const call& other) const {
    return y.same_bits(other.y) && (how != kind::norm || norm.same_bits(other.norm)) &&
           (how != kind::gather || gathered.same_bits(other.gathered));
  }

  // The text of velo_op_explain about the call.
  std::string explained(velo_context context, velo_group group) const {
    const velo_tensor in = x.view(), by = weight.view(), other = residual.view(),
                      gain = gamma.view();
    velo_named_value values[6] = {};
    values[0].name = "group", values[0].value.kind = VELO_VALUE_HANDLE;
    values[0].value.as.p = group;
    values[1].name = "parallel_num", values[1].value.kind = VELO_VALUE_INT;
    values[1].value.as.i = slices;
    const auto set = [&](int at, const char* name, const velo_tensor& t) {
      values[at].name = name, values[at].value.kind = VELO_VALUE_TENSOR;
      values[at].value.as.tensor = &t;
    };
    set(2, "x", in), set(3, "weight", by), set(4, "residual", other), set(5, "gamma", gain);
    char text[4096] = "";
    REQUIRE(velo_op_explain(context, names[static_cast<int>(how)], values,
                            how == kind::norm ? 6 : 4, text, sizeof text, nullptr) == VELO_OK);
    return text;
  }
};

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

// Whether two ranks with these fields and keys have the same slices.
bool agree(kind how, std::int64_t rows, const std::array<asked, 2>& of) {
  const local_ranks ranks(2, group_desc(2000));
  std::deque<call> calls;  // whose elements cannot move
  for (int rank = 0; rank < 2; ++rank) {
    set_keys(ranks.context(rank), of[at(rank)]);
    calls.emplace_back(how, f32, rows, rank, 2);
    calls.back().slices = of[at(rank)].field;
  }
  const std::vector<call_record> ended =
      ranks.run([&](const rank_of_group& me) { return calls[at(me.rank)].run(me); });
  for (const call_record& one : ended) {
    INFO(one);
    CHECK((one.code == VELO_OK || one.code == VELO_ERR_PEER));
    CHECK(one.code == ended[0].code);
  }
  return ended[0].code == VELO_OK;
}

}  // namespace

TEST_CASE("the table gives the number of slices of a shape where the field leaves it open") {
  for (const kind how : kinds) {
    INFO(names[static_cast<int>(how)]);
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
  for (const kind how : kinds) {
    INFO(names[static_cast<int>(how)]);
    CHECK(agree(how, many, {asked{1}, {4, "*:3", "whole"}}));
    CHECK_FALSE(agree(how, many, {asked{4}, {4, "", "whole"}}));
    CHECK(agree(how, many, {asked{4}, {4, "", "sliced"}}));
    CHECK(agree(how, many, {asked{1}, {1, "", "sliced"}}));  // a field of 1 holds
    CHECK_FALSE(agree(how, few, {asked{0}, {0, "", "sliced"}}));
  }
}

TEST_CASE("velo_op_explain shows which way the keys choose") {
  const local_ranks ranks(2);
  const velo_context context = ranks.context(0);
  for (const kind how : kinds) {
    call one(how, f32, few, 0, 2);
    const auto explain = [&](const asked& of) {
      set_keys(context, of);
      one.slices = of.field;
      return one.explained(context, ranks.group(0));
    };
    INFO(names[static_cast<int>(how)]);
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
      for (const kind how : kinds)
        for (const std::int64_t rows : {few, many}) {
          const local_ranks ranks(count);
          std::deque<std::deque<call>> results;
          for (const asked& of : {asked{},
                                  {0, "1320x8x24:4,*:2"},
                                  {0, "*x8x*:7"},
                                  {3, "", "whole"},
                                  {0, "", "sliced"}}) {
            std::deque<call>& calls = results.emplace_back();
            for (int rank = 0; rank < count; ++rank) {
              set_keys(ranks.context(rank), of);
              calls.emplace_back(how, dtype, rows, rank, count);
              calls.back().slices = of.field;
            }
            ranks.require([&](const rank_of_group& me) { return calls[at(me.rank)].run(me); });
            INFO(count << " ranks, " << names[static_cast<int>(how)] << ", " << rows << " rows, "
                       << of.table << " " << of.mode << ", bits " << int{dtype.bits});
            for (int rank = 0; rank < count; ++rank)
              CHECK(calls[at(rank)].same_bits(results[0][at(rank)]));
          }
        }
}

TEST_CASE("linear layers of tensor parallelism have the slices of their shape, too") {
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs})
    for (const int slices : {4, 3}) {
      linear_case given = even_linear(weight, 2), open = given;
      given.slices = 4, open.slices = 0;
      const local_ranks ranks(2, group_desc(2000));
      const std::int64_t n = given.by_outputs() ? given.widths[1] : given.n();
      const std::int64_t k = given.by_outputs() ? given.k() : given.widths[1];
      const std::string table = std::to_string(given.all_rows() * given.lines) + "x" +
                                std::to_string(k) + "x" + std::to_string(n) + ":" +
                                std::to_string(slices);
      set_keys(ranks.context(1), {0, table.c_str()});
      const linear_rank first(given, 0), last(open, 1);
      const std::vector<call_record> ended = ranks.run([&](const rank_of_group& me) {
        return (me.rank == 0 ? first : last).forward(me.stream, me.group);
      });
      INFO(table);
      for (const call_record& one : ended)
        CHECK(one.code == (slices == 4 ? VELO_OK : VELO_ERR_PEER));
    }
}
