// Products next to collectives: against product and collective one after the other, bit for bit, at
// every level and over sizes that fill pieces and slices or do not; their place in the order of a
// group; what ends them. Ranks are threads, and processes once.
#include <cmath>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"
#include "tests/stream_work.hpp"
#include "tests/tensors.hpp"

using namespace velo::testing;

namespace {

// A rank's operands, and its results from fused and composed calls.
struct layer {
  matrix x, weight, y, composed;
  bool transposed;
  std::int64_t slices = 2;  // few rows would not be sliced unasked
  const matrix* bias = nullptr;

  layer(velo_dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k, int rank,
        bool transpose = false)
      : x(dtype, {m, k}, 2 * rank),
        weight(dtype, transpose ? std::vector<std::int64_t>{n, k} : std::vector<std::int64_t>{k, n},
               2 * rank + 1),
        y(dtype, {m, n}),
        composed(dtype, {m, n}),
        transposed(transpose) {}

  velo_status run_fused(velo_stream stream, velo_group group) const {
    const velo_tensor in = x.view(), by = weight.view(), out = y.view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = group, args.x = &in, args.weight = &by, args.y = &out;
    args.transpose_weight = transposed, args.parallel_num = slices;
    const velo_tensor added = bias == nullptr ? velo_tensor{} : bias->view();
    if (bias != nullptr) args.bias = &added;
    return velo_matmul_all_reduce(stream, &args);
  }
  velo_status run_composed(velo_stream stream, velo_group group) const {
    const velo_tensor in = x.view(), by = weight.view(), out = composed.view();
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &in, args.b = &by, args.c = &out, args.transpose_b = transposed;
    const velo_status done = velo_matmul(stream, &args);
    return done != VELO_OK ? done : velo_group_all_reduce(stream, group, nullptr, &out, &out);
  }
};

using layers = std::vector<std::unique_ptr<layer>>;
layers make_layers(int ranks, velo_dtype dtype, std::int64_t m, std::int64_t n, std::int64_t k,
                   bool transpose = false) {
  layers all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<layer>(dtype, m, n, k, rank, transpose));
  return all;
}
const layer& of(const layers& all, int rank) {
  return *all[at(rank)];
}

// The sum over ranks in double, and of the magnitudes of what it is made of.
void require_close(const layers& all, double bound) {
  const layer& first = of(all, 0);
  const velo_tensor x = first.x.view(), y = first.y.view();
  const std::int64_t k = x.shape[1], n = y.shape[1];
  double largest = 0, worst = 0;
  for (std::int64_t i = 0; i < first.y.count(); ++i) {
    double exact = 0;
    for (const auto& one : all)
      for (std::int64_t d = 0; d < k; ++d)
        exact +=
            one->x[i / n * k + d] * one->weight[one->transposed ? i % n * k + d : d * n + i % n];
    largest = std::max(largest, std::abs(exact));
    worst = std::max(worst, std::abs(first.y[i] - exact));
  }
  CHECK(worst <= bound * largest);
}

void run_all(const local_ranks& ranks, const layers& all) {
  ranks.require(
      [&](const rank_of_group& me) { return of(all, me.rank).run_fused(me.stream, me.group); });
}

void require_equal(const local_ranks& ranks, const layers& all) {
  run_all(ranks, all);
  ranks.require(
      [&](const rank_of_group& me) { return of(all, me.rank).run_composed(me.stream, me.group); });
  for (int rank = 0; rank < ranks.size(); ++rank) {
    CHECK(of(all, rank).y.same_bits(of(all, rank).composed));
    CHECK(of(all, rank).y.same_bits(of(all, 0).y));
    CHECK(of(all, rank).y.borders_kept());
  }
}

// The kernel that a call would run, as velo_op_explain says.
std::string explained(velo_context context, const layer& one, velo_group group) {
  const velo_tensor in = one.x.view(), by = one.weight.view();
  velo_named_value values[4] = {};
  values[0].name = "group", values[0].value.kind = VELO_VALUE_HANDLE;
  values[0].value.as.p = group;
  values[1].name = "x", values[1].value.kind = VELO_VALUE_TENSOR, values[1].value.as.tensor = &in;
  values[2].name = "weight", values[2].value.kind = VELO_VALUE_TENSOR;
  values[2].value.as.tensor = &by;
  values[3].name = "parallel_num", values[3].value.kind = VELO_VALUE_INT;
  values[3].value.as.i = one.slices;
  char text[2048] = "";
  REQUIRE(velo_op_explain(context, "matmul_all_reduce", values, 4, text, sizeof text, nullptr) ==
          VELO_OK);
  return text;
}

bool is_chosen(const std::string& text, const std::string& kernel) {
  const std::size_t at = text.find(R"("name":")" + kernel + "\"");
  return at != std::string::npos &&
         text.find(R"("chosen":true)", at) < text.find(R"("reason")", at);
}

// VELO_ISA rules over what a test sets.
bool is_isa_given(velo_context context) {
  const char* origin = nullptr;
  REQUIRE(velo_config_get(context, "isa", nullptr, 0, nullptr, &origin) == VELO_OK);
  return std::string(origin) == "environment";
}

}  // namespace

TEST_CASE("matmul_all_reduce has the bits of product and collective, at levels 1 and 2") {
  for (const int count : {1, 2, 3, 4}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 16 << 10;  // many pieces a slice
    const local_ranks ranks(count, desc);
    for (const char* level : {"2", "1"}) {
      set_all(ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t m : {0, 1, 7, 64, 300})
          for (const bool transpose : {false, true}) {
            INFO(count << " ranks, level " << level << ", dtype " << int{dtype.code} << "."
                       << int{dtype.bits} << ", m " << m << ", transposed " << transpose);
            require_equal(ranks, make_layers(count, dtype, m, 72, 40, transpose));
          }
    }
  }
}

// Sizes at which each rank's slices are worth more than a thread.
TEST_CASE("eight ranks and ranks of several threads get the same bits, with every kernel") {
  for (const auto& [count, threads] : {std::pair{8, 1}, {2, 3}, {3, 2}}) {
    const local_ranks ranks(count, group_desc(), threads);
    const bool is_given = is_isa_given(ranks.context(0));
    for (const char* highest : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) {
      if (!is_given) set_all(ranks, "isa", highest);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t m : {5, 400}) {
          INFO(count << " ranks, " << threads << " threads, up to " << highest << ", "
                     << "dtype " << int{dtype.code} << "." << int{dtype.bits} << ", m " << m);
          require_equal(ranks, make_layers(count, dtype, m, 200, 100));
        }
    }
  }
}

TEST_CASE("any number of slices gives the same bits") {
  const local_ranks ranks(3);
  for (const std::int64_t slices : {0, 1, 2, 3, 7, 1024})
    for (const std::int64_t m : {5, 100, 700}) {
      const layers all = make_layers(3, m == 100 ? bf16 : f32, m, 100, 30);
      for (const auto& one : all) one->slices = slices;
      INFO(slices << " slices of " << m << " rows");
      require_equal(ranks, all);
    }
}

TEST_CASE("slices larger and smaller than pieces, empty sizes and long rows") {
  for (const std::uint64_t buffer : {8 << 10, 512 << 10}) {
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;
    const local_ranks ranks(2, desc);
    for (const auto& [m, n, k] : {std::tuple{200, 1, 300},
                                  {65, 3001, 5},
                                  {500, 100, 0},
                                  {3, 0, 8},
                                  {129, 257, 64},
                                  {1, 40000, 2}}) {
      INFO(buffer << ": " << m << " " << n << " " << k);
      require_equal(ranks, make_layers(2, f32, m, n, k));
    }
  }
}

// With every kernel, since panels are lines in some.
TEST_CASE("rows that are lines, and panels of columns at their end, give the same bits") {
  for (const int count : {2, 3}) {
    const local_ranks ranks(count);
    const bool is_given = is_isa_given(ranks.context(0));
    for (const char* highest : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) {
      if (!is_given) set_all(ranks, "isa", highest);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t n : {16, 96, 128, 512}) {
          INFO(count << " ranks, up to " << highest << ", dtype " << int{dtype.code} << "."
                     << int{dtype.bits} << ", n " << n);
          require_equal(ranks, make_layers(count, dtype, 150, n, 24));
        }
    }
  }
}

TEST_CASE("matmul_all_reduce is the sum of the ranks' products, at every level") {
  for (const char* level : {"0", "1", "2"}) {
    const local_ranks ranks(3);
    set_all(ranks, "level", level);
    for (const auto& [dtype, bound] : {std::pair{f32, 2e-6},
                                       {bf16, 0.0078125 + 0.00390625},
                                       {f16, 0.0009765625 + 0.00048828125}}) {
      const layers all = make_layers(3, dtype, 130, 33, 70);
      ranks.require(
          [&](const rank_of_group& me) { return of(all, me.rank).run_fused(me.stream, me.group); });
      INFO("level " << level << ", dtype " << int{dtype.code} << "." << int{dtype.bits});
      require_close(all, bound);
    }
  }
}

TEST_CASE("a bias is added once, to the rounded sum") {
  for (const int count : {1, 2, 3}) {
    const local_ranks ranks(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const bool wide : {false, true}) {
          const layers all = make_layers(count, dtype, 130, 33, 24);
          run_all(ranks, all);
          const matrix& sum = of(all, 0).y;
          const matrix bias(wide ? f32 : dtype, {33}, 99);
          matrix expected(dtype, {130, 33});
          for (std::int64_t i = 0; i < sum.count(); ++i)
            expected.set(i, static_cast<float>(sum[i]) + static_cast<float>(bias[i % 33]));
          for (const auto& one : all) one->bias = &bias;
          run_all(ranks, all);
          INFO(count << " ranks, level " << level << ", dtype " << int{dtype.code} << "."
                     << int{dtype.bits} << ", float32 bias " << wide);
          for (const auto& one : all) CHECK(one->y.same_bits(expected));
        }
    }
  }
}

TEST_CASE("level 2 slices, levels 0 and 1 do not, and velo_op_explain says so") {
  const local_ranks ranks(2);
  const layer one(f32, 4, 4, 4, 0);
  CHECK(is_chosen(explained(ranks.context(0), one, ranks.group(0)), "sliced"));
  const std::string alone = explained(ranks.context(0), one, nullptr);
  CHECK(is_chosen(alone, "composition"));
  CHECK(alone.find("the group has one rank") != std::string::npos);
  layer few(f32, 512, 4, 4, 0), many(f32, 513, 4, 4, 0), whole(f32, 513, 4, 4, 0);
  few.slices = many.slices = 0, whole.slices = 1;
  const std::string unasked = explained(ranks.context(0), few, ranks.group(0));
  CHECK(is_chosen(unasked, "composition"));
  CHECK(unasked.find("512 rows or fewer") != std::string::npos);
  CHECK(is_chosen(explained(ranks.context(0), many, ranks.group(0)), "sliced"));
  const std::string asked = explained(ranks.context(0), whole, ranks.group(0));
  CHECK(is_chosen(asked, "composition"));
  CHECK(asked.find("one slice is asked for") != std::string::npos);
  set_all(ranks, "level", "1");
  const std::string composed = explained(ranks.context(0), one, ranks.group(0));
  CHECK(is_chosen(composed, "composition"));
  CHECK(composed.find("needs optimization level 2") != std::string::npos);
  set_all(ranks, "level", "0");
  CHECK(is_chosen(explained(ranks.context(0), one, ranks.group(0)), "reference"));
}

TEST_CASE("on queues it has its place among the collectives, whatever streams they are on") {
  const local_ranks ranks(2);
  const layers all = make_layers(2, f32, 150, 64, 32);
  std::vector<velo_stream> computes, talks;
  for (int rank = 0; rank < 2; ++rank) {
    computes.push_back(ranks.context(rank).new_stream());
    talks.push_back(ranks.context(rank).new_stream());
  }
  std::vector<std::vector<float>> sums(2, std::vector<float>(5000, 1));
  constexpr int rounds = 50;
  ranks.require([&](const rank_of_group& me) {
    velo_reduction mean = VELO_REDUCTION_INIT;
    mean.op = VELO_REDUCE_AVG;
    for (int i = 0; i < rounds; ++i) {
      velo_status done = of(all, me.rank).run_fused(computes[at(me.rank)], me.group);
      if (done == VELO_OK)
        done = reduce_in_place(talks[at(me.rank)], me.group, sums[at(me.rank)], &mean);
      if (done != VELO_OK) return done;
    }
    const velo_status done = velo_stream_synchronize(computes[at(me.rank)]);
    return done != VELO_OK ? done : velo_stream_synchronize(talks[at(me.rank)]);
  });
  CHECK(sums[1][4999] == 1);
  ranks.require(
      [&](const rank_of_group& me) { return of(all, me.rank).run_composed(me.stream, me.group); });
  for (int rank = 0; rank < 2; ++rank) CHECK(of(all, rank).y.same_bits(of(all, rank).composed));
}

// Each rank begins with the group that the other ends with: a call that kept others from computing
// while it waits would wait for ever.
TEST_CASE("calls of two groups in opposite orders wait for each other without harm") {
  const two_groups both(2, group_desc(10000));
  const local_ranks& ranks = both.ranks;
  const layers first = make_layers(2, f32, 150, 64, 32), second = make_layers(2, f32, 90, 64, 32);
  for (const char* level : {"2", "1"}) {
    set_all(ranks, "level", level);
    std::vector<velo_stream> one, two;
    for (int rank = 0; rank < 2; ++rank) {
      one.push_back(ranks.context(rank).new_stream());
      two.push_back(ranks.context(rank).new_stream());
    }
    ranks.require([&](const rank_of_group& me) {
      const auto call = [&](bool early) {
        return early ? of(first, me.rank).run_fused(one[at(me.rank)], me.group)
                     : of(second, me.rank).run_fused(two[at(me.rank)], both.second(me.rank));
      };
      velo_status done = call(me.rank == 0);
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (done == VELO_OK) done = call(me.rank != 0);
      if (done == VELO_OK) done = velo_stream_synchronize(one[at(me.rank)]);
      return done == VELO_OK ? velo_stream_synchronize(two[at(me.rank)]) : done;
    });
  }
}

TEST_CASE("a fault that ends a group ends matmul_all_reduce, with its name and the culprits") {
  for (const char* level : {"2", "1"}) {
    INFO("level " << level);
    const local_ranks ranks(3, group_desc(200));
    set_all(ranks, "level", level);
    const layers all = make_layers(3, f32, 300, 64, 32);
    SECTION(std::string("a rank that does not come, level ") + level) {
      const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
        return me.rank == 1 ? velo_status{VELO_OK}
                            : of(all, me.rank).run_fused(me.stream, me.group);
      });
      CHECK(failures[0].code == VELO_ERR_PEER);
      CHECK(failures[0].rank == 1);
      CHECK(failures[0].expected.find("all_reduce of 19200 float32") == 0);
      CHECK(failures[2].got == "rank 1 not there");
    }
    SECTION(std::string("abort from another thread, level ") + level) {
      const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
        if (me.rank != 1) return of(all, me.rank).run_fused(me.stream, me.group);
        std::this_thread::sleep_for(std::chrono::milliseconds(30));
        return velo_group_abort(ranks.group(1));
      });
      CHECK(failures[0].code == VELO_ERR_PEER);
      CHECK(failures[0].rank == 1);
      CHECK(failures[2].code == VELO_ERR_PEER);
    }
    SECTION(std::string("other sizes on one rank, level ") + level) {
      const layer other(f32, 299, 64, 32, 1);
      const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
        const layer& mine = me.rank == 1 ? other : of(all, me.rank);
        return mine.run_fused(me.stream, me.group);
      });
      CHECK(failures[0].code == VELO_ERR_PEER);
      CHECK(failures[0].rank == 1);
      CHECK(failures[0].got.find("all_reduce of 19136 float32") != std::string::npos);
    }
    SECTION(std::string("dropped with its stream, level ") + level) {
      const velo_stream queue = ranks.context(1).new_stream();
      std::atomic<bool> go{false};
      hold(queue, go);
      queue_failure(queue);
      REQUIRE(of(all, 1).run_fused(queue, ranks.group(1)) == VELO_OK);
      const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
        if (me.rank != 1) return of(all, me.rank).run_fused(me.stream, me.group);
        go = true;
        return velo_status{VELO_OK};
      });
      CHECK(velo_stream_synchronize(queue) == VELO_ERR_IO);
      CHECK(failures[0].code == VELO_ERR_PEER);
      CHECK(failures[0].rank == 1);
      CHECK(failures[2].cause == "a failure of its stream before");
    }
  }
}

TEST_CASE("ranks at different levels are refused instead of mixing pieces and slices") {
  const local_ranks ranks(2, group_desc(2000));
  REQUIRE(velo_config_set(ranks.context(1), "level", "1") == VELO_OK);
  const layers all = make_layers(2, f32, 100, 64, 32);
  const std::vector<call_record> failures = ranks.run(
      [&](const rank_of_group& me) { return of(all, me.rank).run_fused(me.stream, me.group); });
  CHECK(failures[0].code == VELO_ERR_PEER);
  CHECK(failures[1].code == VELO_ERR_PEER);
  CHECK(failures[0].expected != failures[0].got);
}

TEST_CASE("matmul_all_reduce names what is wrong with its arguments") {
  const local_ranks ranks(2);
  layer one(f32, 4, 6, 8, 0);
  CHECK_REFUSED(one.run_fused(ranks.stream(0), ranks.group(1)), VELO_ERR_ARGUMENT, "args.group");
  CHECK_REFUSED(one.run_fused(ranks.stream(0), reinterpret_cast<velo_group>(ranks.stream(0))),
                VELO_ERR_HANDLE, "args.group");
  layer narrow(f32, 4, 6, 8, 0);
  const velo_tensor x = narrow.x.view(), y = narrow.y.view();
  const matrix other_dtype(bf16, {8, 6}), other_depth(f32, {7, 6}), other_rank(f32, {2, 4, 6}),
      other_shape(f32, {4, 7});
  const auto call = [&](const velo_tensor& weight, const velo_tensor& out) {
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = ranks.group(0), args.x = &x, args.weight = &weight, args.y = &out;
    return record_of(velo_matmul_all_reduce(ranks.stream(0), &args));
  };
  CHECK_REFUSED(call(other_dtype.view(), y), VELO_ERR_DTYPE, "args.weight.dtype");
  CHECK_REFUSED(call(other_depth.view(), y), VELO_ERR_SHAPE, "args.weight.shape");
  CHECK_REFUSED(call(other_rank.view(), y), VELO_ERR_RANK, "args.weight.ndim");
  CHECK_REFUSED(call(narrow.weight.view(), other_shape.view()), VELO_ERR_SHAPE, "args.y.shape");
  const matrix long_bias(f32, {7}), half_bias(f16, {6});
  for (const auto& [bias, status, field] :
       {std::tuple{&long_bias, VELO_ERR_SHAPE, "args.bias.shape"},
        {&half_bias, VELO_ERR_DTYPE, "args.bias.dtype"}}) {
    one.bias = bias;
    CHECK_REFUSED(one.run_fused(ranks.stream(0), ranks.group(0)), status, field);
  }
  for (const std::int64_t slices : {-1, 1025}) {
    layer wrong(f32, 4, 6, 8, 0);
    wrong.slices = slices;
    CHECK_REFUSED(wrong.run_fused(ranks.stream(0), ranks.group(0)), VELO_ERR_ARGUMENT,
                  "args.parallel_num");
  }
  // None of these calls reached the other rank.
  require_equal(ranks, make_layers(2, f32, 4, 6, 8));
}

TEST_CASE("processes get the bits of product and collective, too") {
  processes ranks;
  velo_group_desc desc = group_desc();
  desc.buffer = 32 << 10;
  ranks.start_all(2, desc, [](const rank_of_group& me) {
    ending all;
    for (const velo_dtype dtype : {f32, bf16, f16})
      for (const auto& [m, n] : {std::pair{300, 70}, {700, 512}, {64, 96}}) {
        const layer one(dtype, m, n, 50, me.rank);
        velo_status done = one.run_fused(me.stream, me.group);
        if (done == VELO_OK) done = one.run_composed(me.stream, me.group);
        if (done != VELO_OK) return ending_of(done);
        all.value += one.y.same_bits(one.composed) && one.y.borders_kept() ? 0 : 1;
      }
    all.code = VELO_OK;
    return all;
  });
  check_right(ranks.wait());
}
