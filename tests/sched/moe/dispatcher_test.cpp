// Dispatchers: rows, outputs and gradients against sums in double; the same bits for any number of
// ranks, on one host and on two; what a routing refuses, and faults.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "comm/ranks.hpp"
#include "comm/transport/mpi/mpi_threads.hpp"
#include "tests/random.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

// A micro-batch of all ranks: choices, -1 among them, and the tokens that each rank has.
struct micro_batch {
  std::int64_t tokens, top_k, experts, width;
  velo_dtype dtype;
  std::vector<std::int32_t> choices;

  micro_batch(std::int64_t tokens_, std::int64_t top_k_, std::int64_t experts_, std::int64_t width_,
              velo_dtype dtype_, int seed, bool one_expert = false)
      : tokens(tokens_), top_k(top_k_), experts(experts_), width(width_), dtype(dtype_) {
    random_numbers<std::mt19937> draw(at(seed));
    for (std::int64_t i = 0; i < tokens * top_k; ++i)
      choices.push_back(one_expert       ? 1
                        : draw.one_in(7) ? -1 - static_cast<std::int32_t>(draw.below(3))
                                         : static_cast<std::int32_t>(draw.below(at(experts))));
  }
  // Rank 1 of several has no token, and the others unequal numbers.
  std::int64_t first(int rank, int ranks) const {
    if (ranks == 1 || rank == 0) return rank == 0 ? 0 : tokens;
    const std::int64_t half = std::min(tokens / 2 + 1, tokens);
    return rank <= 2 ? half : half + (tokens - half) * (rank - 2) / std::max(ranks - 2, 1);
  }
  std::int64_t end(int rank, int ranks) const {
    return rank + 1 == ranks ? tokens : first(rank + 1, ranks);
  }
  std::int64_t count(int rank, int ranks) const { return end(rank, ranks) - first(rank, ranks); }
};

// Fills a rank's rows from those of all ranks.
void fill_part(matrix& own, const matrix& all, std::int64_t first_element) {
  for (std::int64_t i = 0; i < own.count(); ++i) own.set(i, all[first_element + i]);
}

// An expert's function and its gradient: every expert has a factor of its own.
double factor_of(std::int64_t expert) {
  return 0.5 + 0.125 * static_cast<double>(expert);
}

// The tensors of a pass over all tokens, as ranks fill their parts.
struct pass_results {
  matrix y, dx, dweights;
  std::vector<std::vector<double>> rows_of_expert;  // as they came

  explicit pass_results(const micro_batch& of)
      : y(of.dtype, {of.tokens, of.width}),
        dx(of.dtype, {of.tokens, of.width}),
        dweights(f32, {of.tokens, of.top_k}),
        rows_of_expert(at(of.experts)) {}
};

// The inputs of a pass, of all tokens.
struct pass_inputs {
  matrix x, dy, weights;
  explicit pass_inputs(const micro_batch& of)
      : x(of.dtype, {of.tokens, of.width}, 1),
        dy(of.dtype, {of.tokens, of.width}, 2),
        weights(f32, {of.tokens, of.top_k}, 3) {}
};

void keep(const matrix& own, std::int64_t columns, std::int64_t first, std::int64_t rows,
          matrix& all) {
  for (std::int64_t i = 0; i < rows * columns; ++i) all.set(first * columns + i, own[i]);
}

// One rank's forward and backward pass.
class rank_pass {
 public:
  rank_pass(const micro_batch& of, const pass_inputs& in, const rank_of_group& me)
      : of_(of),
        me_(me),
        first_(of.first(me.rank, me.size)),
        count_(of.count(me.rank, me.size)),
        x_(of.dtype, {count_, of.width}),
        dy_(of.dtype, {count_, of.width}),
        weights_(f32, {count_, of.top_k}),
        y_(of.dtype, {count_, of.width}),
        dx_(of.dtype, {count_, of.width}),
        dweights_(f32, {count_, of.top_k}, 9) {
    fill_part(x_, in.x, first_ * of.width);
    fill_part(dy_, in.dy, first_ * of.width);
    fill_part(weights_, in.weights, first_ * of.top_k);
  }

  velo_status run(velo_stream stream, pass_results& into) {
    velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
    desc.experts = of_.experts, desc.top_k = static_cast<std::int32_t>(of_.top_k);
    velo_dispatcher layer = nullptr;
    velo_routing routing = nullptr;
    velo_status done = velo_dispatcher_create(me_.group, &desc, &layer);
    if (done == VELO_OK) done = velo_routing_create(layer, &routing);
    for (int step = 0; step < 2 && done == VELO_OK; ++step)  // a routing is used again
      done = pass(stream, layer, routing, into);
    velo_routing_destroy(routing);
    velo_dispatcher_destroy(layer);
    return done;
  }

 private:
  velo_status pass(velo_stream stream, velo_dispatcher layer, velo_routing routing,
                   pass_results& into) {
    const std::int64_t shape[] = {count_, of_.top_k};
    const velo_tensor choices = view_of(of_.choices.data() + first_ * of_.top_k, i32, shape);
    std::vector<std::int64_t> counts(at(of_.experts / me_.size));
    std::int64_t rows = 0;
    velo_status done = velo_routing_set(routing, stream, &choices);
    if (done == VELO_OK)
      done = velo_routing_get_rows(routing, counts.data(), static_cast<std::int64_t>(counts.size()),
                                   &rows);
    if (done != VELO_OK) return done;
    matrix taken(of_.dtype, {rows, of_.width}), drows(of_.dtype, {rows, of_.width});
    const velo_tensor x = x_.view(), y = y_.view(), in = taken.view(), w = weights_.view(),
                      dy = dy_.view(), din = drows.view(), dx = dx_.view(), dw = dweights_.view();
    done = velo_dispatcher_dispatch(layer, stream, routing, &x, &in);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    if (done != VELO_OK) return done;
    multiply(taken, counts, &into);
    done = velo_dispatcher_combine(layer, stream, routing, &in, &w, &y);
    if (done == VELO_OK)
      done = velo_dispatcher_combine_backward(layer, stream, routing, &dy, &in, &w, &din, &dw);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    if (done != VELO_OK) return done;
    multiply(drows, counts, nullptr);
    done = velo_dispatcher_dispatch_backward(layer, stream, routing, &din, &dx);
    if (done == VELO_OK) done = velo_stream_synchronize(stream);
    keep(y_, of_.width, first_, count_, into.y);
    keep(dx_, of_.width, first_, count_, into.dx);
    keep(dweights_, of_.top_k, first_, count_, into.dweights);
    return done;
  }

  // Rows of each expert times its factor; rows as they came are kept.
  void multiply(matrix& rows, const std::vector<std::int64_t>& counts, pass_results* into) const {
    std::int64_t element = 0;
    for (std::size_t e = 0; e < counts.size(); ++e) {
      const auto expert = static_cast<std::int64_t>(e) + me_.rank * (of_.experts / me_.size);
      std::vector<double> came;
      for (std::int64_t i = 0; i < counts[e] * of_.width; ++i, ++element) {
        came.push_back(rows[element]);
        rows.set(element, rows[element] * factor_of(expert));
      }
      if (into != nullptr) into->rows_of_expert[at(expert)] = came;
    }
  }

  const micro_batch& of_;
  const rank_of_group me_;
  const std::int64_t first_, count_;
  matrix x_, dy_, weights_, y_, dx_, dweights_;
};

template <class Ranks>
void run_pass(const micro_batch& of, const Ranks& ranks, pass_results& into, bool queued = false) {
  const pass_inputs in(of);
  std::vector<velo_stream> streams;
  for (int rank = 0; rank < ranks.size(); ++rank)
    streams.push_back(queued ? ranks.context(rank).new_stream() : ranks.rank(rank).stream);
  ranks.require([&](const rank_of_group& me) {
    rank_pass pass(of, in, me);
    return pass.run(streams[at(me.rank)], into);
  });
}

double rounding_of(velo_dtype dtype) {
  return dtype.bits == 32 ? 1e-6 : dtype.code == VELO_DTYPE_BFLOAT ? 8e-3 : 1e-3;
}

void check_against_double(const micro_batch& of, const pass_results& got) {
  const pass_inputs in(of);
  const double bound = 4 * rounding_of(of.dtype);
  std::int64_t wrong = 0;
  for (std::int64_t t = 0; t < of.tokens; ++t) {
    for (std::int64_t i = 0; i < of.width; ++i) {
      double y = 0, dx = 0, sum = 1;
      for (std::int64_t j = 0; j < of.top_k; ++j) {
        const std::int32_t expert = of.choices[at(t * of.top_k + j)];
        if (expert < 0) continue;
        const double scale = in.weights[t * of.top_k + j] * factor_of(expert);
        y += scale * in.x[t * of.width + i], dx += scale * in.dy[t * of.width + i];
        sum += std::abs(scale);
      }
      wrong += std::abs(got.y[t * of.width + i] - y) > bound * sum;
      wrong += std::abs(got.dx[t * of.width + i] - dx) > bound * sum;
    }
    for (std::int64_t j = 0; j < of.top_k; ++j) {
      const std::int32_t expert = of.choices[at(t * of.top_k + j)];
      double product = 0, sum = 1;
      for (std::int64_t i = 0; i < of.width && expert >= 0; ++i) {
        const double term = factor_of(expert) * in.x[t * of.width + i] * in.dy[t * of.width + i];
        product += term, sum += std::abs(term);
      }
      wrong += std::abs(got.dweights[t * of.top_k + j] - product) > bound * sum;
    }
  }
  CHECK(wrong == 0);
}

// The rows of each expert by token and choice.
void check_rows(const micro_batch& of, const pass_results& got) {
  const pass_inputs in(of);
  std::vector<std::vector<double>> wanted(at(of.experts));
  for (std::int64_t i = 0; i < of.tokens * of.top_k; ++i) {
    if (of.choices[at(i)] < 0) continue;
    for (std::int64_t c = 0; c < of.width; ++c)
      wanted[at(of.choices[at(i)])].push_back(in.x[i / of.top_k * of.width + c]);
  }
  CHECK(got.rows_of_expert == wanted);
}

bool same_bits(const pass_results& a, const pass_results& b) {
  return a.y.same_bits(b.y) && a.dx.same_bits(b.dx) && a.dweights.same_bits(b.dweights);
}

const micro_batch batches[] = {
    {37, 2, 24, 40, f32, 1}, {50, 3, 24, 33, bf16, 2},       {41, 8, 24, 64, f16, 3},
    {64, 1, 24, 16, f32, 4}, {29, 2, 24, 40, bf16, 5, true},  // one hot expert
    {1, 2, 24, 8, f32, 6},   {0, 2, 24, 8, f32, 7},          {300, 6, 24, 272, f32, 8},
    {10, 2, 24, 0, f32, 9},
};

}  // namespace

TEST_CASE("rows, outputs and gradients are those of double, with the same bits for any ranks") {
  for (const micro_batch& of : batches) {
    INFO(of.tokens << " tokens, " << of.top_k << " choices, width " << of.width);
    pass_results alone(of);
    run_pass(of, local_ranks(1), alone);
    check_rows(of, alone);
    check_against_double(of, alone);
    for (const int ranks : {2, 3, 4, 8})
      for (const bool queued : {false, true}) {
        INFO(ranks << " ranks, queued: " << queued);
        pass_results cut(of);
        run_pass(of, local_ranks(ranks, group_desc(), ranks % 2 + 1), cut, queued);
        check_rows(of, cut);
        CHECK(same_bits(alone, cut));
      }
  }
}

TEST_CASE("ranks on two hosts, which send rows, have the bits of one rank") {
  for (const char* hosts : {"0011", "01", "0001"}) {
    const ranks_on_hosts ranks(hosts);
    for (const micro_batch& of : batches) {
      INFO(hosts << ", " << of.tokens << " tokens, " << of.top_k << " choices");
      pass_results alone(of), cut(of);
      run_pass(of, local_ranks(1), alone);
      run_pass(of, ranks, cut);
      check_rows(of, cut);
      CHECK(same_bits(alone, cut));
    }
  }
}

namespace {

// A dispatcher with a routing, on a rank; NULL where they cannot be made.
struct layer {
  velo_dispatcher all = nullptr;
  velo_routing routing = nullptr;

  layer(velo_group group, std::int64_t experts, std::int32_t top_k) {
    velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
    desc.experts = experts, desc.top_k = top_k;
    if (velo_dispatcher_create(group, &desc, &all) == VELO_OK) velo_routing_create(all, &routing);
  }
  ~layer() {
    velo_routing_destroy(routing);
    velo_dispatcher_destroy(all);
  }
  layer(const layer&) = delete;
  layer& operator=(const layer&) = delete;
};

call_record create(velo_group group, std::int64_t experts, std::int32_t top_k) {
  velo_dispatcher_desc desc = VELO_DISPATCHER_DESC_INIT;
  desc.experts = experts, desc.top_k = top_k;
  velo_dispatcher made = nullptr;
  call_record record = record_of(velo_dispatcher_create(group, &desc, &made));
  CHECK(made == nullptr);
  return record;
}

}  // namespace

TEST_CASE("a dispatcher refuses experts that ranks cannot share, and choices there are none of") {
  const local_ranks ranks(2);
  for (const std::int64_t experts : {std::int64_t{0}, std::int64_t{-2}, std::int64_t{3},
                                     std::int64_t{1} << 21, INT64_MIN, INT64_MAX}) {
    const call_record record = create(ranks.group(0), experts, 1);
    CHECK(record.code == VELO_ERR_ARGUMENT);
    CHECK(record.argument == "desc.experts");
    CHECK(record.got == std::to_string(experts));
  }
  for (const std::int32_t top_k : {0, -1, 5, INT32_MIN, INT32_MAX}) {
    const call_record record = create(ranks.group(0), 4, top_k);
    CHECK(record.argument == "desc.top_k");
    CHECK(record.expected == "1 to 4, the experts");
  }
}

TEST_CASE(
    "a routing is set once, used after its rows are known, and free after its backward pass") {
  const local_ranks ranks(1);
  const layer of(ranks.group(0), 4, 2), other(ranks.group(0), 4, 2);
  const velo_stream stream = ranks.stream(0);
  std::int32_t chosen[] = {3, 0, -1, 3};
  const std::int64_t shape[] = {2, 2}, matrix_shape[] = {2, 3}, row_shape[] = {3, 3};
  const velo_tensor choices = view_of(chosen, i32, shape);
  float x[6] = {1, 2, 3, 4, 5, 6}, rows[9] = {}, dx[6] = {};
  const velo_tensor tokens = view_of(x, f32, matrix_shape), in = view_of(rows, f32, row_shape),
                    back = view_of(dx, f32, matrix_shape);
  std::int64_t all = -1, counts[4] = {};
  CHECK(velo_routing_get_rows(of.routing, counts, 4, &all) == VELO_ERR_STATE);
  CHECK(velo_dispatcher_dispatch(of.all, stream, of.routing, &tokens, &in) == VELO_ERR_STATE);
  REQUIRE(velo_routing_set(of.routing, stream, &choices) == VELO_OK);
  const call_record again = record_of(velo_routing_set(of.routing, stream, &choices));
  CHECK(again.code == VELO_ERR_STATE);
  CHECK(again.argument == "routing");
  REQUIRE(velo_routing_get_rows(of.routing, counts, 4, &all) == VELO_OK);
  CHECK(all == 3);
  CHECK(std::vector<std::int64_t>(counts, counts + 4) == std::vector<std::int64_t>{1, 0, 0, 2});
  const call_record wrong =
      record_of(velo_dispatcher_dispatch(other.all, stream, of.routing, &tokens, &in));
  CHECK(wrong.code == VELO_ERR_ARGUMENT);
  CHECK(wrong.expected == "a routing of this dispatcher");
  REQUIRE(velo_dispatcher_dispatch(of.all, stream, of.routing, &tokens, &in) == VELO_OK);
  CHECK(std::vector<float>(rows, rows + 9) == std::vector<float>{1, 2, 3, 1, 2, 3, 4, 5, 6});
  REQUIRE(velo_dispatcher_dispatch_backward(of.all, stream, of.routing, &in, &back) == VELO_OK);
  CHECK(std::vector<float>(dx, dx + 6) == std::vector<float>{2, 4, 6, 4, 5, 6});
  CHECK(velo_dispatcher_dispatch(of.all, stream, of.routing, &tokens, &in) == VELO_ERR_STATE);
  REQUIRE(velo_routing_set(of.routing, stream, &choices) == VELO_OK);
  REQUIRE(velo_routing_reset(of.routing) == VELO_OK);
  CHECK(velo_routing_get_rows(of.routing, nullptr, 0, &all) == VELO_ERR_STATE);
}

TEST_CASE("tensors that do not fit a routing are refused by name, and outputs stay") {
  const local_ranks ranks(1);
  const layer of(ranks.group(0), 4, 2);
  const velo_stream stream = ranks.stream(0);
  std::int32_t chosen[] = {3, 0, 1, 3};
  const std::int64_t shape[] = {2, 2}, three[] = {2, 3}, row_shape[] = {4, 3}, wide[] = {4, 4};
  float x[6] = {}, rows[16], w[4] = {};
  std::fill(std::begin(rows), std::end(rows), 7.0f);
  const velo_tensor choices = view_of(chosen, i32, shape);
  REQUIRE(velo_routing_set(of.routing, stream, &choices) == VELO_OK);
  std::int64_t all = 0;
  REQUIRE(velo_routing_get_rows(of.routing, nullptr, 0, &all) == VELO_OK);
  const velo_tensor tokens = view_of(x, f32, three), in = view_of(rows, f32, row_shape),
                    too_wide = view_of(rows, f32, wide), few = view_of(rows, f32, three),
                    narrow = view_of(rows, bf16, row_shape), weights = view_of(w, f32, shape),
                    whole = view_of(chosen, i32, row_shape);
  const auto dispatch = [&](const velo_tensor* from, const velo_tensor* to) {
    return record_of(velo_dispatcher_dispatch(of.all, stream, of.routing, from, to));
  };
  CHECK(dispatch(nullptr, &in).argument == "tokens");
  CHECK(dispatch(&in, &in).expected == "2 rows, one a token");
  CHECK(dispatch(&tokens, &few).expected == "4 rows, as velo_routing_get_rows gives");
  CHECK(dispatch(&tokens, &too_wide).expected == "3 columns");
  CHECK(dispatch(&tokens, &narrow).code == VELO_ERR_DTYPE);
  CHECK(dispatch(&whole, &in).code != VELO_OK);
  const call_record no_rows = record_of(velo_dispatcher_combine_backward(
      of.all, stream, of.routing, &tokens, nullptr, &weights, &in, &weights));
  CHECK(no_rows.code == VELO_ERR_NULL);
  CHECK(no_rows.argument == "rows");
  CHECK(std::count(std::begin(rows), std::end(rows), 7.0f) == 16);
}

TEST_CASE("a choice beyond the experts is named, and its rank by the others") {
  for (const bool queued : {false, true}) {
    const local_ranks ranks(3);
    std::vector<velo_stream> streams;
    for (int rank = 0; rank < 3; ++rank)
      streams.push_back(queued ? ranks.context(rank).new_stream() : ranks.stream(rank));
    const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
      const layer of(me.group, 6, 2);
      std::int32_t chosen[] = {3, 0, 1, me.rank == 1 ? 6 : 5};
      const std::int64_t shape[] = {2, 2};
      const velo_tensor choices = view_of(chosen, i32, shape);
      velo_status done = velo_routing_set(of.routing, streams[at(me.rank)], &choices);
      if (done == VELO_OK) done = velo_stream_synchronize(streams[at(me.rank)]);
      return done;
    });
    CHECK(ends[1].code == VELO_ERR_ARGUMENT);
    CHECK(ends[1].argument == "choices[1][1]");
    CHECK(ends[1].got == "6");
    for (const int rank : {0, 2}) {
      CHECK(ends[at(rank)].code == VELO_ERR_PEER);
      CHECK(ends[at(rank)].rank == 1);
    }
  }
}

TEST_CASE("ranks with another routing in a call are refused before rows move") {
  const local_ranks ranks(2);
  const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
    const layer of(me.group, 4, 1);
    velo_routing second = nullptr;
    velo_routing_create(of.all, &second);
    std::int32_t chosen[][2] = {{0, 3}, {2, 2}};
    const std::int64_t shape[] = {2, 1};
    const velo_routing both[] = {of.routing, second};
    velo_status done = VELO_OK;
    std::int64_t rows[2] = {};
    for (int i = 0; i < 2 && done == VELO_OK; ++i) {
      const velo_tensor choices = view_of(chosen[i], i32, shape);
      done = velo_routing_set(both[i], me.stream, &choices);
      if (done == VELO_OK) done = velo_routing_get_rows(both[i], nullptr, 0, &rows[i]);
    }
    const matrix x(f32, {2, 5}, 1), in(f32, {rows[me.rank], 5});
    const velo_tensor from = x.view(), to = in.view();
    if (done == VELO_OK)
      done = velo_dispatcher_dispatch(of.all, me.stream, both[me.rank], &from, &to);
    velo_routing_destroy(second);
    return done;
  });
  for (const call_record& one : ends) CHECK(one.code == VELO_ERR_PEER);
}

TEST_CASE("an abort in the middle of dispatches ends every rank's call, and names the rank") {
  const local_ranks ranks(3);
  std::atomic<int> calls{0};
  std::atomic<bool> over{false};
  std::thread aborts([&] {
    while (calls < 5 && !over) std::this_thread::yield();
    velo_group_abort(ranks.group(2));
  });
  const micro_batch of(60, 2, 24, 40, f32, 1);
  const pass_inputs in(of);
  const std::vector<call_record> ends = ranks.run([&](const rank_of_group& me) {
    for (;; ++calls) {
      pass_results into(of);
      rank_pass pass(of, in, me);
      const velo_status done = pass.run(me.stream, into);
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

TEST_CASE("a thousand layers, routings and passes leave nothing behind") {
  const local_ranks ranks(1);
  const micro_batch of(9, 2, 24, 8, f32, 1);
  const pass_inputs in(of);
  for (int cycle = 0; cycle < 1000; ++cycle) {
    pass_results into(of);
    rank_pass pass(of, in, ranks.rank(0));
    REQUIRE(pass.run(ranks.stream(0), into) == VELO_OK);
  }
}
