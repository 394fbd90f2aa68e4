// sequence_all_to_all against the numbers that each place must have: even, uneven and empty cuts,
// heads of several ranks, dtypes, ranks, threads, levels, pieces, processes and queues; that either
// way is the gradient of the other; refusals, and ranks that disagree.
#include <atomic>
#include <cmath>
#include <numeric>
#include <thread>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/refusals.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

constexpr std::int64_t inner = 40;  // elements of a head

// How rows and heads lie on ranks; empty lists are even cuts.
struct cut {
  std::int64_t all_rows, all_heads;
  std::vector<std::int64_t> rows, heads;

  std::int64_t rows_of(int rank, int ranks) const {
    return rows.empty() ? all_rows / ranks : rows[at(rank)];
  }
  std::int64_t first_row(int rank, int ranks) const {
    std::int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += rows_of(r, ranks);
    return first;
  }
  std::pair<std::int64_t, std::int64_t> heads_of(int rank, int ranks) const {
    if (!heads.empty()) return {heads[at(2 * rank)], heads[at(2 * rank + 1)]};
    const std::int64_t each = all_heads / ranks;
    return {rank * each, (rank + 1) * each};
  }
};

// Cuts that rows and heads may have among so many ranks.
std::vector<cut> cuts_of(int ranks) {
  const std::int64_t n = ranks;
  cut even{6 * n, 2 * n, {}, {}}, empty{0, n, {}, {}}, uneven{0, n + 1, {}, {}},
      shared{0, std::max<std::int64_t>(n / 2, 1), {}, {}};
  for (int r = 0; r < ranks; ++r) {
    uneven.rows.push_back(r == 1 ? 0 : 3 * r + 1);
    shared.rows.push_back(5 + r);
    uneven.all_rows += uneven.rows.back(), shared.all_rows += shared.rows.back();
    uneven.heads.insert(uneven.heads.end(), {r == 0 ? 0 : r + 1, r + 2});
    const std::int64_t head = r * shared.all_heads / n;
    shared.heads.insert(shared.heads.end(), {head, head + 1});
  }
  // Heads of two ranks at once, beside one of a rank alone, and a rank without any.
  cut mixed{4 * n, 2 * n, {}, {}};
  for (int r = 0; r < ranks; ++r)
    mixed.heads.insert(mixed.heads.end(),
                       {r == ranks - 1 && ranks > 2 ? 1 : 2 * r,
                        r == ranks - 1 && ranks > 2 ? 1 : std::min(2 * r + 3, 2 * ranks)});
  if (ranks > 2) mixed.all_heads = 2 * (ranks - 2) + 3;
  std::vector<cut> all{even, empty, uneven, shared, mixed};
  if (ranks == 2 || ranks == 3) {  // that a small buffer takes in several pieces
    cut large = uneven;
    large.all_rows = 0;
    for (std::int64_t& rows : large.rows) large.all_rows += rows = 300 * rows + 1;
    all.push_back(large);
  }
  return all;
}

// The number in row `row` of the sequence and a head of a rank's tensor; bfloat16 holds it.
double number_at(int rank, std::int64_t row, std::int64_t head, std::int64_t i) {
  return static_cast<double>((rank * 61 + row * 29 + head * 13 + i * 5) % 127 - 63) / 64;
}

// A tensor of rows, heads and elements.
class cube {
 public:
  cube(velo_dtype dtype, const std::vector<std::int64_t>& sizes)
      : sizes_(sizes), elements_(dtype, sizes[0] * sizes[1] * sizes[2], 0) {}
  velo_tensor view() const {
    velo_tensor all = elements_.view();
    all.ndim = 3, all.shape = sizes_.data();
    return all;
  }
  void set(std::int64_t row, std::int64_t head, std::int64_t i, double value) {
    elements_.set(place(row, head, i), value);
  }
  double get(std::int64_t row, std::int64_t head, std::int64_t i) const {
    return elements_.get(place(row, head, i));
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    for (std::int64_t i = 0; i < sizes_[0] * sizes_[1] * sizes_[2]; ++i)
      all.push_back(elements_.get(i));
    return all;
  }
  bool borders_kept() const { return elements_.borders_kept(); }

 private:
  std::int64_t place(std::int64_t row, std::int64_t head, std::int64_t i) const {
    return (row * sizes_[1] + head) * sizes_[2] + i;
  }

  std::vector<std::int64_t> sizes_;
  elements elements_;
};

// The tensors of a rank in one way.
struct part {
  part(const cut& of, int rank, int ranks, velo_dtype dtype, bool to_heads)
      : of_(of),
        rank_(rank),
        ranks_(ranks),
        to_heads_(to_heads),
        x(dtype, shape(!to_heads)),
        y(dtype, shape(to_heads)),
        rows_list_{of.rows.data(), static_cast<std::int64_t>(of.rows.size())},
        heads_list_{of.heads.data(), static_cast<std::int64_t>(of.heads.size())} {
    const auto own = of_.heads_of(rank, ranks);
    const std::int64_t first = to_heads ? of_.first_row(rank, ranks) : 0;
    each_place(shape(!to_heads), [&](std::int64_t row, std::int64_t head, std::int64_t i) {
      x.set(row, head, i, number_at(rank, first + row, head + (to_heads ? 0 : own.first), i));
    });
  }

  velo_status run(velo_stream stream, velo_group group) const {
    const velo_tensor from = x.view(), to = y.view();
    velo_sequence_all_to_all_args args = VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT;
    args.group = group, args.x = &from, args.y = &to;
    args.to = to_heads_ ? VELO_SEQUENCE_CUT_HEADS : VELO_SEQUENCE_CUT_ROWS;
    if (rows_list_.count > 0) args.rows = &rows_list_;
    if (heads_list_.count > 0) args.heads = &heads_list_;
    return velo_sequence_all_to_all(stream, &args);
  }

  // Whether every place has its number.
  bool is_right() const {
    bool right = y.borders_kept();
    const auto own = of_.heads_of(rank_, ranks_);
    const std::int64_t first = of_.first_row(rank_, ranks_);
    each_place(shape(to_heads_), [&](std::int64_t row, std::int64_t head, std::int64_t i) {
      double want = 0;
      for (int r = 0; r < ranks_; ++r) {
        const auto of = of_.heads_of(r, ranks_);
        const std::int64_t begin = of_.first_row(r, ranks_);
        if (to_heads_ && begin <= row && row < begin + of_.rows_of(r, ranks_))
          want = number_at(r, row, own.first + head, i);
        if (!to_heads_ && of.first <= head && head < of.second)
          want += number_at(r, first + row, head, i);
      }
      right = right && std::abs(y.get(row, head, i) - want) <= std::abs(want) * 0x1p-8;
    });
    return right;
  }

 private:
  std::vector<std::int64_t> shape(bool of_heads) const {
    const auto own = of_.heads_of(rank_, ranks_);
    return {of_heads ? of_.all_rows : of_.rows_of(rank_, ranks_),
            of_heads ? own.second - own.first : of_.all_heads, inner};
  }
  template <class Body>
  static void each_place(const std::vector<std::int64_t>& sizes, const Body& body) {
    for (std::int64_t row = 0; row < sizes[0]; ++row)
      for (std::int64_t head = 0; head < sizes[1]; ++head)
        for (std::int64_t i = 0; i < inner; ++i) body(row, head, i);
  }

  const cut& of_;
  int rank_, ranks_;
  bool to_heads_;

 public:
  cube x, y;

 private:
  velo_ints rows_list_, heads_list_;
};

double product_of(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

void require_right(const local_ranks& all, const cut& of, velo_dtype dtype, bool to_heads) {
  std::vector<std::unique_ptr<part>> parts;
  std::vector<std::vector<double>> before;
  for (int rank = 0; rank < all.size(); ++rank)
    parts.push_back(std::make_unique<part>(of, rank, all.size(), dtype, to_heads));
  for (const char* level : {"2", "1", "0"}) {
    INFO("level " << level);
    set_all(all, "level", level);
    all.require(
        [&](const rank_of_group& me) { return parts[at(me.rank)]->run(me.stream, me.group); });
    for (const auto& one : parts) CHECK(one->is_right());
    for (std::size_t r = 0; r < before.size(); ++r) CHECK(parts[r]->y.numbers() == before[r]);
    before.clear();
    for (const auto& one : parts) before.push_back(one->y.numbers());
  }
}

}  // namespace

TEST_CASE("rows and heads change places among any ranks, cuts, dtypes and levels") {
  for (const int count : {1, 2, 3, 4, 8}) {
    for (const std::uint64_t buffer : {8 << 10, 512 << 10}) {  // many pieces, or one
      velo_group_desc desc = group_desc();
      desc.buffer = buffer;
      const local_ranks all(count, desc, count == 3 ? 2 : 1);
      int index = 0;
      for (const cut& of : cuts_of(count)) {
        for (const velo_dtype dtype : {f32, bf16, f16})
          for (const bool to_heads : {true, false}) {
            INFO(count << " ranks, buffer " << buffer << ", cut " << index << ", "
                       << int{dtype.code} << "." << int{dtype.bits}
                       << (to_heads ? "" : " to rows"));
            require_right(all, of, dtype, to_heads);
          }
        ++index;
      }
    }
  }
}

TEST_CASE(
    "ranks that share memory read each other's tensors at level 2, and velo_op_explain says so") {
  const local_ranks all(2);
  const cut even{12, 4, {}, {}};
  const part one(even, 0, 2, f32, true);
  const velo_tensor x = one.x.view();
  velo_named_value values[2] = {};
  values[0].name = "group", values[0].value.kind = VELO_VALUE_HANDLE;
  values[0].value.as.p = all.group(0);
  values[1].name = "x", values[1].value.kind = VELO_VALUE_TENSOR, values[1].value.as.tensor = &x;
  for (const bool direct : {true, false}) {
    set_all(all, "level", direct ? "2" : "1");
    char text[2048] = "";
    REQUIRE(velo_op_explain(all.context(0), "sequence_all_to_all", values, 2, text, sizeof text,
                            nullptr) == VELO_OK);
    const std::string chosen = text;
    const std::size_t at = chosen.find(R"("chosen":true)");
    const std::string kernel = direct ? "sliced" : "composition";
    CHECK(chosen.rfind(R"("name":")", at) == chosen.find(R"("name":")" + kernel + "\""));
  }
}

TEST_CASE("either way is the gradient of the other") {
  for (const int count : {2, 3}) {
    const local_ranks all(count);
    for (const cut& of : cuts_of(count)) {
      std::vector<std::unique_ptr<part>> there, back;
      for (int rank = 0; rank < count; ++rank) {
        there.push_back(std::make_unique<part>(of, rank, count, f32, true));
        back.push_back(std::make_unique<part>(of, rank, count, f32, false));
      }
      all.require([&](const rank_of_group& me) {
        const velo_status done = there[at(me.rank)]->run(me.stream, me.group);
        return done == VELO_OK ? back[at(me.rank)]->run(me.stream, me.group) : done;
      });
      double forward = 0, gradient = 0;  // <to heads(x), w> and <x, to rows(w)>
      for (std::size_t r = 0; r < there.size(); ++r) {
        forward += product_of(there[r]->y.numbers(), back[r]->x.numbers());
        gradient += product_of(there[r]->x.numbers(), back[r]->y.numbers());
      }
      CHECK(std::abs(forward - gradient) <= 1e-6 * (1 + std::abs(forward)));
    }
  }
}

TEST_CASE("processes exchange rows and heads, and queues keep the order of their calls") {
  for (const std::uint64_t buffer : {8 << 10, 512 << 10}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;
    ranks.start_all(3, desc, [](const rank_of_group& me) {
      velo_status done = VELO_OK;
      std::int64_t right = 1;
      for (const cut& of : cuts_of(3))
        for (const bool to_heads : {true, false}) {
          const part one(of, me.rank, 3, bf16, to_heads);
          if (done == VELO_OK) done = one.run(me.stream, me.group);
          right = right != 0 && one.is_right() ? 1 : 0;
        }
      return ending_of(done, right);
    });
    for (const ending& one : ranks.wait()) {
      CHECK_OK(one);
      CHECK(one.value == 1);
    }
  }
  const local_ranks all(2);
  const cut of = cuts_of(2)[2];
  std::vector<std::unique_ptr<part>> parts;
  for (int rank = 0; rank < 2; ++rank)
    parts.push_back(std::make_unique<part>(of, rank, 2, f32, true));
  std::vector<velo_stream> queues;
  for (int rank = 0; rank < 2; ++rank) queues.push_back(all.context(rank).new_stream());
  all.require([&](const rank_of_group& me) {
    velo_status done = VELO_OK;
    for (int i = 0; i < 20 && done == VELO_OK; ++i) {
      done = parts[at(me.rank)]->run(queues[at(me.rank)], me.group);
      if (done == VELO_OK) done = velo_group_barrier(queues[at(me.rank)], me.group);
    }
    return done == VELO_OK ? velo_stream_synchronize(queues[at(me.rank)]) : done;
  });
  for (const auto& one : parts) CHECK(one->is_right());
}

TEST_CASE("ranks on two hosts exchange rows and heads through MPI") {
  const ranks_on_hosts ranks("0011");
  for (const cut& of : cuts_of(4))
    for (const bool to_heads : {true, false}) {
      std::vector<std::unique_ptr<part>> parts;
      for (int rank = 0; rank < 4; ++rank)
        parts.push_back(std::make_unique<part>(of, rank, 4, f16, to_heads));
      ranks.require(
          [&](const rank_of_group& me) { return parts[at(me.rank)]->run(me.stream, me.group); });
      for (const auto& one : parts) CHECK(one->is_right());
    }
}

TEST_CASE("an abort in the middle of exchanges ends every rank's call, and names the rank") {
  for (const bool to_heads : {true, false}) {
    const local_ranks all(3);
    const cut of = cuts_of(3).back();
    std::atomic<int> calls{0};
    std::atomic<bool> over{false};
    std::thread aborts([&] {
      while (calls < 5 && !over) std::this_thread::yield();
      velo_group_abort(all.group(2));
    });
    const std::vector<call_record> ends = all.run([&](const rank_of_group& me) {
      for (;; ++calls) {  // the tensors of a failed call go with it
        const part one(of, me.rank, 3, f32, to_heads);
        const velo_status done = one.run(me.stream, me.group);
        if (done != VELO_OK) return done;
      }
    });
    over = true;
    aborts.join();
    for (const call_record& one : ends) {
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 2);
    }
  }
}

TEST_CASE("ranks that disagree about rows, heads or the way all hear of it") {
  const cut even{12, 6, {}, {}}, rows{12, 6, {4, 4, 4}, {}}, other{12, 6, {5, 4, 3}, {}},
      heads{12, 6, {}, {0, 2, 2, 4, 4, 6}};
  const auto fails = [](const cut& first, const cut& last, bool same_way) {
    const local_ranks all(3);
    const std::vector<call_record> ends = all.run([&](const rank_of_group& me) {
      const bool odd = me.rank == 2;
      const part one(odd ? last : first, me.rank, 3, f32, same_way || !odd);
      return one.run(me.stream, me.group);
    });
    for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
  };
  fails(even, rows, true), fails(rows, other, true), fails(even, heads, true);
  fails(even, even, false);
}

TEST_CASE("sequence_all_to_all refuses what does not fit, by name, and leaves peers alone") {
  const local_ranks all(2);
  elements x(f32, 24), y(f32, 24);
  for (std::int64_t i = 0; i < 24; ++i) x.set(i, 1), y.set(i, 7);
  static const std::int64_t x_shape[] = {3, 4, 2}, y_shape[] = {6, 2, 2}, odd_heads[] = {3, 3, 2},
                            other_rows[] = {2, 4, 2}, huge[] = {std::int64_t{1} << 62, 4, 0};
  velo_tensor from = x.view(), to = y.view();
  from.ndim = to.ndim = 3, from.shape = x_shape, to.shape = y_shape;
  velo_sequence_all_to_all_args valid = VELO_SEQUENCE_ALL_TO_ALL_ARGS_INIT;
  valid.group = all.group(0), valid.x = &from, valid.y = &to;
  velo_tensor changed = from;
  const auto with_shape = [&](const std::int64_t* shape) {
    return [&changed, &from, shape](velo_sequence_all_to_all_args& a) {
      changed = from;
      changed.shape = shape, a.x = &changed;
    };
  };
  velo_ints list{};
  std::vector<std::int64_t> numbers;
  const auto with_rows = [&](const std::vector<std::int64_t>& values, bool of_heads = false) {
    return [&, values, of_heads](velo_sequence_all_to_all_args& a) {
      numbers = values;
      list = {numbers.data(), static_cast<std::int64_t>(numbers.size())};
      (of_heads ? a.heads : a.rows) = &list;
    };
  };
  using args = velo_sequence_all_to_all_args;
  check_refusals<args>(valid,
                       [&](const args& a) { return velo_sequence_all_to_all(all.stream(0), &a); },
                       {{[](args& a) { a.x = nullptr; }, VELO_ERR_NULL, "args.x"},
                        {[](args& a) { a.to = 2; }, VELO_ERR_ARGUMENT, "args.to"},
                        {[&](args& a) { a.y = a.x; }, VELO_ERR_SHAPE, "args.y.shape"},
                        {with_shape(odd_heads), VELO_ERR_SHAPE, "args.x.shape"},
                        {with_shape(other_rows), VELO_ERR_SHAPE, "args.y.shape"},
                        {with_shape(huge), VELO_ERR_SHAPE, "args.x.shape"},
                        {with_rows({3}), VELO_ERR_ARGUMENT, "args.rows.count"},
                        {with_rows({3, -1}), VELO_ERR_ARGUMENT, "args.rows[1]"},
                        {with_rows({3, std::int64_t{1} << 62}), VELO_ERR_ARGUMENT, "args.rows[1]"},
                        {with_rows({4, 2}), VELO_ERR_SHAPE, "args.x.shape"},
                        {with_rows({0, 2}, true), VELO_ERR_ARGUMENT, "args.heads.count"},
                        {with_rows({0, 2, 2, 1}, true), VELO_ERR_ARGUMENT, "args.heads[2]"},
                        {with_rows({-1, 2, 2, 4}, true), VELO_ERR_ARGUMENT, "args.heads[0]"},
                        {with_rows({0, 1, 2, 4}, true), VELO_ERR_ARGUMENT, "args.heads"},
                        {with_rows({0, 2, 2, 5}, true), VELO_ERR_SHAPE, "args.x.shape"}});
  for (std::int64_t i = 0; i < 24; ++i) CHECK(y.get(i) == 7);
  const call_record never =
      record_of(velo_group_barrier(all.context(1).new_stream(), all.group(1)));
  CHECK(never.code == VELO_OK);  // queued, and nobody waits for a call that was refused
  all.require([&](const rank_of_group& me) {
    return me.rank == 0 ? velo_group_barrier(me.stream, me.group) : VELO_OK;
  });
}
