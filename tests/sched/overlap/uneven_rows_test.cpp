// Rows that ranks have unevenly, in all_gather_matmul, matmul_reduce_scatter and both at once:
// against sums in double and the calls composed; gradients; ranks whose lists differ, and lists
// that do not fit.
//
// Form 1 gathers rows, form 2 scatters sums, form 3 does both.
#include <cmath>
#include <numeric>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

using row_list = std::vector<std::int64_t>;
constexpr std::int64_t lines = 2, depth = 20, columns = 24;

// Numbers of few bits, so that float32 sums are exact.
double number(int seed, std::int64_t i, std::int64_t j) {
  auto mixed = static_cast<std::uint32_t>(i * 7919 + j * 104729 + seed * 1299709 + 12345);
  mixed = (mixed ^ mixed >> 15) * 2246822519u;
  return (static_cast<double>((mixed >> 11) % 17) - 8) / 8;
}
double weight_of(int rank, std::int64_t i, std::int64_t j) {
  return number(20 + rank, i, j);
}
double bias_of(std::int64_t j) {
  return number(2, 0, j);
}

std::int64_t sum(const row_list& of, std::size_t count) {
  return std::accumulate(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(count),
                         std::int64_t{0});
}
std::int64_t sum(const row_list& of) {
  return sum(of, of.size());
}

struct row_case {
  int form = 3;
  velo_dtype dtype = f32;
  row_list gathers, scatters;
  bool transposed = false, has_bias = true;
  std::int64_t slices = 3;

  bool does_gather() const { return (form & 1) != 0; }
  bool does_scatter() const { return (form & 2) != 0; }
  int ranks() const { return static_cast<int>(gathers.size()); }
  std::int64_t all_rows() const { return sum(gathers); }
  std::int64_t x_rows(int rank) const { return does_gather() ? gathers[at(rank)] : all_rows(); }
  std::int64_t first_x(int rank) const { return does_gather() ? sum(gathers, at(rank)) : 0; }
  std::int64_t y_rows(int rank) const { return does_scatter() ? scatters[at(rank)] : all_rows(); }
  std::int64_t first_y(int rank) const { return does_scatter() ? sum(scatters, at(rank)) : 0; }
  // Rows that ranks gather are those of one matrix; else each rank has its own.
  double x(int rank, std::int64_t i, std::int64_t j) const {
    return number(does_gather() ? 1 : 10 + rank, i, j);
  }
};

// Rounding errors of a result: of each rank's product, of the sum, of the bias.
double rounding_of(const row_case& of) {
  const double one = of.dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-9
                     : of.dtype.bits == 16              ? 0x1p-12
                                                        : 0;
  return one * (of.ranks() + 2);
}

// A rank's call.
class row_rank {
 public:
  row_rank(const row_case& of, int rank)
      : of_(of),
        rank_(rank),
        x(of.dtype, {of.x_rows(rank), lines, depth}),
        weight(of.dtype, of.transposed ? row_list{columns, depth} : row_list{depth, columns}),
        bias(f32, {columns}),
        y(of.dtype, {of.y_rows(rank), lines, columns}, 3),
        gathered(of.dtype, {of.all_rows(), lines, depth}, 4) {
    for (std::int64_t i = 0; i < x.count(); ++i)
      x.set(i, of.x(rank, of.first_x(rank) * lines + i / depth, i % depth));
    for (std::int64_t i = 0; i < depth; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        weight.set(of.transposed ? j * depth + i : i * columns + j, weight_of(rank, i, j));
    for (std::int64_t j = 0; j < columns; ++j) bias.set(j, bias_of(j));
  }
  row_rank(const row_rank&) = delete;

  // second: the group that is summed over where both are.
  velo_status run(velo_stream stream, velo_group first, velo_group second) const {
    const velo_tensor all = gathered.view();
    const velo_ints gather_list{of_.gathers.data(), of_.ranks()},
        scatter_list{of_.scatters.data(), static_cast<std::int64_t>(of_.scatters.size())};
    if (of_.form == 1) {
      velo_all_gather_matmul_args args = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
      args.group = first, args.rows = &gather_list, args.gathered = &all;
      return call(velo_all_gather_matmul, stream, args);
    }
    if (of_.form == 2) {
      velo_matmul_reduce_scatter_args args = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
      args.group = first, args.rows = &scatter_list;
      return call(velo_matmul_reduce_scatter, stream, args);
    }
    velo_all_gather_matmul_reduce_scatter_args args =
        VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
    args.gather_group = first, args.scatter_group = second, args.gathered = &all;
    args.gather_rows = &gather_list, args.scatter_rows = &scatter_list;
    return call(velo_all_gather_matmul_reduce_scatter, stream, args);
  }

  // The same without a bias by all_gather_v, matmul and reduce_scatter_v, into another y.
  velo_status apart(velo_stream stream, velo_group first, velo_group second, matrix& to) const {
    matrix all(of_.dtype, {of_.all_rows(), lines, depth});
    matrix products(of_.dtype, {of_.all_rows(), lines, columns});
    const velo_tensor from = x.view(), whole = all.view(), by = weight.view(), out = to.view(),
                      product = products.view();
    velo_status done = VELO_OK;
    if (of_.does_gather())
      done = velo_group_all_gather_v(stream, first, &from, counts(of_.gathers, depth).data(),
                                     nullptr, &whole);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = of_.does_gather() ? &whole : &from, args.b = &by;
    args.c = of_.does_scatter() ? &product : &out, args.transpose_b = of_.transposed;
    if (done == VELO_OK) done = velo_matmul(stream, &args);
    if (done == VELO_OK && of_.does_scatter())
      done = velo_group_reduce_scatter_v(stream, of_.does_gather() ? second : first, nullptr,
                                         &product, counts(of_.scatters, columns).data(), &out);
    return done;
  }

  bool is_right() const {
    const double bound = rounding_of(of_);
    bool right = y.borders_kept() && gathered.borders_kept();
    for (std::int64_t i = 0; i < y.count(); ++i) {
      const std::int64_t row = of_.first_y(rank_) * lines + i / columns, column = i % columns;
      const int first = of_.does_scatter() ? 0 : rank_;
      const int end = of_.does_scatter() ? of_.ranks() : rank_ + 1;
      double wanted = of_.has_bias ? bias_of(column) : 0;
      for (int r = first; r < end; ++r)
        for (std::int64_t k = 0; k < depth; ++k)
          wanted += of_.x(r, row, k) * weight_of(r, k, column);
      right = right && std::abs(y[i] - wanted) <= bound * (std::abs(wanted) + 16);
    }
    for (std::int64_t i = 0; of_.does_gather() && i < gathered.count(); ++i)
      right = right && gathered[i] == of_.x(rank_, i / depth, i % depth);
    return right;
  }

 private:
  static row_list counts(const row_list& rows, std::int64_t width) {
    row_list all = rows;
    for (std::int64_t& one : all) one *= lines * width;
    return all;
  }
  template <class Args>
  velo_status call(velo_status (*function)(velo_stream, const Args*), velo_stream stream,
                   Args args) const {
    const velo_tensor from = x.view(), by = weight.view(), to = y.view(), added = bias.view();
    args.x = &from, args.weight = &by, args.y = &to;
    if (of_.has_bias) args.bias = &added;
    args.transpose_weight = of_.transposed, args.parallel_num = of_.slices;
    return function(stream, &args);
  }

  const row_case& of_;
  const int rank_;

 public:
  matrix x, weight, bias, y, gathered;
};

// Lists with ranks of no rows, one rank that has all, and parts of several slices.
std::vector<row_list> lists_for(int ranks) {
  row_list growing(at(ranks)), last(at(ranks), 0), slices(at(ranks));
  for (int r = 0; r < ranks; ++r) growing[at(r)] = ranks == 1 ? 1 : r * 5 % 4, slices[at(r)] = r;
  last.back() = 9;
  for (std::int64_t& one : slices) one = 40 + 9 * one;
  return {growing, last, slices};
}
row_list reversed(const row_list& of) {
  return {of.rbegin(), of.rend()};
}

std::vector<row_case> cases_for(int ranks) {
  std::vector<row_case> all;
  for (const int form : {1, 2, 3})
    for (const row_list& rows : lists_for(ranks)) {
      row_case of;
      of.form = form;
      of.gathers = row_list(rows.begin(), rows.end()), of.scatters = reversed(rows);
      of.transposed = all.size() % 2 != 0;
      all.push_back(of);
    }
  return all;
}

// A rank's two calls of each case: the right numbers with a bias, the bits of the calls composed
// without.
velo_status check(row_case of, const rank_of_group& me, velo_group second, bool& right) {
  const row_rank biased(of, me.rank);
  velo_status done = biased.run(me.stream, me.group, second);
  right = right && done == VELO_OK && biased.is_right();
  of.has_bias = false;
  const row_rank plain(of, me.rank);
  matrix apart(of.dtype, {of.y_rows(me.rank), lines, columns});
  if (done == VELO_OK) done = plain.run(me.stream, me.group, second);
  if (done == VELO_OK) done = plain.apart(me.stream, me.group, second, apart);
  right = right && plain.y.same_bits(apart);
  return done;
}

void check_disagree(const row_case& one, const row_case& other) {
  const two_groups all(2);
  const row_rank first(one, 0), last(other, 1);
  const matrix before(one.dtype, {one.y_rows(0), lines, columns}, 3);
  for (const call_record& each : all.ranks.run([&](const rank_of_group& me) {
         return (me.rank == 0 ? first : last).run(me.stream, me.group, all.second(me.rank));
       }))
    CHECK(each.code == VELO_ERR_PEER);
  CHECK(first.y.same_bits(before));
}

}  // namespace

TEST_CASE("uneven rows are gathered, multiplied and scattered as the whole's") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const two_groups all(count, group_desc(), count == 3 ? 2 : 1);
    for (const char* level : {"0", "1", "2"}) {
      set_all(all.ranks, "level", level);
      for (row_case of : cases_for(count))
        for (const velo_dtype dtype : {f32, bf16, f16}) {
          of.dtype = dtype;
          INFO(count << " ranks, level " << level << ", form " << of.form << ", " << int{dtype.code}
                     << "." << int{dtype.bits} << ", " << of.all_rows() << " rows");
          std::vector<char> right(at(count));
          all.ranks.require([&](const rank_of_group& me) {
            bool mine = true;
            const velo_status done = check(of, me, all.second(me.rank), mine);
            right[at(me.rank)] = mine ? 1 : 0;
            return done;
          });
          for (const char one : right) CHECK(one == 1);
        }
    }
  }
}

TEST_CASE("uneven rows without a group are those of one rank") {
  const live_context one;
  for (const row_case& of : cases_for(1)) {
    const row_rank now(of, 0);
    REQUIRE(now.run(one.inline_stream(), nullptr, nullptr) == VELO_OK);
    CHECK(now.is_right());
  }
}

TEST_CASE("processes pass uneven rows through slots of any size") {
  for (const std::uint64_t buffer : {16 << 10, 512 << 10}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;
    ranks.start_all(3, desc, [](const rank_of_group& me) {
      velo_group second = nullptr;
      velo_status done = all_of_three(me.group, &second);
      bool right = true;
      for (const row_case& of : cases_for(3))
        if (done == VELO_OK) done = check(of, me, second, right);
      velo_group_destroy(second);
      return ending_of(done, right ? 1 : 0);
    });
    for (const ending& one : ranks.wait()) {
      CHECK_OK(one);
      CHECK(one.value == 1);
    }
  }
}

TEST_CASE("ranks on hosts have the uneven rows of threads") {
  const ranks_on_hosts hosts("0011");
  for (const row_case& of : cases_for(4)) {
    if (of.form == 3) continue;
    std::vector<char> right(4);
    hosts.require([&](const rank_of_group& me) {
      bool mine = true;
      const velo_status done = check(of, me, nullptr, mine);
      right[at(me.rank)] = mine ? 1 : 0;
      return done;
    });
    for (const char one : right) CHECK(one == 1);
  }
}

TEST_CASE("ranks whose lists of rows differ hear of it before rows move") {
  row_case of;
  of.gathers = {3, 5}, of.scatters = {2, 6};
  for (const int form : {1, 2, 3}) {
    of.form = form;
    row_case gathers = of, scatters = of;
    gathers.gathers = {4, 4}, gathers.scatters = {2, 6}, scatters.scatters = {6, 2};
    INFO("form " << form);
    if (of.does_gather()) check_disagree(of, gathers);
    if (of.does_scatter()) check_disagree(of, scatters);
  }
}

TEST_CASE("lists of rows that do not fit are refused by name") {
  const two_groups all(2);
  row_case of;
  of.gathers = {3, 5}, of.scatters = {2, 6};
  const row_rank one(of, 0);
  const velo_tensor x = one.x.view(), weight = one.weight.view(), y = one.y.view(),
                    whole = one.gathered.view();
  const row_list long_rows{3, 5, 0}, negative{-1, 9}, others{4, 4}, more{2, 7},
      huge{3, std::int64_t{1} << 41};
  const auto view = [](const row_list& rows) {
    return velo_ints{rows.data(), static_cast<std::int64_t>(rows.size())};
  };
  const velo_ints gathers = view(of.gathers), scatters = view(of.scatters), three = view(long_rows),
                  below = view(negative), even = view(others), nine = view(more), far = view(huge);
  const velo_stream stream = all.ranks.stream(0);

  using both_args = velo_all_gather_matmul_reduce_scatter_args;
  both_args both = VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT;
  both.gather_group = all.ranks.group(0), both.scatter_group = all.second(0);
  both.x = &x, both.weight = &weight, both.y = &y;
  both.gather_rows = &gathers, both.scatter_rows = &scatters;
  check_refusals<both_args>(
      both, [&](const both_args& a) { return velo_all_gather_matmul_reduce_scatter(stream, &a); },
      {{[&](both_args& a) { a.gather_rows = &three; }, VELO_ERR_ARGUMENT, "args.gather_rows.count",
        "2", "3"},
       {[&](both_args& a) { a.gather_rows = &below; }, VELO_ERR_ARGUMENT, "args.gather_rows[0]",
        "rows from 0 to 2^40", "-1"},
       {[&](both_args& a) { a.gather_rows = &far; }, VELO_ERR_ARGUMENT, "args.gather_rows[1]"},
       {[&](both_args& a) { a.gather_rows = &even; }, VELO_ERR_SHAPE, "args.x.shape",
        "4 rows, as args.gather_rows says", "3"},
       {[&](both_args& a) { a.gather_rows = nullptr; }, VELO_ERR_ARGUMENT, "args.scatter_rows",
        "a sum of 6, the rows of the product", "8"},
       {[&](both_args& a) { a.scatter_rows = &three; }, VELO_ERR_ARGUMENT,
        "args.scatter_rows.count", "2", "3"},
       {[&](both_args& a) { a.scatter_rows = &nine; }, VELO_ERR_ARGUMENT, "args.scatter_rows",
        "a sum of 8, the rows of the product", "9"},
       {[&](both_args& a) { a.scatter_rows = &even; }, VELO_ERR_SHAPE, "args.y.shape"}});

  velo_all_gather_matmul_args gather = VELO_ALL_GATHER_MATMUL_ARGS_INIT;
  gather.group = all.ranks.group(0), gather.x = &x, gather.weight = &weight, gather.y = &whole;
  gather.rows = &even;
  const call_record rows = record_of(velo_all_gather_matmul(stream, &gather));
  CHECK_REFUSED(rows, VELO_ERR_SHAPE, "args.x.shape");
  CHECK(rows.expected == "4 rows, as args.rows says");
  gather.rows = &three;
  CHECK_REFUSED(velo_all_gather_matmul(stream, &gather), VELO_ERR_ARGUMENT, "args.rows.count");

  velo_matmul_reduce_scatter_args scatter = VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT;
  scatter.group = all.ranks.group(0), scatter.x = &x, scatter.weight = &weight, scatter.y = &y;
  scatter.rows = &even;
  const call_record sums = record_of(velo_matmul_reduce_scatter(stream, &scatter));
  CHECK_REFUSED(sums, VELO_ERR_ARGUMENT, "args.rows");
  CHECK(sums.expected == "a sum of 3, the rows of the product");
  scatter.rows = nullptr;
  const call_record odd = record_of(velo_matmul_reduce_scatter(stream, &scatter));
  CHECK_REFUSED(odd, VELO_ERR_SHAPE, "args.x.shape");
  CHECK(odd.expected == "a first dimension that divides by 2 ranks, or args.rows");
  all.ranks.require_barrier();  // none of these calls reached the other rank
}

TEST_CASE("a rank without rows that does not come ends the call on the others") {
  const two_groups all(2, group_desc(150));
  row_case of;
  of.gathers = {8, 0}, of.scatters = {8, 0};
  for (const int form : {1, 2}) {
    of.form = form;
    const row_rank alone(of, 0);
    const velo_group group = form == 1 ? all.ranks.group(0) : all.second(0);
    const call_record failure = record_of(alone.run(all.ranks.stream(0), group, nullptr));
    CHECK(failure.code == VELO_ERR_PEER);
    CHECK(failure.rank == 1);
  }
}
