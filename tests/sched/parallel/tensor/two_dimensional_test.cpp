// 2D tensor parallelism: two linear layers over all_gather_matmul_reduce_scatter with the groups in
// each other's place, and the norm before them, forward and gradient, against the whole in double,
// in each dtype and at each level.
//
// Rank (i, j) of X x Y has rows part i of X and columns part j of Y of an activation. Ranks with
// the same j gather rows, ranks with the same i share sums. Parts of rows are even or listed. What
// a layer's input was is gathered again beside the sum of its gradient.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t rows = 12, hidden = 12, inner = 24;
constexpr double epsilon = 1e-3;

// A matrix of doubles that float32 holds, by rows.
class whole {
 public:
  whole(std::int64_t r, std::int64_t c) : columns(c), values_(at(r * c)) {}
  whole(std::int64_t r, std::int64_t c, int seed) : whole(r, c) {
    const matrix drawn(f32, {r, c}, seed);
    for (std::int64_t i = 0; i < r * c; ++i) values_[at(i)] = drawn[i];
  }
  double& operator()(std::int64_t r, std::int64_t c) { return values_[at(r * columns + c)]; }
  double operator()(std::int64_t r, std::int64_t c) const { return values_[at(r * columns + c)]; }
  std::int64_t count() const { return static_cast<std::int64_t>(values_.size()) / columns; }
  std::int64_t columns;

 private:
  std::vector<double> values_;
};

// a b, or a b^T.
whole product(const whole& a, const whole& b, bool transposed) {
  whole y(a.count(), transposed ? b.count() : b.columns);
  for (std::int64_t r = 0; r < y.count(); ++r)
    for (std::int64_t c = 0; c < y.columns; ++c)
      for (std::int64_t k = 0; k < a.columns; ++k)
        y(r, c) += a(r, k) * (transposed ? b(c, k) : b(k, c));
  return y;
}

whole normed(const whole& x) {
  whole y = x;
  for (std::int64_t r = 0; r < x.count(); ++r) {
    double squares = 0;
    for (std::int64_t c = 0; c < x.columns; ++c) squares += x(r, c) * x(r, c);
    for (std::int64_t c = 0; c < x.columns; ++c)
      y(r, c) /= std::sqrt(squares / static_cast<double>(x.columns) + epsilon);
  }
  return y;
}

// What all ranks compute: y = norm(x) up^T down^T, and the gradients of sum(y dy) below the norm.
const whole x(rows, hidden, 1), up(inner, hidden, 2), down(hidden, inner, 3), dy(rows, hidden, 4);

// The rows of each part.
using row_list = std::vector<std::int64_t>;
row_list even_rows(std::int64_t parts) {
  return row_list(at(parts), rows / parts);
}
row_list uneven_rows(std::int64_t parts) {
  row_list all(at(parts), 1);
  all[0] = parts == 1 ? rows : 0;
  if (parts > 1) all.back() = rows - (parts - 2);
  return all;
}

// A part of a matrix: listed rows, and one of so many equal parts of columns.
struct row_part : matrix {
  row_part(const whole& all, const row_list& list, std::int64_t r, std::int64_t c,
           std::int64_t of_columns, velo_dtype dtype = f32)
      : matrix(dtype, {list[at(r)], all.columns / of_columns}) {
    const std::int64_t width = all.columns / of_columns;
    const std::int64_t first = std::accumulate(list.begin(), list.begin() + r, std::int64_t{0});
    for (std::int64_t k = 0; k < count(); ++k)
      set(k, all(first + k / width, c * width + k % width));
  }
};

// A part of a matrix that is cut in so many parts along rows and columns.
struct part_of : matrix {
  part_of(const whole& all, std::int64_t r, std::int64_t of_rows, std::int64_t c,
          std::int64_t of_columns, velo_dtype dtype = f32)
      : matrix(dtype, {all.count() / of_rows, all.columns / of_columns}) {
    const std::int64_t width = all.columns / of_columns, height = count() / width;
    for (std::int64_t k = 0; k < count(); ++k)
      set(k, all(r * height + k / width, c * width + k % width));
  }
};

struct ones : matrix {
  ones(std::int64_t of, velo_dtype dtype) : matrix(dtype, {of}) {
    for (std::int64_t k = 0; k < of; ++k) set(k, 1);
  }
};

double distance(const matrix& got, const matrix& truth) {
  double worst = got.count() == truth.count() ? 0 : 1e30, most = 0;
  for (std::int64_t i = 0; i < truth.count(); ++i) {
    worst = std::max(worst, std::fabs(got[i] - truth[i]));
    most = std::max(most, std::fabs(truth[i]));
  }
  return truth.count() == 0 ? worst : worst / most;
}

// Of rounding to a dtype; float32's are those of sums.
double unit_of(velo_dtype dtype) {
  return dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-8 : dtype.bits == 16 ? 0x1p-11 : 6e-7;
}

struct groups {
  velo_group along_x = nullptr, along_y = nullptr;  // ranks with the same j; with the same i
  ~groups() {
    for (const velo_group each : {along_x, along_y}) velo_group_destroy(each);
  }
};

// A group and the rows of its ranks.
struct cut_rows {
  velo_group group;
  const row_list& rows;
};

// Rows that are gathered beside a sum.
struct rows_beside {
  const matrix& own;
  matrix& all;
};

// y = scatter(gather(x) op(weight)); gathered receives all rows.
velo_status layer(velo_stream stream, const cut_rows& gather, const cut_rows& scatter,
                  const matrix& from, const matrix& weight, bool transposed, matrix& to,
                  matrix& gathered, const rows_beside* beside = nullptr) {
  const velo_tensor in = from.view(), w = weight.view(), out = to.view(), all = gathered.view();
  velo_all_gather_matmul_reduce_scatter_args args = VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
  args.gather_group = gather.group, args.scatter_group = scatter.group;
  const auto view = [](const row_list& list) {
    return velo_ints{list.data(), static_cast<std::int64_t>(list.size())};
  };
  const velo_ints gather_rows = view(gather.rows), scatter_rows = view(scatter.rows);
  const auto is_even = [](const row_list& list) {
    return std::all_of(list.begin(), list.end(),
                       [&](std::int64_t one) { return one == list.front(); });
  };
  if (!is_even(gather.rows)) args.gather_rows = &gather_rows;
  if (!is_even(scatter.rows)) args.scatter_rows = &scatter_rows;
  args.x = &in, args.weight = &w, args.y = &out, args.gathered = &all;
  args.transpose_weight = transposed;
  if (beside == nullptr) return velo_all_gather_matmul_reduce_scatter(stream, &args);
  const velo_tensor own = beside->own.view(), others = beside->all.view();
  args.beside = &own, args.beside_gathered = &others;
  return velo_all_gather_matmul_reduce_scatter(stream, &args);
}

// dweight = gathered(dy)^T gathered(x), [n, k].
velo_status weight_gradient(velo_stream stream, const matrix& of_dy, const matrix& of_x,
                            matrix& to) {
  const velo_tensor a = of_dy.view(), b = of_x.view(), c = to.view();
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = &a, args.b = &b, args.c = &c, args.transpose_a = 1;
  return velo_matmul(stream, &args);
}

// A rank's step: norm, both layers, and their gradients.
struct step {
  step(int rank, row_list of_x, row_list of_y, velo_dtype in)
      : rows_x(std::move(of_x)),
        rows_y(std::move(of_y)),
        X(static_cast<std::int64_t>(rows_x.size())),
        Y(static_cast<std::int64_t>(rows_y.size())),
        i(rank / Y),
        j(rank % Y),
        dtype(in),
        input(x, rows_x, i, j, Y, dtype),
        w_up(up, i, X, j, Y, dtype),
        w_down(down, j, Y, i, X, dtype),
        incoming(dy, rows_x, i, j, Y, dtype) {}

  velo_status run(velo_stream stream, const groups& in) {
    const cut_rows along_x{in.along_x, rows_x}, along_y{in.along_y, rows_y};
    velo_status done = norm(stream, in.along_y);
    const auto then = [&](auto&& call) {
      if (done == VELO_OK) done = call();
    };
    then([&] { return layer(stream, along_x, along_y, normal, w_up, true, middle, all_normal); });
    then([&] { return layer(stream, along_y, along_x, middle, w_down, true, output, all_middle); });
    const rows_beside middle_again{middle, again_middle}, normal_again{normal, again_normal};
    then([&] {
      return layer(stream, along_x, along_y, incoming, w_down, false, dmiddle, all_incoming,
                   &middle_again);
    });
    then([&] {
      return layer(stream, along_y, along_x, dmiddle, w_up, false, dnormal, all_dmiddle,
                   &normal_again);
    });
    then([&] { return weight_gradient(stream, all_incoming, again_middle, ddown); });
    then([&] { return weight_gradient(stream, all_dmiddle, again_normal, dup); });
    return done;
  }
  velo_status norm(velo_stream stream, velo_group hidden_cut) {
    const velo_tensor from = input.view(), gains = gain.view(), to = normal.view();
    velo_parallel_rms_norm_args args = VELO_PARALLEL_RMS_NORM_ARGS_INIT;
    args.group = hidden_cut, args.x = &from, args.gamma = &gains, args.y = &to;
    args.epsilon = epsilon;
    return velo_parallel_rms_norm(stream, &args);
  }

  const row_list rows_x, rows_y;
  const std::int64_t X, Y, i, j;
  const velo_dtype dtype;
  const std::int64_t height_x = rows_x[at(i)], height_y = rows_y[at(j)];
  row_part input;
  part_of w_up, w_down;
  row_part incoming;
  ones gain{hidden / Y, dtype};
  matrix normal{dtype, {height_x, hidden / Y}}, all_normal{dtype, {rows, hidden / Y}};
  matrix middle{dtype, {height_y, inner / X}}, all_middle{dtype, {rows, inner / X}};
  matrix output{dtype, {height_x, hidden / Y}};
  matrix dmiddle{dtype, {height_y, inner / X}}, all_incoming{dtype, {rows, hidden / Y}};
  matrix dnormal{dtype, {height_x, hidden / Y}}, all_dmiddle{dtype, {rows, inner / X}};
  matrix again_normal{dtype, {rows, hidden / Y}}, again_middle{dtype, {rows, inner / X}};
  matrix dup{dtype, {inner / X, hidden / Y}}, ddown{dtype, {hidden / Y, inner / X}};
};

velo_status make_groups(velo_group all, int rank, std::int64_t parts_x, std::int64_t parts_y,
                        groups& made) {
  std::vector<std::int32_t> same_j, same_i;
  for (std::int64_t i = 0; i < parts_x; ++i)
    same_j.push_back(static_cast<std::int32_t>(i * parts_y + rank % parts_y));
  for (std::int64_t j = 0; j < parts_y; ++j)
    same_i.push_back(static_cast<std::int32_t>(rank / parts_y * parts_y + j));
  const velo_status done = velo_group_create_part(
      all, same_j.data(), static_cast<std::int32_t>(parts_x), nullptr, &made.along_x);
  if (done != VELO_OK) return done;
  return velo_group_create_part(all, same_i.data(), static_cast<std::int32_t>(parts_y), nullptr,
                                &made.along_y);
}

}  // namespace

TEST_CASE("two layers cut in both ways, and their norm, have the whole's results and gradients") {
  const whole normal = normed(x), middle = product(normal, up, true),
              output = product(middle, down, true), dmiddle = product(dy, down, false),
              dnormal = product(dmiddle, up, false);
  whole dup(inner, hidden), ddown(hidden, inner);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t n = 0; n < inner; ++n)
      for (std::int64_t k = 0; k < hidden; ++k) {
        dup(n, k) += dmiddle(r, n) * normal(r, k);
        ddown(k, n) += dy(r, k) * middle(r, n);
      }
  struct cut {
    row_list x, y;
  };
  std::vector<cut> cuts;
  for (const auto& [parts_x, parts_y] : {std::pair(2, 3), {3, 2}, {2, 2}, {1, 3}, {4, 1}, {2, 4}}) {
    cuts.push_back({even_rows(parts_x), even_rows(parts_y)});
    cuts.push_back({uneven_rows(parts_x), even_rows(parts_y)});
    cuts.push_back({uneven_rows(parts_x), uneven_rows(parts_y)});
  }
  for (const cut& of : cuts) {
    const auto parts_x = static_cast<int>(of.x.size()), parts_y = static_cast<int>(of.y.size());
    const local_ranks ranks(parts_x * parts_y, group_desc());
    for (const velo_dtype dtype : {f32, bf16, f16})
      for (const char* level : {"2", "1", "0"}) {
        INFO(parts_x << " x " << parts_y << ", rows of the first " << of.x[0] << ", " << of.y[0]
                     << ", " << int{dtype.code} << "." << int{dtype.bits} << ", level " << level);
        set_all(ranks, "level", level);
        std::vector<std::unique_ptr<step>> steps;
        for (int rank = 0; rank < ranks.size(); ++rank)
          steps.push_back(std::make_unique<step>(rank, of.x, of.y, dtype));
        ranks.require([&](const rank_of_group& me) {
          groups in;
          const velo_status made = make_groups(me.group, me.rank, parts_x, parts_y, in);
          return made == VELO_OK ? steps[at(me.rank)]->run(me.stream, in) : made;
        });
        const double unit = unit_of(dtype);
        for (const auto& one : steps) {
          const std::int64_t X = one->X, Y = one->Y, i = one->i, j = one->j;
          CHECK(distance(one->normal, row_part(normal, one->rows_x, i, j, Y)) < 2 * unit);
          CHECK(distance(one->middle, row_part(middle, one->rows_y, j, i, X)) < 16 * unit);
          CHECK(distance(one->output, row_part(output, one->rows_x, i, j, Y)) < 16 * unit);
          CHECK(distance(one->dmiddle, row_part(dmiddle, one->rows_y, j, i, X)) < 16 * unit);
          CHECK(distance(one->dnormal, row_part(dnormal, one->rows_x, i, j, Y)) < 16 * unit);
          CHECK(one->again_normal.same_bits(one->all_normal));
          CHECK(one->again_middle.same_bits(one->all_middle));
          CHECK(distance(one->dup, part_of(dup, i, X, j, Y)) < 16 * unit);
          CHECK(distance(one->ddown, part_of(ddown, j, Y, i, X)) < 16 * unit);
        }
      }
  }
}
