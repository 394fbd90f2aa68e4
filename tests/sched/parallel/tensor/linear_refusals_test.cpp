// What the cut linear layers refuse, by name and with their results untouched; what ranks that
// disagree hear; and which kernel a call has.
#include <thread>

#include "comm/ranks.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/sched/parallel/tensor/linear_ranks.hpp"

using namespace velo::testing;

namespace {

using forward_args = velo_column_parallel_linear_args;
using gradient_args = velo_column_parallel_linear_backward_args;

// A tensor with one number of its shape changed.
class other_shape {
 public:
  other_shape(const velo_tensor& of, int dimension, std::int64_t size)
      : sizes_(of.shape, of.shape + of.ndim), view_(of) {
    sizes_[at(dimension)] = size;
    view_.shape = sizes_.data();
  }
  const velo_tensor* operator&() const { return &view_; }

 private:
  std::vector<std::int64_t> sizes_;
  velo_tensor view_;
};

velo_tensor with_dtype(velo_tensor of, velo_dtype dtype) {
  of.dtype = dtype;
  return of;
}

bool is_chosen(const std::string& text, const std::string& kernel) {
  const std::size_t at = text.find(R"("name":")" + kernel + "\"");
  return at != std::string::npos &&
         text.find(R"("chosen":true)", at) < text.find(R"("reason")", at);
}

// What velo_op_explain says of a call with x, weight and attributes.
std::string explained(const local_ranks& all, const char* name, const linear_rank& one,
                      std::int64_t slices) {
  const velo_tensor x = one.x.view(), weight = one.weight.view();
  velo_named_value values[5] = {};
  const auto set = [&](int i, const char* field, std::int32_t kind) -> velo_value& {
    values[i].name = field, values[i].value.kind = kind;
    return values[i].value;
  };
  set(0, "group", VELO_VALUE_HANDLE).as.p = all.group(0);
  set(1, "x", VELO_VALUE_TENSOR).as.tensor = &x;
  set(2, "weight", VELO_VALUE_TENSOR).as.tensor = &weight;
  set(3, "parallel_num", VELO_VALUE_INT).as.i = slices;
  set(4, "sequence_parallel", VELO_VALUE_INT).as.i = 1;
  char text[2048] = "";
  REQUIRE(velo_op_explain(all.context(0), name, values, 5, text, sizeof text, nullptr) == VELO_OK);
  return text;
}

// All ranks make calls; each of them fails for a rank, at every level.
template <class Call>
void check_disagreement(const Call& call) {
  for (const char* level : {"2", "1", "0"}) {
    const local_ranks all(2, group_desc(5000));
    set_all(all, "level", level);
    INFO("level " << level);
    for (const call_record& one : all.run(call)) CHECK(one.code == VELO_ERR_PEER);
  }
}

}  // namespace

TEST_CASE("column_parallel_linear refuses what does not fit, by name") {
  const local_ranks all(2);
  const linear_case of = even_linear(cut_of::outputs, 2);  // x [3, 2, 20], weight [8, 20]
  const linear_rank one(of, 0), before(of, 0);
  const velo_tensor x = one.x.view(), weight = one.weight.view(), bias = one.bias.view(),
                    y = one.y.view(), gathered = one.gathered.view();
  const velo_tensor narrow = with_dtype(weight, bf16), half_bias = with_dtype(bias, f16);
  const other_shape shallow(x, 2, 19), short_bias(bias, 0, 7), few(y, 0, 5);
  velo_tensor flat = x;
  flat.ndim = 1;
  const std::int64_t three[] = {3, 3, 0}, wrong[] = {2, 4}, negative[] = {-1, 7};
  const velo_ints long_list{three, 3}, other_list{wrong, 2}, bad_list{negative, 2};
  forward_args valid = VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT;
  valid.group = all.group(0), valid.x = &x, valid.weight = &weight, valid.bias = &bias;
  valid.y = &y, valid.gathered = &gathered, valid.sequence_parallel = 1;
  check_refusals<forward_args>(
      valid, [&](const forward_args& a) { return velo_column_parallel_linear(all.stream(0), &a); },
      {{[](forward_args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](forward_args& a) { a.x = &flat; }, VELO_ERR_RANK, "args.x.ndim"},
       {[&](forward_args& a) { a.x = &shallow; }, VELO_ERR_SHAPE, "args.x.shape"},
       {[&](forward_args& a) { a.weight = &narrow; }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[&](forward_args& a) { a.weight = &x; }, VELO_ERR_RANK, "args.weight.ndim"},
       {[&](forward_args& a) { a.bias = &short_bias; }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](forward_args& a) { a.bias = &half_bias; }, VELO_ERR_DTYPE, "args.bias.dtype"},
       {[&](forward_args& a) { a.y = &few; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[](forward_args& a) { a.gather_output = 1; }, VELO_ERR_ARGUMENT, "args.gather_output",
        "0 with sequence_parallel", "1"},
       {[&](forward_args& a) { a.rows = &long_list; }, VELO_ERR_ARGUMENT, "args.rows.count", "2",
        "3"},
       {[&](forward_args& a) { a.rows = &other_list; }, VELO_ERR_SHAPE, "args.x.shape",
        "2 rows, as args.rows says", "3"},
       {[&](forward_args& a) { a.rows = &bad_list; }, VELO_ERR_ARGUMENT, "args.rows[0]",
        "rows from 0 to 2^40", "-1"},
       {[&](forward_args& a) { a.rows = &other_list, a.sequence_parallel = 0; }, VELO_ERR_ARGUMENT,
        "args.rows", "NULL without sequence_parallel", "a list"},
       {[](forward_args& a) { a.sequence_parallel = 0; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[](forward_args& a) { a.parallel_num = 1025; }, VELO_ERR_ARGUMENT, "args.parallel_num"},
       {[&](forward_args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  forward_args whole = valid;  // the group is not entered, and checked all the same
  const other_shape own_y(y, 0, 3);
  whole.sequence_parallel = 0, whole.gathered = nullptr, whole.y = &own_y;
  check_refusals<forward_args>(
      whole, [&](const forward_args& a) { return velo_column_parallel_linear(all.stream(0), &a); },
      {{[&](forward_args& a) { a.gathered = &gathered; }, VELO_ERR_RANK, "args.gathered.shape"},
       {[&](forward_args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  CHECK(one.same_bits(before));
  all.require_barrier();
}

TEST_CASE("column_parallel_linear_backward refuses what does not fit, by name") {
  const local_ranks all(2);
  const linear_case of = even_linear(cut_of::outputs, 2);
  const linear_rank one(of, 0), before(of, 0);
  const velo_tensor x = one.x.view(), weight = one.weight.view(), dy = one.dy.view(),
                    dx = one.dx.view(), dweight = one.dweight.view(), dbias = one.dbias.view(),
                    gathered = one.gathered.view();
  const velo_tensor half = with_dtype(dweight, f16), half_bias = with_dtype(dbias, f16);
  const other_shape odd(dy, 0, 5), narrow(dy, 2, 7), few(dx, 0, 2);
  gradient_args valid = VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
  valid.group = all.group(0), valid.x = &x, valid.weight = &weight, valid.dy = &dy;
  valid.dx = &dx, valid.dweight = &dweight, valid.dbias = &dbias, valid.sequence_parallel = 1;
  check_refusals<gradient_args>(
      valid,
      [&](const gradient_args& a) {
        return velo_column_parallel_linear_backward(all.stream(0), &a);
      },
      {{[](gradient_args& a) { a.dy = nullptr; }, VELO_ERR_NULL, "args.dy"},
       {[](gradient_args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](gradient_args& a) { a.x = &gathered; }, VELO_ERR_SHAPE, "args.x.shape"},
       {[&](gradient_args& a) { a.gathered = &x; }, VELO_ERR_SHAPE, "args.gathered.shape"},
       {[&](gradient_args& a) { a.dy = &odd; }, VELO_ERR_SHAPE, "args.dy.shape",
        "a first dimension that divides by 2 ranks, or args.rows", "5"},
       {[&](gradient_args& a) { a.dy = &narrow; }, VELO_ERR_SHAPE, "args.dy.shape"},
       {[&](gradient_args& a) { a.dx = &few; }, VELO_ERR_SHAPE, "args.dx.shape"},
       {[&](gradient_args& a) { a.dweight = &half; }, VELO_ERR_DTYPE, "args.dweight.dtype"},
       {[&](gradient_args& a) { a.dbias = &half_bias; }, VELO_ERR_DTYPE, "args.dbias.dtype"},
       {[](gradient_args& a) { a.gather_output = 1; }, VELO_ERR_ARGUMENT, "args.gather_output"},
       {[&](gradient_args& a) { a.gathered = &gathered, a.sequence_parallel = 0, a.x = nullptr; },
        VELO_ERR_ARGUMENT, "args.gathered", "NULL without sequence_parallel", "a tensor"},
       {[&](gradient_args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  CHECK(one.same_bits(before));
  all.require_barrier();
}

TEST_CASE("row_parallel_linear and its gradient refuse what does not fit, by name") {
  const local_ranks all(2);
  const linear_case of = even_linear(cut_of::inputs, 2);  // x [6, 2, 8], weight [20, 8]
  const linear_rank one(of, 0), before(of, 0);
  const velo_tensor x = one.x.view(), weight = one.weight.view(), bias = one.bias.view(),
                    y = one.y.view(), dy = one.dy.view(), dx = one.dx.view(),
                    dweight = one.dweight.view();
  const other_shape odd(x, 0, 5), shallow(x, 2, 7), few(y, 0, 2), short_bias(bias, 0, 19);
  using args = velo_row_parallel_linear_args;
  args valid = VELO_ROW_PARALLEL_LINEAR_ARGS_INIT;
  valid.group = all.group(0), valid.x = &x, valid.weight = &weight, valid.bias = &bias;
  valid.y = &y, valid.sequence_parallel = 1;
  check_refusals<args>(
      valid, [&](const args& a) { return velo_row_parallel_linear(all.stream(0), &a); },
      {{[](args& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.x = &odd; }, VELO_ERR_SHAPE, "args.x.shape"},
       {[&](args& a) { a.x = &shallow; }, VELO_ERR_SHAPE, "args.x.shape"},
       {[&](args& a) { a.y = &few; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[&](args& a) { a.bias = &short_bias; }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  using back = velo_row_parallel_linear_backward_args;
  back gradient = VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
  gradient.group = all.group(0), gradient.x = &x, gradient.weight = &weight, gradient.dy = &dy;
  gradient.dx = &dx, gradient.dweight = &dweight, gradient.sequence_parallel = 1;
  check_refusals<back>(
      gradient, [&](const back& a) { return velo_row_parallel_linear_backward(all.stream(0), &a); },
      {{[](back& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
       {[&](back& a) { a.x = &odd; }, VELO_ERR_SHAPE, "args.x.shape"},
       {[&](back& a) { a.dy = &x; }, VELO_ERR_SHAPE, "args.dy.shape"},
       {[&](back& a) { a.dx = &odd; }, VELO_ERR_SHAPE, "args.dx.shape"},
       {[&](back& a) { a.group = all.group(1); }, VELO_ERR_ARGUMENT, "args.group"}});
  CHECK(one.same_bits(before));
  all.require_barrier();
}

TEST_CASE("ranks whose layers differ in rows, flags or slices all hear of it") {
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs}) {
    linear_case of = even_linear(weight, 2);
    of.lists_rows = true;
    linear_case rows = of, slices = of, evenly = of;
    rows.rows = {2, 4};
    slices.slices = 2;
    evenly.lists_rows = false;
    std::vector<linear_case> others{rows, slices, evenly};
    if (weight == cut_of::inputs) {
      others.push_back(of);
      others.back().cuts_rows = false;
    }
    for (const linear_case& other : others) {
      const linear_rank first(of, 0), last(other, 1);
      check_disagreement([&](const rank_of_group& me) {
        return (me.rank == 0 ? first : last).forward(me.stream, me.group);
      });
      if (!other.cuts_rows) continue;  // whose gradient is not sent
      check_disagreement([&](const rank_of_group& me) {
        return (me.rank == 0 ? first : last).gradient(me.stream, me.group, {});
      });
    }
  }
}

TEST_CASE("ranks whose lists of outputs differ all hear of it") {
  linear_case of = even_linear(cut_of::outputs, 2);
  of.cuts_rows = false, of.gathers_output = of.lists_columns = true;
  of.widths = {3, 5};
  linear_case other = of, evenly = of;
  other.widths = {4, 4};
  evenly.widths = {5, 5}, evenly.lists_columns = false;
  for (const linear_case& odd : {other, evenly}) {
    const linear_rank first(of, 0), last(odd, 1);
    check_disagreement([&](const rank_of_group& me) {
      return (me.rank == 0 ? first : last).forward(me.stream, me.group);
    });
    check_disagreement([&](const rank_of_group& me) {
      return (me.rank == 0 ? first : last).gradient(me.stream, me.group, {});
    });
  }
}

TEST_CASE("a list of outputs that does not fit is refused by name") {
  const local_ranks all(2);
  linear_case of = even_linear(cut_of::outputs, 2);
  of.cuts_rows = false, of.widths = {3, 5}, of.gathers_output = true;
  const linear_rank one(of, 0);
  const velo_tensor x = one.x.view(), y = one.y.view(), weight = one.weight.view(),
                    dy = one.dy.view(), dx = one.dx.view();
  const std::int64_t three[] = {3, 5, 0}, below[] = {3, -1}, even[] = {4, 4}, more[] = {3, 6};
  const velo_ints outputs{of.widths.data(), 2}, long_list{three, 3}, bad_list{below, 2},
      other_list{even, 2}, wide_list{more, 2};
  forward_args valid = VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT;
  valid.group = all.group(0), valid.x = &x, valid.weight = &weight, valid.y = &y;
  valid.gather_output = 1, valid.columns = &outputs;
  check_refusals<forward_args>(
      valid, [&](const forward_args& a) { return velo_column_parallel_linear(all.stream(0), &a); },
      {{[](forward_args& a) { a.gather_output = 0; }, VELO_ERR_ARGUMENT, "args.columns",
        "NULL without gather_output", "a list"},
       {[&](forward_args& a) { a.columns = &long_list; }, VELO_ERR_ARGUMENT, "args.columns.count",
        "2", "3"},
       {[&](forward_args& a) { a.columns = &bad_list; }, VELO_ERR_ARGUMENT, "args.columns[1]",
        "columns from 0 to 2^40", "-1"},
       {[&](forward_args& a) { a.columns = &other_list; }, VELO_ERR_SHAPE, "args.weight.shape",
        "4 rows, as args.columns says", "3"},
       {[&](forward_args& a) { a.columns = &wide_list; }, VELO_ERR_SHAPE, "args.y.shape"},
       {[](forward_args& a) { a.columns = nullptr; }, VELO_ERR_SHAPE, "args.y.shape"}});
  gradient_args gradient = VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
  gradient.group = all.group(0), gradient.dy = &dy, gradient.weight = &weight, gradient.dx = &dx;
  gradient.gather_output = 1, gradient.columns = &wide_list;
  CHECK_REFUSED(velo_column_parallel_linear_backward(all.stream(0), &gradient), VELO_ERR_SHAPE,
                "args.dy.shape");
  all.require_barrier();
}

TEST_CASE("ranks that want other gradients, or keep what others gather again, all hear of it") {
  const linear_case of = even_linear(cut_of::outputs, 2),
                    by_inputs = even_linear(cut_of::inputs, 2);
  linear_case again = of;
  again.keeps_x = false;
  const linear_rank first(of, 0), last(of, 1), gathers(again, 1), row(by_inputs, 0),
      other_row(by_inputs, 1);
  const linear_rank::wanted no_dx{false, true, true}, all{};
  check_disagreement([&](const rank_of_group& me) {
    return me.rank == 0 ? first.gradient(me.stream, me.group, all)
                        : gathers.gradient(me.stream, me.group, all);
  });
  check_disagreement([&](const rank_of_group& me) {
    return me.rank == 0 ? row.gradient(me.stream, me.group, all)
                        : other_row.gradient(me.stream, me.group, no_dx);
  });
  check_disagreement([&](const rank_of_group& me) {
    return me.rank == 0 ? first.forward(me.stream, me.group)
                        : gathers.gradient(me.stream, me.group, no_dx);
  });
}

TEST_CASE("a rank that does not come, or aborts, ends a cut layer on the others") {
  for (const cut_of weight : {cut_of::outputs, cut_of::inputs})
    for (const bool aborts : {false, true})
      for (const char* level : {"2", "1"}) {
        const local_ranks all(3, group_desc(aborts ? 20000 : 200));
        set_all(all, "level", level);
        linear_case of = even_linear(weight, 3, 50);
        of.keeps_x = false;
        const linear_ranks now = ranks_of(of);
        const std::vector<call_record> ends = all.run([&](const rank_of_group& me) {
          if (me.rank != 1) return now[at(me.rank)]->gradient(me.stream, me.group, {});
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          return aborts ? velo_group_abort(me.group) : velo_status{VELO_OK};
        });
        for (const int r : {0, 2}) {
          CHECK(ends[at(r)].code == VELO_ERR_PEER);
          CHECK(ends[at(r)].rank == 1);
        }
      }
}

TEST_CASE("cut layers are sliced at level 2, and velo_op_explain says why not") {
  const local_ranks all(2);
  const linear_case outputs = even_linear(cut_of::outputs, 2),
                    inputs = even_linear(cut_of::inputs, 2);
  const linear_rank column(outputs, 0), row(inputs, 0);
  for (const auto& [name, one] :
       {std::pair{"column_parallel_linear", &column}, {"row_parallel_linear", &row}}) {
    CHECK(is_chosen(explained(all, name, *one, 3), "sliced"));
    CHECK(is_chosen(explained(all, name, *one, 1), "composition"));
  }
  set_all(all, "level", "0");
  CHECK(is_chosen(explained(all, "row_parallel_linear", row, 3), "reference"));
}
