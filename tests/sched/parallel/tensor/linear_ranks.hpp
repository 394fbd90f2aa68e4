// A linear layer that is cut between ranks: its numbers, what each rank has of them, the calls of a
// rank, the calls apart, and the whole layer in double.
#pragma once

#include <cmath>

#include "comm/ranks.hpp"
#include "tests/tensors.hpp"

namespace velo::testing {

enum class cut_of { outputs, inputs };  // column_parallel_linear, row_parallel_linear

struct linear_case {
  cut_of weight = cut_of::outputs;
  velo_dtype dtype = f32;
  std::vector<std::int64_t> rows;      // of the first dimension, of each rank; with any cut
  std::vector<std::int64_t> widths;    // of each rank: outputs, or inputs
  std::int64_t lines = 2, other = 20;  // the width that is not cut
  bool cuts_rows = true, lists_rows = false, has_bias = true;
  bool gathers_output = false, lists_columns = false;
  bool accumulates = false, keeps_x = true;
  velo_dtype dweight = f32;
  std::int64_t slices = 3;

  int ranks() const { return static_cast<int>(rows.size()); }
  bool by_outputs() const { return weight == cut_of::outputs; }
  static std::int64_t sum(const std::vector<std::int64_t>& of, int count) {
    std::int64_t all = 0;
    for (int r = 0; r < count; ++r) all += of[at(r)];
    return all;
  }
  std::int64_t all_rows() const { return sum(rows, ranks()); }
  std::int64_t first_row(int rank) const { return cuts_rows ? sum(rows, rank) : 0; }
  std::int64_t rows_of(int rank) const { return cuts_rows ? rows[at(rank)] : all_rows(); }
  std::int64_t width() const { return sum(widths, ranks()); }
  std::int64_t first_width(int rank) const { return sum(widths, rank); }
  std::int64_t n() const { return by_outputs() ? width() : other; }  // of the whole layer
  std::int64_t k() const { return by_outputs() ? other : width(); }

  // Numbers of few bits, so that float32 sums are exact.
  static double number(int seed, std::int64_t i, std::int64_t j) {
    auto mixed = static_cast<std::uint32_t>(i * 7919 + j * 104729 + seed * 1299709 + 12345);
    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    return (static_cast<double>((mixed >> 11) % 17) - 8) / 8;
  }
  static double x(std::int64_t i, std::int64_t j) { return number(1, i, j); }
  static double w(std::int64_t o, std::int64_t j) { return number(2, o, j); }
  static double b(std::int64_t o) { return number(3, o, 0); }
  static double dy(std::int64_t i, std::int64_t o) { return number(4, i, o); }
  static double before(std::int64_t o, std::int64_t j) { return number(5, o, j); }
};

// A part of a matrix of the layer, from a row and a column of it on, as a tensor of three
// dimensions, or two without lines.
class part_of_matrix {
 public:
  part_of_matrix(velo_dtype dtype, std::vector<std::int64_t> shape, std::int64_t first_row = 0,
                 std::int64_t first_column = 0)
      : shape_(std::move(shape)),
        first_row_(first_row),
        first_column_(first_column),
        elements_(dtype, count(), 0) {}

  std::int64_t columns() const { return shape_.back(); }
  std::int64_t rows() const {
    std::int64_t all = 1;
    for (std::size_t i = 0; i + 1 < shape_.size(); ++i) all *= shape_[i];
    return all;
  }
  template <class Number>
  void fill(const Number& number) {
    each([&](std::int64_t i, std::int64_t row, std::int64_t column) {
      elements_.set(i, number(row, column));
    });
  }
  // The largest difference, and the largest number, of the whole's.
  struct difference {
    double worst = 0, most = 0;
  };
  template <class Number>
  difference from(const Number& number) const {
    difference all;
    each([&](std::int64_t i, std::int64_t row, std::int64_t column) {
      const double wanted = number(row, column), apart = std::abs(elements_.get(i) - wanted);
      all.most = std::max(all.most, std::abs(wanted));
      if (!(apart <= all.worst)) all.worst = apart;
    });
    return all;
  }
  velo_tensor view() const {
    velo_tensor all = elements_.view();
    all.ndim = static_cast<std::int32_t>(shape_.size()), all.shape = shape_.data();
    return all;
  }
  double get(std::int64_t i) const { return elements_.get(i); }
  void set(std::int64_t i, double x) { elements_.set(i, x); }
  bool same_bits(const part_of_matrix& other) const { return elements_.same_bits(other.elements_); }
  bool borders_kept() const { return elements_.borders_kept(); }

 private:
  std::int64_t count() const { return rows() * columns(); }
  template <class Body>
  void each(const Body& body) const {
    for (std::int64_t i = 0; i < count(); ++i)
      body(i, first_row_ + i / columns(), first_column_ + i % columns());
  }

  const std::vector<std::int64_t> shape_;
  const std::int64_t first_row_, first_column_;
  elements elements_;
};

// What a rank has of a layer.
class linear_rank {
 public:
  linear_rank(const linear_case& of, int rank)
      : of_(of),
        rank_(rank),
        first_n_(of.by_outputs() ? of.first_width(rank) : 0),
        first_k_(of.by_outputs() ? 0 : of.first_width(rank)),
        n_(of.by_outputs() ? of.widths[at(rank)] : of.other),
        k_(of.by_outputs() ? of.other : of.widths[at(rank)]),
        x(of.dtype, shape(!of.by_outputs(), k_), row(!of.by_outputs()), first_k_),
        weight(of.dtype, {n_, k_}, first_n_, first_k_),
        bias(of.dtype, {n_}, 0, first_n_),
        y(of.dtype, shape(of.by_outputs(), y_width()), row(of.by_outputs()), first_y()),
        gathered(of.dtype, shape(true, k_), 0, first_k_),
        dy(of.dtype, shape(of.by_outputs(), y_width()), row(of.by_outputs()), first_y()),
        dx(of.dtype, shape(!of.by_outputs(), k_), row(!of.by_outputs()), first_k_),
        dweight(of.dweight, {n_, k_}, first_n_, first_k_),
        dbias(f32, {n_}, 0, first_n_) {
    x.fill(linear_case::x);
    weight.fill(linear_case::w);
    bias.fill([](std::int64_t, std::int64_t o) { return linear_case::b(o); });
    dy.fill(linear_case::dy);
    dweight.fill(linear_case::before);
    dbias.fill([](std::int64_t, std::int64_t o) { return linear_case::before(o, 0); });
  }
  linear_rank(const linear_rank&) = delete;

  velo_status forward(velo_stream stream, velo_group group) const {
    if (!of_.by_outputs()) {
      velo_row_parallel_linear_args args = VELO_ROW_PARALLEL_LINEAR_ARGS_INIT;
      const forward_views views(*this);
      views.set(args, of_, group);
      return velo_row_parallel_linear(stream, &args);
    }
    velo_column_parallel_linear_args args = VELO_COLUMN_PARALLEL_LINEAR_ARGS_INIT;
    const forward_views views(*this);
    views.set(args, of_, group);
    if (of_.cuts_rows && of_.keeps_x) args.gathered = &views.gathered;
    args.gather_output = of_.gathers_output;
    if (of_.lists_columns) args.columns = &views.outputs;
    return velo_column_parallel_linear(stream, &args);
  }
  // Which of the results a gradient has.
  struct wanted {
    bool dx = true, dweight = true, dbias = true;
  };
  velo_status gradient(velo_stream stream, velo_group group, const wanted& of) const {
    if (!of_.by_outputs()) {
      velo_row_parallel_linear_backward_args args = VELO_ROW_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
      const gradient_views views(*this);
      views.set(args, of_, group, of);
      return velo_row_parallel_linear_backward(stream, &args);
    }
    velo_column_parallel_linear_backward_args args = VELO_COLUMN_PARALLEL_LINEAR_BACKWARD_ARGS_INIT;
    const gradient_views views(*this);
    views.set(args, of_, group, of);
    if (of_.cuts_rows && of_.keeps_x) args.gathered = &views.gathered, args.x = nullptr;
    args.gather_output = of_.gathers_output;
    if (of_.lists_columns) args.columns = &views.outputs;
    return velo_column_parallel_linear_backward(stream, &args);
  }
  velo_status run(const rank_of_group& me) const {
    const velo_status done = forward(me.stream, me.group);
    return done == VELO_OK ? gradient(me.stream, me.group, {}) : done;
  }

  // The forward call and the gradient by all_gather, matmul, reduce_scatter, all_reduce and add.
  velo_status apart(const rank_of_group& me) const;

  // Whether results have the numbers of the whole layer, within so many rounding errors.
  bool is_right(double rounding, const wanted& of = {true, true, true}) const;
  bool same_bits(const linear_rank& other) const {
    return y.same_bits(other.y) && dx.same_bits(other.dx) && dweight.same_bits(other.dweight) &&
           dbias.same_bits(other.dbias);
  }
  bool borders_kept() const {
    for (const part_of_matrix* one : {&y, &gathered, &dx, &dweight, &dbias})
      if (!one->borders_kept()) return false;
    return true;
  }

 private:
  std::vector<std::int64_t> shape(bool all, std::int64_t width) const {
    return {all ? of_.all_rows() : of_.rows_of(rank_), of_.lines, width};
  }
  std::int64_t row(bool all) const { return all ? 0 : of_.first_row(rank_) * of_.lines; }
  std::int64_t y_width() const { return of_.gathers_output ? of_.n() : n_; }
  std::int64_t first_y() const { return of_.gathers_output ? 0 : first_n_; }

  struct common_views {
    explicit common_views(const linear_rank& of)
        : x(of.x.view()),
          weight(of.weight.view()),
          gathered(of.gathered.view()),
          rows{of.of_.rows.data(), of.of_.ranks()},
          outputs{of.of_.widths.data(), of.of_.ranks()} {}
    template <class Args>
    void set_common(Args& args, const linear_case& of, velo_group group) const {
      args.group = group, args.x = &x, args.weight = &weight, args.packed = packed;
      args.sequence_parallel = of.cuts_rows, args.parallel_num = of.slices;
      if (of.cuts_rows && of.lists_rows) args.rows = &rows;
    }
    const velo_tensor x, weight, gathered;
    const velo_ints rows, outputs;
    velo_pack packed = nullptr;
  };
  struct forward_views : common_views {
    explicit forward_views(const linear_rank& of)
        : common_views(of), bias(of.bias.view()), y(of.y.view()) {
      packed = of.packed_forward;
    }
    template <class Args>
    void set(Args& args, const linear_case& of, velo_group group) const {
      set_common(args, of, group);
      args.y = &y;
      if (of.has_bias) args.bias = &bias;
    }
    const velo_tensor bias, y;
  };
  struct gradient_views : common_views {
    explicit gradient_views(const linear_rank& of)
        : common_views(of),
          dy(of.dy.view()),
          dx(of.dx.view()),
          dweight(of.dweight.view()),
          dbias(of.dbias.view()) {
      packed = of.packed_backward;
    }
    template <class Args>
    void set(Args& args, const linear_case& of, velo_group group, const wanted& results) const {
      set_common(args, of, group);
      args.dy = &dy, args.accumulate = of.accumulates;
      args.dx = results.dx ? &dx : nullptr;
      args.dweight = results.dweight ? &dweight : nullptr;
      args.dbias = results.dbias ? &dbias : nullptr;
    }
    const velo_tensor dy, dx, dweight, dbias;
  };

  const linear_case& of_;
  const int rank_;
  const std::int64_t first_n_, first_k_, n_, k_;

 public:
  part_of_matrix x, weight, bias, y, gathered, dy, dx, dweight, dbias;
  velo_pack packed_forward = nullptr, packed_backward = nullptr;  // of the weight; or nullptr
};

inline bool linear_rank::is_right(double rounding, const wanted& of) const {
  const std::int64_t m = of_.all_rows() * of_.lines;
  const auto sum = [](std::int64_t count, auto&& term) {
    double all = 0;
    for (std::int64_t i = 0; i < count; ++i) all += term(i);
    return all;
  };
  const auto whole_y = [&](std::int64_t i, std::int64_t o) {
    const double product = sum(of_.k(), [&](std::int64_t j) { return of_.x(i, j) * of_.w(o, j); });
    return product + (of_.has_bias ? of_.b(o) : 0);
  };
  const auto whole_dx = [&](std::int64_t i, std::int64_t j) {
    return sum(of_.n(), [&](std::int64_t o) { return of_.dy(i, o) * of_.w(o, j); });
  };
  const auto whole_dweight = [&](std::int64_t o, std::int64_t j) {
    const double product = sum(m, [&](std::int64_t i) { return of_.dy(i, o) * of_.x(i, j); });
    return product + (of_.accumulates ? of_.before(o, j) : 0);
  };
  const auto whole_dbias = [&](std::int64_t, std::int64_t o) {
    return sum(m, [&](std::int64_t i) { return of_.dy(i, o); }) +
           (of_.accumulates ? of_.before(o, 0) : 0);
  };
  const auto fits = [&](const part_of_matrix::difference& d, double bound) {
    return d.worst <= bound * (d.most + 4);
  };
  const double of_weight = of_.dweight.bits == 32 ? 0 : rounding;
  const bool gathers = of_.by_outputs() && of_.cuts_rows && of_.keeps_x;
  return fits(y.from(whole_y), rounding) && (!gathers || gathered.from(of_.x).worst == 0) &&
         (!of.dx || fits(dx.from(whole_dx), rounding)) &&
         (!of.dweight || fits(dweight.from(whole_dweight), of_weight)) &&
         (!of.dbias || fits(dbias.from(whole_dbias), 0));
}

inline velo_status linear_rank::apart(const rank_of_group& me) const {
  std::vector<std::int64_t> counts;  // of elements, by width 1
  for (const std::int64_t rows : of_.rows) counts.push_back(rows * of_.lines);
  const auto counts_of = [&](std::int64_t width) {
    std::vector<std::int64_t> all = counts;
    for (std::int64_t& one : all) one *= width;
    return all;
  };
  velo_status done = VELO_OK;
  const auto gather = [&](const part_of_matrix& from, const part_of_matrix& to) {
    const velo_tensor in = from.view(), out = to.view();
    if (done == VELO_OK)
      done = velo_group_all_gather_v(me.stream, me.group, &in, counts_of(from.columns()).data(),
                                     nullptr, &out);
  };
  const auto sum = [&](const part_of_matrix& from, const part_of_matrix& to) {
    const velo_tensor in = from.view(), out = to.view();
    if (done != VELO_OK) return;
    done = of_.cuts_rows ? velo_group_reduce_scatter_v(me.stream, me.group, nullptr, &in,
                                                       counts_of(from.columns()).data(), &out)
                         : velo_group_all_reduce(me.stream, me.group, nullptr, &in, &out);
  };
  const auto multiply = [&](const part_of_matrix& a, const part_of_matrix& b, bool turned,
                            const part_of_matrix* added, const part_of_matrix& c) {
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    const velo_tensor left = a.view(), right = b.view(), to = c.view();
    const velo_tensor bias_view = bias.view();
    args.a = &left, args.b = &right, args.c = &to, args.transpose_b = turned;
    if (added != nullptr) args.bias = &bias_view;
    if (done == VELO_OK) done = velo_matmul(me.stream, &args);
  };
  const std::int64_t all = of_.all_rows(), lines = of_.lines;
  part_of_matrix all_x(of_.dtype, {all, lines, k_}), all_dy(of_.dtype, {all, lines, n_});
  part_of_matrix all_y(of_.dtype, {all, lines, n_}), all_dx(of_.dtype, {all, lines, k_});
  const part_of_matrix *whole_x = &x, *whole_dy = &dy;
  if (of_.by_outputs()) {
    if (of_.cuts_rows) gather(x, all_x), whole_x = &all_x;
    multiply(*whole_x, weight, true, of_.has_bias ? &bias : nullptr, y);
    multiply(dy, weight, false, nullptr, all_dx);
    sum(all_dx, dx);
  } else {
    multiply(x, weight, true, nullptr, all_y);
    sum(all_y, y);
    if (of_.has_bias) {
      part_of_matrix spread(of_.dtype, {of_.rows_of(rank_), lines, n_});
      spread.fill([](std::int64_t, std::int64_t o) { return linear_case::b(o); });
      const velo_tensor a = y.view(), b = spread.view();
      velo_add_args args = VELO_ADD_ARGS_INIT;
      args.a = &a, args.b = &b, args.y = &a;
      if (done == VELO_OK) done = velo_add(me.stream, &args);
    }
    if (of_.cuts_rows) gather(dy, all_dy), whole_dy = &all_dy;
    multiply(*whole_dy, weight, false, nullptr, dx);
  }
  velo_matmul_backward_args args = VELO_MATMUL_BACKWARD_ARGS_INIT;
  const velo_tensor dc = whole_dy->view(), a = whole_x->view(), db = dweight.view(),
                    sums = dbias.view();
  args.dc = &dc, args.a = &a, args.db = &db, args.dbias = &sums;
  args.transpose_b = 1, args.accumulate = of_.accumulates;
  args.dtype = of_.dweight.bits == 32 ? VELO_PRODUCT_DTYPE_FLOAT32 : VELO_PRODUCT_DTYPE_LIKE_A;
  return done == VELO_OK ? velo_matmul_backward(me.stream, &args) : done;
}

using linear_ranks = std::vector<std::unique_ptr<linear_rank>>;

inline linear_ranks ranks_of(const linear_case& of) {
  linear_ranks all;
  for (int r = 0; r < of.ranks(); ++r) all.push_back(std::make_unique<linear_rank>(of, r));
  return all;
}

// Rounding errors of a result: of each rank's product, of the sum, of the bias.
inline double rounding_of(const linear_case& of) {
  const double one = of.dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-9
                     : of.dtype.bits == 16              ? 0x1p-12
                                                        : 0;
  return one * (of.ranks() + 2);
}

inline linear_case even_linear(cut_of weight, int ranks, std::int64_t rows = 3,
                               std::int64_t width = 8) {
  linear_case made;
  made.weight = weight;
  made.rows.assign(at(ranks), rows), made.widths.assign(at(ranks), width);
  return made;
}

}  // namespace velo::testing
