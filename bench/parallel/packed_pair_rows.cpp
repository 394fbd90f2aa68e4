// Rows of a pair of linear layers with packed weights, as a branch of a decoder layer has them: a
// column_parallel_linear and a row_parallel_linear over two ranks with sequence parallelism, and
// their gradients.
//
// Two calls take turns: the four operators, and their composition of all_gather, matmul,
// reduce_scatter and matmul_add_fp32, whose products read the same packs. Weights are packed before
// the first call, as once a step. The forward pass keeps no gathered rows; the gradients are added
// to float32 ones. Shapes: rows of all ranks, outer width, inner width of both ranks. Results are
// held against the composition's, bit for bit.
#include <memory>
#include <tuple>
#include <type_traits>

#include "bench/harness/require.hpp"
#include "bench/parallel/attention_calls.hpp"
#include "bench/parallel/pair_rows.hpp"

namespace velo::bench {
namespace {

struct row {
  dtype type;
  std::int64_t m, outer, inner;  // inner: of a rank

  std::string text() const {
    return std::to_string(m) + "x" + std::to_string(outer) + "x" + std::to_string(ranks * inner);
  }
};

struct destroy_pack {
  void operator()(velo_pack pack) const { velo_pack_destroy(pack); }
};
using pack = std::unique_ptr<std::remove_pointer_t<velo_pack>, destroy_pack>;

// A weight [n, k] and its packs, for y = x @ weight^T and for dx = dy @ weight.
class weight {
 public:
  weight(dtype type, std::int64_t n, std::int64_t k, int seed, const rank_of& me)
      : plain_(type, first_rows(n), 1, k, seed),
        forward_(packed(true, me)),
        backward_(packed(false, me)) {}

  velo_tensor view() const { return plain_.matrix(); }
  velo_pack forward() const { return forward_.get(); }
  velo_pack backward() const { return backward_.get(); }

 private:
  pack packed(bool transpose, const rank_of& me) const {
    const velo_tensor from = view();
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = from.dtype, desc.transpose = transpose;
    desc.k = from.shape[transpose ? 1 : 0], desc.n = from.shape[transpose ? 0 : 1];
    velo_pack made = nullptr;
    require(velo_pack_create(me.context, &desc, &made));
    pack owner(made);
    require(velo_pack_update(me.stream, made, &from));
    require(velo_stream_synchronize(me.stream));
    return owner;
  }

  const row_block plain_;
  const pack forward_, backward_;
};

// The results of a contender, and what lies between its calls.
struct results {
  explicit results(const row& r)
      : y(r.type, first_rows(r.m / ranks), 1, r.outer, 11),
        dx(r.type, first_rows(r.m / ranks), 1, r.outer, 12),
        between(r.type, first_rows(r.m), 1, r.inner, 13),
        dbetween(r.type, first_rows(r.m), 1, r.inner, 14),
        dcolumn(dtype::f32, first_rows(r.inner), 1, r.outer, 15),
        drow(dtype::f32, first_rows(r.outer), 1, r.inner, 16) {}

  const row_block y, dx, between, dbetween, dcolumn, drow;
};

// One rank's tensors and calls of a row.
class layers {
 public:
  layers(const row& r, const rank_of& me)
      : me_(me),
        x_(r.type, first_rows(r.m / ranks), 1, r.outer, 2 * me.number),
        dy_(r.type, first_rows(r.m / ranks), 1, r.outer, 8 + me.number),
        gathered_(r.type, first_rows(r.m), 1, r.outer, 17),
        product_(r.type, first_rows(r.m), 1, r.outer, 18),
        column_(r.type, r.inner, r.outer, 21 + me.number, me),
        row_(r.type, r.outer, r.inner, 23 + me.number, me),
        fused_(r),
        composed_(r) {}

  void call(int which) const { which == peer ? compose() : call_operators(); }
  bool is_right() const {
    return fused_.y.difference(composed_.y) == 0 && fused_.dx.difference(composed_.dx) == 0;
  }

 private:
  template <class Args>
  void forward(velo_status (*call)(velo_stream, const Args*), Args args, const weight& by,
               const row_block& x, const row_block& y) const {
    const velo_tensor from = x.matrix(), matrix = by.view(), to = y.matrix();
    args.group = me_.group, args.x = &from, args.weight = &matrix, args.y = &to;
    args.packed = by.forward(), args.sequence_parallel = 1;
    require(call(me_.stream, &args));
  }
  struct gradient_of {
    const row_block &x, &dy, &dx, &dweight;
  };
  template <class Args>
  void backward(velo_status (*call)(velo_stream, const Args*), Args args, const weight& by,
                const gradient_of& of) const {
    const velo_tensor x = of.x.matrix(), dy = of.dy.matrix(), dx = of.dx.matrix(),
                      dweight = of.dweight.matrix(), matrix = by.view();
    args.group = me_.group, args.x = &x, args.dy = &dy, args.weight = &matrix;
    args.dx = &dx, args.dweight = &dweight;
    args.packed = by.backward(), args.sequence_parallel = args.accumulate = 1;
    require(call(me_.stream, &args));
  }
  void call_operators() const {
    const results& to = fused_;
    const velo_column_parallel_linear_args first = VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT;
    const velo_row_parallel_linear_args second = VELO_ROW_PARALLEL_LINEAR_ARGS_INIT;
    forward(velo_column_parallel_linear, first, column_, x_, to.between);
    forward(velo_row_parallel_linear, second, row_, to.between, to.y);
    const velo_row_parallel_linear_backward_args back = VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
    const velo_column_parallel_linear_backward_args last =
        VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
    backward(velo_row_parallel_linear_backward, back, row_,
             {to.between, dy_, to.dbetween, to.drow});
    backward(velo_column_parallel_linear_backward, last, column_,
             {x_, to.dbetween, to.dx, to.dcolumn});
  }

  void gather(const row_block& from) const {
    const velo_tensor in = from.matrix(), out = gathered_.matrix();
    require(velo_group_all_gather(me_.stream, me_.group, &in, &out));
  }
  void scatter(const row_block& to) const {
    const velo_tensor in = product_.matrix(), out = to.matrix();
    require(velo_group_reduce_scatter(me_.stream, me_.group, nullptr, &in, &out));
  }
  void multiply(const row_block& a, velo_pack packed, const row_block& c) const {
    const velo_tensor left = a.matrix(), to = c.matrix();
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &left, args.packed = packed, args.c = &to;
    require(velo_matmul(me_.stream, &args));
  }
  void add_weight_gradient(const row_block& x, const row_block& dy, const row_block& to) const {
    const velo_tensor input = x.matrix(), output = dy.matrix(), grad = to.matrix();
    velo_matmul_add_fp32_args args = VELO_MATMUL_ADD_FP32_ARGS_INIT;
    args.total_input = &input, args.grad_output = &output, args.grad = &grad;
    require(velo_matmul_add_fp32(me_.stream, &args));
  }
  void compose() const {
    const results& to = composed_;
    gather(x_);
    multiply(gathered_, column_.forward(), to.between);
    multiply(to.between, row_.forward(), product_);
    scatter(to.y);
    gather(dy_);
    multiply(gathered_, row_.backward(), to.dbetween);
    add_weight_gradient(to.between, gathered_, to.drow);
    gather(x_);
    add_weight_gradient(gathered_, to.dbetween, to.dcolumn);
    multiply(to.dbetween, column_.backward(), product_);
    scatter(to.dx);
  }

  const rank_of& me_;
  const row_block x_, dy_, gathered_, product_;
  const weight column_, row_;
  const results fused_, composed_;
};

}  // namespace

bool measure_packed_pairs(const pair_options& set, board& all, const row_taker& take) {
  for (const dtype type : {dtype::f32, dtype::bf16})
    for (const auto& [m, outer, inner] :
         {std::tuple{4096, 512, 256}, {4096, 512, 704}, {2048, 1024, 512}, {2048, 1024, 1408}}) {
      const row r{type, m, outer, inner};
      const pair_row name{"packed linear pair", type, r.text(), "composition"};
      if (!measure_pair<layers>(name, r, set, all, take)) return false;
    }
  return true;
}

}  // namespace velo::bench
