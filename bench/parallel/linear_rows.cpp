// Rows of linear layers that are cut between two ranks, with sequence parallelism.
//
// Two calls take turns: the layer in one call, with its gradient in a second one where the row has
// it, and the composition of all_gather, matmul, reduce_scatter, add and matmul_backward. Shapes:
// rows of all ranks, outputs and inputs of this rank. Layers have a bias, and add the gradients of
// weight and bias to float32 ones. "gradient": that call alone. "again": the forward pass keeps no
// gathered rows, and the gradient gathers them again. Results are held against the composition's,
// bit for bit.
//
// Two calls more take turns with the gradient of column_parallel_linear that has all rows of x: its
// products alone, and the reduce_scatter of dx alone. The row "exposed" compares the time of the
// gradient beyond its products with that of this reduce_scatter; as a difference of two times it
// varies more than they do.
#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "bench/harness/require.hpp"
#include "bench/parallel/attention_calls.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

enum class pass { forward, with_gradient, again, gradient, gradient_again };
// Calls that take turns: those of every row, and the parts of a gradient.
enum part { products = contenders, scattering, parts };
static_assert(parts <= board::most_calls);

struct row {
  bool by_outputs;  // column_parallel_linear, else row_parallel_linear
  dtype type;
  std::int64_t m, n, k;
  pass what;

  std::string name() const { return by_outputs ? "column_parallel_linear" : "row_parallel_linear"; }
  bool has_forward() const { return what < pass::gradient; }
  bool has_gradient() const { return what != pass::forward; }
  bool gathers_again() const { return what == pass::again || what == pass::gradient_again; }
  std::string text() const {
    constexpr const char* passes[] = {"forward", "and gradient", "and gradient, again", "gradient",
                                      "gradient, again"};
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + " " +
           passes[static_cast<int>(what)];
  }
};

// The results of a contender.
struct results {
  explicit results(const row& r)
      : y(r.type, first_rows(r.by_outputs ? r.m : r.m / ranks), 1, r.n, 11),
        dx(r.type, first_rows(r.by_outputs ? r.m / ranks : r.m), 1, r.k, 12),
        gathered(r.type, first_rows(r.m), 1, r.by_outputs ? r.k : r.n, 13),
        product(r.type, first_rows(r.m), 1, r.by_outputs ? r.k : r.n, 14),
        dweight(dtype::f32, first_rows(r.n), 1, r.k, 15),
        dbias(static_cast<std::size_t>(r.n)) {}

  // gathered: rows of x or dy of all ranks. product: before its sum.
  const row_block y, dx, gathered, product, dweight;
  const std::vector<float> dbias;
};

// One rank's tensors and calls of a row.
class layer {
 public:
  layer(const row& r, const rank_of& me)
      : r_(r),
        me_(me),
        x_(r.type, first_rows(r.by_outputs ? r.m / ranks : r.m), 1, r.k, 2 * me.number),
        weight_(r.type, first_rows(r.n), 1, r.k, 2 * me.number + 1),
        bias_(r.type, first_rows(1), 1, r.n, 7),
        spread_(r.type, row_list(static_cast<std::size_t>(r.m / ranks), 0), 1, r.n, 7),
        dy_(r.type, first_rows(r.by_outputs ? r.m : r.m / ranks), 1, r.n, 8 + me.number),
        fused_(r),
        composed_(r) {
    if (r.has_forward()) return;
    forward();  // for the gradients
    compose_forward();
  }

  void call(int which) const {
    if (which == products) return multiply_gradients();
    if (which == scattering) return scatter(composed_.dx);
    if (r_.has_forward()) which == peer ? compose_forward() : forward();
    if (r_.has_gradient()) which == peer ? compose_gradient() : gradient();
  }
  bool is_right() const {
    return fused_.y.difference(composed_.y) == 0 &&
           (!r_.has_gradient() || fused_.dx.difference(composed_.dx) == 0);
  }

 private:
  velo_tensor bias() const {
    velo_tensor view = bias_.matrix();
    view.ndim = 1, view.shape = &r_.n;
    return view;
  }
  velo_tensor dbias_of(const results& to) const {
    return {const_cast<float*>(to.dbias.data()),
            {VELO_DEVICE_CPU, 0},
            1,
            {VELO_DTYPE_FLOAT, 32, 1},
            &r_.n,
            nullptr,
            0};
  }

  template <class Args>
  void call_forward(velo_status (*call)(velo_stream, const Args*), Args args) const {
    const velo_tensor x = x_.matrix(), weight = weight_.matrix(), added = bias(),
                      y = fused_.y.matrix(), gathered = fused_.gathered.matrix();
    args.group = me_.group, args.x = &x, args.weight = &weight, args.bias = &added, args.y = &y;
    args.sequence_parallel = 1;
    if constexpr (std::is_same_v<Args, velo_column_parallel_linear_args>)
      if (r_.has_gradient() && !r_.gathers_again()) args.gathered = &gathered;
    require(call(me_.stream, &args));
  }
  template <class Args>
  void call_gradient(velo_status (*call)(velo_stream, const Args*), Args args) const {
    const velo_tensor x = x_.matrix(), weight = weight_.matrix(), dy = dy_.matrix(),
                      dx = fused_.dx.matrix(), dweight = fused_.dweight.matrix(),
                      dbias = dbias_of(fused_), gathered = fused_.gathered.matrix();
    args.group = me_.group, args.x = &x, args.weight = &weight, args.dy = &dy, args.dx = &dx;
    args.dweight = &dweight, args.dbias = &dbias;
    args.sequence_parallel = args.accumulate = 1;
    if constexpr (std::is_same_v<Args, velo_column_parallel_linear_backward_args>)
      if (!r_.gathers_again()) args.gathered = &gathered;
    require(call(me_.stream, &args));
  }
  void forward() const {
    if (r_.by_outputs)
      return call_forward<velo_column_parallel_linear_args>(velo_column_parallel_linear,
                                                            VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT);
    call_forward<velo_row_parallel_linear_args>(velo_row_parallel_linear,
                                                VELO_ROW_PARALLEL_LINEAR_ARGS_INIT);
  }
  void gradient() const {
    if (r_.by_outputs)
      return call_gradient<velo_column_parallel_linear_backward_args>(
          velo_column_parallel_linear_backward, VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT);
    call_gradient<velo_row_parallel_linear_backward_args>(
        velo_row_parallel_linear_backward, VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT);
  }

  void gather(const row_block& from) const {
    const velo_tensor in = from.matrix(), out = composed_.gathered.matrix();
    require(velo_group_all_gather(me_.stream, me_.group, &in, &out));
  }
  void scatter(const row_block& to) const {
    const velo_tensor in = composed_.product.matrix(), out = to.matrix();
    require(velo_group_reduce_scatter(me_.stream, me_.group, nullptr, &in, &out));
  }
  void multiply(const row_block& a, bool transpose, bool adds, const row_block& c) const {
    const velo_tensor left = a.matrix(), right = weight_.matrix(), to = c.matrix(), added = bias();
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &left, args.b = &right, args.c = &to, args.transpose_b = transpose;
    if (adds) args.bias = &added;
    require(velo_matmul(me_.stream, &args));
  }
  void multiply_rest(const row_block& dy, const row_block& x) const {
    const velo_tensor dc = dy.matrix(), a = x.matrix(), db = composed_.dweight.matrix(),
                      sums = dbias_of(composed_);
    velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
    args.dc = &dc, args.a = &a, args.db = &db, args.dbias = &sums;
    args.transpose_b = args.accumulate = 1, args.dtype = VELO_PRODUCT_DTYPE_FLOAT32;
    require(velo_matmul_backward(me_.stream, &args));
  }
  void compose_forward() const {
    if (r_.by_outputs) {
      gather(x_);
      return multiply(composed_.gathered, true, true, composed_.y);
    }
    multiply(x_, true, false, composed_.product);
    scatter(composed_.y);
    const velo_tensor sum = composed_.y.matrix(), added = spread_.matrix();
    velo_add_args args = VELO_ADD_ARGS_INIT;
    args.a = &sum, args.b = &added, args.y = &sum;
    require(velo_add(me_.stream, &args));
  }
  void compose_gradient() const {
    if (r_.by_outputs) {
      if (r_.gathers_again()) gather(x_);
      multiply(dy_, false, false, composed_.product);
      scatter(composed_.dx);
      return multiply_rest(dy_, composed_.gathered);
    }
    gather(dy_);
    multiply(composed_.gathered, false, false, composed_.dx);
    multiply_rest(composed_.gathered, x_);
  }
  void multiply_gradients() const {
    multiply(dy_, false, false, composed_.product);
    multiply_rest(dy_, composed_.gathered);
  }

  const row r_;
  const rank_of& me_;
  const row_block x_, weight_, bias_, spread_, dy_;
  const results fused_, composed_;
};

// Layers of hidden 512 and 1024: of attention and of the feed-forward part.
std::vector<row> all_rows() {
  std::vector<row> rows;
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const bool by_outputs : {true, false})
      for (const auto& [m, width, other] : {std::tuple{4096, 256, 512}, {2048, 512, 1024}}) {
        const std::int64_t n = by_outputs ? width : other, k = by_outputs ? other : width;
        for (const pass what : {pass::forward, pass::with_gradient, pass::again, pass::gradient,
                                pass::gradient_again}) {
          const row one{by_outputs, type, m, n, k, what};
          if (by_outputs || !one.gathers_again()) rows.push_back(one);
        }
      }
  return rows;
}

bool has_exposed(const row& r) {
  return r.by_outputs && r.what == pass::gradient;
}

// The exposed time in microseconds. Its goal is a lower bound of the ratio of the exchange to it.
void take_exposed(const row& r, const char* by, const board& all, const row_taker& take) {
  const auto exposed = [&all](double at) {
    return std::max(all.slower(ours, at) - all.slower(products, at),
                    1e-3 * all.slower(scattering, at));
  };
  const double p25 = exposed(0.25), exchange = all.slower(scattering, 0.25);
  result made = result_of({r.name(), r.type, r.text() + ", dx exposed", "exchange"}, by, all);
  made.unit = "us";
  made.rates = {1e6 * p25};
  made.p25s = {p25};
  made.mins = {exposed(0)};
  made.peers.clear();
  made.add_peer("exchange", 1e6 * exchange, exchange / p25);
  take(made, all.rounds);
}

}  // namespace

bool measure_linears(const pair_options& set, board& all, const row_taker& take) {
  for (const row& r : all_rows()) {
    const auto and_exposed = [&](const result& made, int rounds) {
      take(made, rounds);
      if (has_exposed(r)) take_exposed(r, made.residency.c_str(), all, take);
    };
    pair_row of{r.name(), r.type, r.text(), "composition"};
    if (has_exposed(r)) of.calls = parts;
    if (!measure_pair<layer>(of, r, set, all, and_exposed)) return false;
  }
  return true;
}

}  // namespace velo::bench
