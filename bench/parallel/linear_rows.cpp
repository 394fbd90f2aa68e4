// Rows of linear layers that are cut between two ranks, with sequence parallelism.
//
// Two calls take turns: the layer in one call, with its gradient in a second one where the row has
// it, and the composition of all_gather, matmul, reduce_scatter, add and matmul_backward. Shapes:
// rows of all ranks, outputs and inputs of this rank. Layers have a bias, and add the gradients of
// weight and bias to float32 ones. "again": the forward pass keeps no gathered rows, and the
// gradient gathers them again. Results are held against the composition's, bit for bit.
#include <cstring>
#include <tuple>
#include <type_traits>

#include "bench/harness/require.hpp"
#include "bench/parallel/attention_calls.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

enum class pass { forward, with_gradient, again };

struct row {
  bool by_outputs;  // column_parallel_linear, else row_parallel_linear
  dtype type;
  std::int64_t m, n, k;
  pass what;

  std::string name() const { return by_outputs ? "column_parallel_linear" : "row_parallel_linear"; }
  std::string text() const {
    constexpr const char* passes[] = {"forward", "and gradient", "and gradient, again"};
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
        composed_(r) {}

  void call(int which) const {
    if (which == peer) return r_.by_outputs ? compose_column() : compose_row();
    r_.by_outputs ? call_column() : call_row();
  }
  bool is_right() const {
    return fused_.y.difference(composed_.y) == 0 &&
           (!has_gradient() || fused_.dx.difference(composed_.dx) == 0);
  }

 private:
  bool has_gradient() const { return r_.what != pass::forward; }
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

  template <class Forward, class Gradient>
  void call_fused(velo_status (*forward)(velo_stream, const Forward*), Forward args,
                  velo_status (*gradient)(velo_stream, const Gradient*), Gradient back) const {
    const velo_tensor x = x_.matrix(), weight = weight_.matrix(), added = bias(),
                      y = fused_.y.matrix(), dy = dy_.matrix(), dx = fused_.dx.matrix(),
                      dweight = fused_.dweight.matrix(), dbias = dbias_of(fused_),
                      gathered = fused_.gathered.matrix();
    args.group = me_.group, args.x = &x, args.weight = &weight, args.bias = &added, args.y = &y;
    args.sequence_parallel = 1;
    if constexpr (std::is_same_v<Forward, velo_column_parallel_linear_args>)
      if (r_.what == pass::with_gradient) args.gathered = back.gathered = &gathered;
    require(forward(me_.stream, &args));
    if (!has_gradient()) return;
    back.group = me_.group, back.x = &x, back.weight = &weight, back.dy = &dy, back.dx = &dx;
    back.dweight = &dweight, back.dbias = &dbias;
    back.sequence_parallel = back.accumulate = 1;
    require(gradient(me_.stream, &back));
  }
  void call_column() const {
    call_fused<velo_column_parallel_linear_args, velo_column_parallel_linear_backward_args>(
        velo_column_parallel_linear, VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT,
        velo_column_parallel_linear_backward, VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT);
  }
  void call_row() const {
    call_fused<velo_row_parallel_linear_args, velo_row_parallel_linear_backward_args>(
        velo_row_parallel_linear, VELO_ROW_PARALLEL_LINEAR_ARGS_INIT,
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
  void compose_column() const {
    gather(x_);
    multiply(composed_.gathered, true, true, composed_.y);
    if (!has_gradient()) return;
    if (r_.what == pass::again) gather(x_);
    multiply(dy_, false, false, composed_.product);
    scatter(composed_.dx);
    multiply_rest(dy_, composed_.gathered);
  }
  void compose_row() const {
    multiply(x_, true, false, composed_.product);
    scatter(composed_.y);
    const velo_tensor sum = composed_.y.matrix(), added = spread_.matrix();
    velo_add_args args = VELO_ADD_ARGS_INIT;
    args.a = &sum, args.b = &added, args.y = &sum;
    require(velo_add(me_.stream, &args));
    if (!has_gradient()) return;
    gather(dy_);
    multiply(composed_.gathered, false, false, composed_.dx);
    multiply_rest(composed_.gathered, x_);
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
        for (const pass what : {pass::forward, pass::with_gradient, pass::again})
          if (by_outputs || what != pass::again) rows.push_back({by_outputs, type, m, n, k, what});
      }
  return rows;
}

}  // namespace

bool measure_linears(const pair_options& set, board& all, const row_taker& take) {
  for (const row& r : all_rows())
    if (!measure_pair<layer>({r.name(), r.type, r.text(), "composition"}, r, set, all, take))
      return false;
  return true;
}

}  // namespace velo::bench
