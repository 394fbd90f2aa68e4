// grouped_matmul_all_reduce: against the groups' products and their all_reduces one after another,
// bit for bit, in each form of its tensors, at every level; against sums in double; biases; ranks
// that disagree; what is refused. Ranks are threads, processes, and threads of an MPI job.
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <deque>
#include <numeric>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

enum class weights { listed, stacked, flat };

struct group_case {
  velo_dtype dtype = f32;
  std::int64_t split = VELO_GROUPED_SPLIT_ONE;
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> depths, columns;  // one for all, or one for each
  weights form = weights::listed;
  std::int64_t slices = 3;
  bool has_bias = false, wide_bias = false;

  std::size_t groups() const { return rows.size(); }
  std::int64_t k(std::size_t e) const { return depths[depths.size() == 1 ? 0 : e]; }
  std::int64_t n(std::size_t e) const { return columns[columns.size() == 1 ? 0 : e]; }
  bool one_x() const { return (split & 1) != 0; }
  bool one_y() const { return (split & 2) != 0; }
  std::int64_t all_rows() const {
    return std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  }
};

// Copies `from` into `to` from an element on; returns the next element.
std::int64_t append(matrix& to, std::int64_t at, const matrix& from) {
  for (std::int64_t i = 0; i < from.count(); ++i) to.set(at + i, from[i]);
  return at + from.count();
}

// A rank's operands by group, in the form of its call, and its results.
class grouped_rank {
 public:
  grouped_rank(const group_case& of, int rank) : of_(of) {
    for (std::size_t e = 0; e < of.groups(); ++e) {
      const int seed = 100 * rank + 3 * static_cast<int>(e);
      x_.emplace_back(of.dtype, row{of.rows[e], of.k(e)}, seed);
      weight_.emplace_back(of.dtype, row{of.k(e), of.n(e)}, seed + 1);
      bias_.emplace_back(of.wide_bias ? f32 : of.dtype, row{of.n(e)}, 5000 + static_cast<int>(e));
      sums_.emplace_back(of.dtype, row{of.rows[e], of.n(e)});
    }
    if (of.one_x()) {
      std::int64_t at = 0;
      given_x_.emplace_back(of.dtype, row{of.all_rows(), of.k(0)});
      for (const matrix& one : x_) at = append(given_x_[0], at, one);
    }
    if (of.form != weights::listed) {
      const auto groups = static_cast<std::int64_t>(of.groups());
      std::int64_t at = 0;
      given_weight_.emplace_back(of.dtype, of.form == weights::flat
                                               ? row{groups * of.k(0), of.n(0)}
                                               : row{groups, of.k(0), of.n(0)});
      for (const matrix& one : weight_) at = append(given_weight_[0], at, one);
    }
    if (of.one_y()) y_.emplace_back(of.dtype, row{of.all_rows(), of.n(0)}, 77);
    for (std::size_t e = 0; e < of.groups() && !of.one_y(); ++e)
      y_.emplace_back(of.dtype, row{of.rows[e], of.n(e)}, 77);
    ends_.resize(of.groups());
    std::partial_sum(of.rows.begin(), of.rows.end(), ends_.begin());
  }
  grouped_rank(const grouped_rank&) = delete;

  velo_status fused(velo_stream stream, velo_group group) {
    const std::vector<velo_tensor> x = views(of_.one_x() ? given_x_ : x_),
                                   weight = views(given_weight_.empty() ? weight_ : given_weight_),
                                   bias = views(bias_), y = views(y_);
    const velo_tensors xs = list(x), ws = list(weight), bs = list(bias), ys = list(y);
    const velo_ints ends{ends_.data(), static_cast<std::int64_t>(ends_.size())};
    velo_grouped_matmul_all_reduce_args args = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = group, args.x = &xs, args.weight = &ws, args.y = &ys;
    args.split_item = of_.split, args.parallel_num = of_.slices;
    if (of_.one_x()) args.group_list = &ends;
    if (of_.has_bias) args.bias = &bs;
    return velo_grouped_matmul_all_reduce(stream, &args);
  }
  // The sums of each group by itself, without biases.
  velo_status apart(velo_stream stream, velo_group group) {
    velo_status done = VELO_OK;
    for (std::size_t e = 0; e < of_.groups() && done == VELO_OK; ++e) {
      const velo_tensor x = x_[e].view(), weight = weight_[e].view(), sum = sums_[e].view();
      velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
      args.a = &x, args.b = &weight, args.c = &sum;
      done = velo_matmul(stream, &args);
      if (done == VELO_OK && group != nullptr)
        done = velo_group_all_reduce(stream, group, nullptr, &sum, &sum);
    }
    return done;
  }
  // By grouped_matmul and one all_reduce, of one x and one y with stacked weights.
  velo_status composed(velo_stream stream, velo_group group, matrix& to) {
    const velo_tensor x = given_x_[0].view(), weight = given_weight_[0].view(), y = to.view();
    const velo_ints ends{ends_.data(), static_cast<std::int64_t>(ends_.size())};
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = &x, args.weight = &weight, args.y = &y, args.group_list = &ends;
    const velo_status done = velo_grouped_matmul(stream, &args);
    return done != VELO_OK ? done : velo_group_all_reduce(stream, group, nullptr, &y, &y);
  }

  // A result, by its group and its element there.
  double result(std::size_t e, std::int64_t i) const {
    return of_.one_y() ? y_[0][(ends_[e] - of_.rows[e]) * of_.n(0) + i] : y_[e][i];
  }
  bool has_sums() const {
    for (std::size_t e = 0; e < of_.groups(); ++e)
      for (std::int64_t i = 0; i < sums_[e].count(); ++i)
        if (result(e, i) != biased(e, i)) return false;
    return borders_kept();
  }
  bool borders_kept() const {
    for (const matrix& one : y_)
      if (!one.borders_kept()) return false;
    return true;
  }
  const matrix& x(std::size_t e) const { return x_[e]; }
  const matrix& weight(std::size_t e) const { return weight_[e]; }
  const matrix& bias(std::size_t e) const { return bias_[e]; }
  const matrix& y(std::size_t i) const { return y_[i]; }

 private:
  using row = std::vector<std::int64_t>;

  static std::vector<velo_tensor> views(const std::deque<matrix>& all) {
    std::vector<velo_tensor> made;
    for (const matrix& one : all) made.push_back(one.view());
    return made;
  }
  static velo_tensors list(const std::vector<velo_tensor>& all) {
    return {all.data(), static_cast<std::int64_t>(all.size())};
  }
  // A sum with its bias, rounded to the dtype.
  double biased(std::size_t e, std::int64_t i) const {
    if (!of_.has_bias) return sums_[e][i];
    matrix one(of_.dtype, {1});
    one.set(0, static_cast<float>(sums_[e][i]) + static_cast<float>(bias_[e][i % of_.n(e)]));
    return one[0];
  }

  const group_case of_;
  std::deque<matrix> x_, weight_, bias_, sums_, given_x_, given_weight_, y_;
  std::vector<std::int64_t> ends_;
};

// The kernel that a call of one x and one y would run, and why not another, by velo_op_explain.
std::string explained(velo_context context, const group_case& of, velo_group group) {
  const matrix x(of.dtype, {of.all_rows(), of.k(0)}), y(of.dtype, {of.all_rows(), of.n(0)});
  const matrix weight(of.dtype, {static_cast<std::int64_t>(of.groups()), of.k(0), of.n(0)});
  const velo_tensor vx = x.view(), vw = weight.view(), vy = y.view();
  const velo_tensors lists[] = {{&vx, 1}, {&vw, 1}, {&vy, 1}};
  std::vector<std::int64_t> ends(of.groups());
  std::partial_sum(of.rows.begin(), of.rows.end(), ends.begin());
  const velo_ints list{ends.data(), static_cast<std::int64_t>(ends.size())};
  velo_named_value values[7] = {};
  const char* const names[] = {"x",          "weight",     "y",           "group",
                               "group_list", "split_item", "parallel_num"};
  for (std::size_t i = 0; i < 7; ++i) values[i].name = names[i];
  for (std::size_t i = 0; i < 3; ++i)
    values[i].value.kind = VELO_VALUE_TENSORS, values[i].value.as.tensors = lists + i;
  values[3].value.kind = VELO_VALUE_HANDLE, values[3].value.as.p = group;
  values[4].value.kind = VELO_VALUE_INTS, values[4].value.as.ints = &list;
  values[5].value.kind = VELO_VALUE_INT, values[5].value.as.i = VELO_GROUPED_SPLIT_ONE;
  values[6].value.kind = VELO_VALUE_INT, values[6].value.as.i = of.slices;
  char text[4096] = "";
  REQUIRE(velo_op_explain(context, "grouped_matmul_all_reduce", values, 7, text, sizeof text,
                          nullptr) == VELO_OK);
  return text;
}

std::deque<grouped_rank> make_ranks(const group_case& of, int count) {
  std::deque<grouped_rank> all;
  for (int rank = 0; rank < count; ++rank) all.emplace_back(of, rank);
  return all;
}

std::string text_of(const group_case& of) {
  return "split_item " + std::to_string(of.split) + ", weights " +
         std::to_string(static_cast<int>(of.form)) + ", dtype " + std::to_string(of.dtype.code) +
         "." + std::to_string(of.dtype.bits) + ", rows " + std::to_string(of.all_rows());
}

void check_equal(const local_ranks& ranks, const group_case& of) {
  INFO(ranks.size() << " ranks, " << text_of(of));
  auto all = make_ranks(of, ranks.size());
  ranks.require([&](const rank_of_group& me) {
    const velo_status done = all[at(me.rank)].fused(me.stream, me.group);
    return done != VELO_OK ? done : all[at(me.rank)].apart(me.stream, me.group);
  });
  for (const grouped_rank& one : all) CHECK(one.has_sums());
}

// Groups of some rows, of none, and of many, in each form of the tensors.
std::vector<group_case> every_form(velo_dtype dtype, const std::vector<std::int64_t>& rows,
                                   std::int64_t k, std::int64_t n) {
  std::vector<group_case> all;
  for (const std::int64_t split : {0, 1, 2, 3}) {
    for (const weights form : {weights::listed, weights::stacked, weights::flat}) {
      if ((split & 1) == 0 && form != weights::listed) continue;
      all.push_back({dtype, split, rows, {k}, {n}, form});
    }
  }
  all.push_back({dtype, 0, {5, 0, 7}, {8, 3, 20}, {9, 40, 1}});
  all.push_back({dtype, 1, {5, 0, 7}, {8}, {9, 40, 1}});
  all.push_back({dtype, 2, {5, 130, 7}, {8, 3, 20}, {33}});
  return all;
}

}  // namespace

TEST_CASE("grouped_matmul_all_reduce has the bits of products and all_reduces, in each form") {
  for (const int count : {1, 2, 3, 4, 8}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 32 << 10;  // many pieces a slice
    const local_ranks ranks(count, desc);
    for (const char* level : {"2", "1", "0"}) {
      if (count == 8 && level[0] != '2') continue;
      set_all(ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (group_case of : every_form(dtype, {40, 0, 1, 93, 30}, 24, 72)) {
          if (level[0] == '0' && of.slices != 3) continue;
          of.has_bias = count % 2 == 0, of.wide_bias = of.split == 2;
          // At level 0 products are the reference's, so apart as well.
          check_equal(ranks, of);
        }
    }
  }
}

TEST_CASE("a grouped product next to its sum has the bits of grouped_matmul and all_reduce") {
  const local_ranks ranks(3);
  for (const velo_dtype dtype : {f32, bf16, f16}) {
    const group_case of{dtype, VELO_GROUPED_SPLIT_ONE, {300, 7, 0, 413}, {40},
                        {104}, weights::stacked};
    auto all = make_ranks(of, 3);
    std::deque<matrix> composed;
    for (int rank = 0; rank < 3; ++rank)
      composed.emplace_back(dtype, std::vector<std::int64_t>{720, 104});
    ranks.require([&](const rank_of_group& me) {
      const velo_status done = all[at(me.rank)].fused(me.stream, me.group);
      return done != VELO_OK
                 ? done
                 : all[at(me.rank)].composed(me.stream, me.group, composed[at(me.rank)]);
    });
    for (int rank = 0; rank < 3; ++rank) CHECK(all[at(rank)].y(0).same_bits(composed[at(rank)]));
  }
}

TEST_CASE("any number of slices of grouped rows gives the same bits, with several threads") {
  for (const auto& [count, threads] : {std::pair{2, 3}, {3, 2}}) {
    const local_ranks ranks(count, group_desc(), threads);
    for (const std::int64_t slices : {0, 1, 2, 7, 1024}) {
      group_case of{bf16, VELO_GROUPED_SPLIT_ONE_X, {700, 33, 600}, {30}, {100}};
      of.slices = slices;
      check_equal(ranks, of);
    }
  }
}

TEST_CASE("level 2 slices grouped rows that are many or asked for, as velo_op_explain says") {
  const local_ranks ranks(2);
  const auto text_of_slices = [&](group_case of, std::int64_t slices) {
    of.slices = slices;
    return explained(ranks.context(0), of, ranks.group(0));
  };
  const auto is_sliced = [](const std::string& text) {
    const std::size_t at = text.find(R"("name":"sliced")");
    return text.find(R"("chosen":true)", at) < text.find(R"("reason")", at);
  };
  const auto says = [](const std::string& text, const char* why) {
    return text.find(why) != std::string::npos;
  };
  const group_case few{f32, VELO_GROUPED_SPLIT_ONE, {512, 500}, {8}, {24}};
  const group_case many{f32, VELO_GROUPED_SPLIT_ONE, {700, 500}, {8}, {24}};
  CHECK(is_sliced(text_of_slices(few, 3)));
  CHECK(is_sliced(text_of_slices(many, 0)));
  CHECK(says(text_of_slices(few, 0), "512 rows or fewer"));
  CHECK(says(text_of_slices(few, 1), "one slice is asked for"));
  set_all(ranks, "level", "1");
  CHECK(says(text_of_slices(many, 0), "needs optimization level 2"));
}

TEST_CASE("grouped_matmul_all_reduce is the sum of the ranks' products, at every level") {
  for (const char* level : {"0", "1", "2"}) {
    const local_ranks ranks(3);
    set_all(ranks, "level", level);
    for (const auto& [dtype, bound] : {std::pair{f32, 2e-6},
                                       {bf16, 0.0078125 + 0.00390625},
                                       {f16, 0.0009765625 + 0.00048828125}}) {
      const group_case of{dtype, VELO_GROUPED_SPLIT_ONE, {70, 5, 60}, {50}, {33}, weights::flat};
      auto all = make_ranks(of, 3);
      ranks.require(
          [&](const rank_of_group& me) { return all[at(me.rank)].fused(me.stream, me.group); });
      double largest = 0, worst = 0;
      for (std::size_t e = 0; e < 3; ++e) {
        for (std::int64_t i = 0; i < of.rows[e] * 33; ++i) {
          double exact = 0;
          for (const grouped_rank& one : all)
            for (std::int64_t d = 0; d < 50; ++d)
              exact += one.x(e)[i / 33 * 50 + d] * one.weight(e)[d * 33 + i % 33];
          largest = std::max(largest, std::abs(exact));
          worst = std::max(worst, std::abs(all[1].result(e, i) - exact));
        }
      }
      INFO("level " << level << ", dtype " << int{dtype.code} << "." << int{dtype.bits});
      CHECK(worst <= bound * largest);
    }
  }
}

TEST_CASE("without a group a rank multiplies its groups alone") {
  const local_ranks ranks(1);
  for (const velo_dtype dtype : {f32, bf16})
    for (const bool has_bias : {false, true})
      for (group_case of : every_form(dtype, {40, 0, 93}, 24, 72)) {
        of.has_bias = has_bias;
        INFO(text_of(of) << ", bias " << has_bias);
        grouped_rank one(of, 0), of_group(of, 0);
        REQUIRE(one.fused(ranks.stream(0), nullptr) == VELO_OK);
        REQUIRE(one.apart(ranks.stream(0), nullptr) == VELO_OK);
        CHECK(one.has_sums());
        REQUIRE(of_group.fused(ranks.stream(0), ranks.group(0)) == VELO_OK);
        for (std::size_t i = 0; i < (of.one_y() ? 1 : of.groups()); ++i)
          CHECK(one.y(i).same_bits(of_group.y(i)));
      }
}

TEST_CASE("no more than its dimensions is read of a shape") {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* pages = mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(pages != MAP_FAILED);
  auto* end = reinterpret_cast<std::int64_t*>(static_cast<char*>(pages) + page);
  REQUIRE(mprotect(end, page, PROT_NONE) == 0);
  end[-2] = 4, end[-1] = 3;
  const local_ranks ranks(1);
  const matrix x(f32, {2, 4}, 1), w(f32, {4, 3}, 2), y(f32, {2, 3});
  const velo_tensor vx = x.view(), vy = y.view();
  velo_tensor vw = w.view();
  vw.shape = end - 2;
  const velo_tensors xs{&vx, 1}, ws{&vw, 1}, ys{&vy, 1};
  velo_grouped_matmul_all_reduce_args a = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
  a.x = &xs, a.weight = &ws, a.y = &ys, a.split_item = VELO_GROUPED_SPLIT_LISTS;
  CHECK(velo_grouped_matmul_all_reduce(ranks.stream(0), &a) == VELO_OK);
  munmap(pages, 2 * page);
}

TEST_CASE("processes get the bits of the calls apart, too") {
  const auto call = [](const rank_of_group& me) {
    ending all;
    for (const velo_dtype dtype : {f32, bf16}) {
      for (const group_case& of : every_form(dtype, {400, 0, 1, 93}, 24, 72)) {
        grouped_rank one(of, me.rank);
        velo_status done = one.fused(me.stream, me.group);
        if (done == VELO_OK) done = one.apart(me.stream, me.group);
        if (done != VELO_OK) return ending_of(done);
        all.value += one.has_sums() ? 0 : 1;
      }
    }
    all.code = VELO_OK;
    return all;
  };
  for (const int count : {2, 3, 4}) {
    processes ranks;
    ranks.start_all(count, group_desc(), call);
    check_right(ranks.wait());
  }
}

TEST_CASE(
    "ranks of an MPI job on one host and on two get the bits of grouped_matmul and all_reduce") {
  for (const char* where : {"00", "0011", "01"}) {
    const ranks_on_hosts hosts(where);
    for (const velo_dtype dtype : {f32, bf16}) {
      const group_case of{dtype, VELO_GROUPED_SPLIT_ONE, {300, 7, 0, 93}, {40},
                          {104}, weights::stacked};
      auto all = make_ranks(of, hosts.size());
      std::deque<matrix> composed;
      for (int rank = 0; rank < hosts.size(); ++rank)
        composed.emplace_back(dtype, std::vector<std::int64_t>{400, 104});
      hosts.require([&](const rank_of_group& me) {
        grouped_rank& one = all[at(me.rank)];
        const velo_status done = one.fused(me.stream, me.group);
        return done != VELO_OK ? done : one.composed(me.stream, me.group, composed[at(me.rank)]);
      });
      INFO("hosts " << where);
      for (int rank = 0; rank < hosts.size(); ++rank)
        CHECK(all[at(rank)].y(0).same_bits(composed[at(rank)]));
    }
  }
}

TEST_CASE("ranks that disagree about groups all learn it before rows move") {
  const local_ranks ranks(2, group_desc(2000));
  for (const char* level : {"2", "1"}) {
    set_all(ranks, "level", level);
    const local_ranks fresh(2, group_desc(2000));
    set_all(fresh, "level", level);
    const group_case one{f32, 3, {40, 50}, {8}, {24}}, other{f32, 3, {41, 49}, {8}, {24}};
    grouped_rank first(one, 0), second(other, 1);
    const std::vector<call_record> failures = fresh.run([&](const rank_of_group& me) {
      return (me.rank == 0 ? first : second).fused(me.stream, me.group);
    });
    CHECK(failures[0].code == VELO_ERR_PEER);
    CHECK(failures[1].code == VELO_ERR_PEER);
  }
}

TEST_CASE("grouped_matmul_all_reduce names what is wrong with its lists") {
  const local_ranks ranks(1);
  const velo_stream s = ranks.stream(0);
  matrix x(f32, {6, 4}, 1), w(f32, {4, 3}, 2), y(f32, {6, 3}), b(f32, {3}, 3),
      half(bf16, {4, 3}, 2);
  matrix narrow(f32, {6, 2}), deep(f32, {5, 3});
  const velo_tensor vx = x.view(), vw = w.view(), vy = y.view(), vb = b.view(), vh = half.view(),
                    vn = narrow.view(), vd = deep.view();
  const velo_tensor two_x[] = {vx, vx}, two_w[] = {vw, vw}, two_y[] = {vy, vy};
  const velo_tensor mixed[] = {vw, vh}, wrong[] = {vw, vd};
  const velo_tensors x1{&vx, 1}, x2{two_x, 2}, w1{&vw, 1}, w2{two_w, 2}, y1{&vy, 1}, y2{two_y, 2};
  const velo_tensors none{nullptr, 0}, b1{&vb, 1}, wm{mixed, 2}, wd{wrong, 2}, yn{&vn, 1};
  const std::int64_t ends[] = {2, 6}, back[] = {4, 3}, few[] = {2, 5};
  const velo_ints list{ends, 2}, decreasing{back, 2}, short_list{few, 2}, empty{nullptr, 0};
  using args = velo_grouped_matmul_all_reduce_args;
  args valid = VELO_GROUPED_MATMUL_ALL_REDUCE_ARGS_INIT;
  valid.x = &x1, valid.weight = &w2, valid.y = &y1, valid.group_list = &list;
  valid.split_item = VELO_GROUPED_SPLIT_ONE;
  REQUIRE(velo_grouped_matmul_all_reduce(s, &valid) == VELO_OK);
  const auto refused = [&](velo_status code, const char* name, const auto& change) {
    args a = valid;
    change(a);
    CHECK_REFUSED(velo_grouped_matmul_all_reduce(s, &a), code, name);
  };
  refused(VELO_ERR_NULL, "args.group_list", [](args& a) { a.group_list = nullptr; });
  refused(VELO_ERR_ARGUMENT, "args.group_list", [&](args& a) { a.group_list = &decreasing; });
  refused(VELO_ERR_ARGUMENT, "args.group_list", [&](args& a) { a.group_list = &short_list; });
  refused(VELO_ERR_ARGUMENT, "args.group_list", [&](args& a) { a.group_list = &empty; });
  refused(VELO_ERR_ARGUMENT, "args.x.count", [&](args& a) { a.x = &x2; });
  refused(VELO_ERR_ARGUMENT, "args.y.count", [&](args& a) { a.y = &y2; });
  refused(VELO_ERR_ARGUMENT, "args.bias.count", [&](args& a) { a.bias = &b1; });
  refused(VELO_ERR_SHAPE, "args.weight[0].shape", [&](args& a) { a.weight = &w1; });
  refused(VELO_ERR_DTYPE, "args.weight[1].dtype", [&](args& a) { a.weight = &wm; });
  refused(VELO_ERR_SHAPE, "args.weight[1].shape", [&](args& a) { a.weight = &wd; });
  refused(VELO_ERR_SHAPE, "args.y[0].shape", [&](args& a) { a.y = &yn; });
  refused(VELO_ERR_ARGUMENT, "args.split_item", [](args& a) { a.split_item = 4; });
  refused(VELO_ERR_ARGUMENT, "args.group_list",
          [](args& a) { a.split_item = VELO_GROUPED_SPLIT_ONE_Y; });
  refused(VELO_ERR_ARGUMENT, "args.x.count", [&](args& a) {
    a.split_item = VELO_GROUPED_SPLIT_LISTS, a.group_list = nullptr, a.x = &none;
  });
  refused(VELO_ERR_ARGUMENT, "args.weight.count",
          [&](args& a) { a.split_item = VELO_GROUPED_SPLIT_LISTS, a.group_list = nullptr; });
  const std::int64_t endless[] = {std::int64_t{1} << 62, 0}, no_numbers[] = {0, 0};
  const velo_tensor long_x = view_of(&ends, f32, endless), no_w = view_of(&ends, f32, no_numbers);
  const velo_tensor long_xs[] = {long_x, long_x}, no_ws[] = {no_w, no_w};
  const velo_tensors xl{long_xs, 2}, wl{no_ws, 2}, yl{long_xs, 2};
  refused(VELO_ERR_SHAPE, "args.x[1].shape", [&](args& a) {
    a.split_item = VELO_GROUPED_SPLIT_LISTS, a.group_list = nullptr;
    a.x = &xl, a.weight = &wl, a.y = &yl;
  });
}
