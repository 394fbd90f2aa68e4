// matmul_all_reduce_add_rms_norm: against sums and norms in double, over ranks, dtypes and levels;
// against the calls apart, bit for bit; biases of some ranks; quantized weights; in place; what it
// refuses and what ends it. Ranks are threads, and processes once.
#include <cmath>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

struct sizes {
  std::int64_t m = 60, n = 72, k = 40;
};

// A rank's operands and results. Residuals differ between ranks, as they may.
struct layer {
  sizes of;
  matrix x, weight, bias, residual, gamma, y, norm, rstd;
  bool transposed, has_bias = false, in_place = false;
  std::int64_t slices = 3;
  double epsilon = 1e-5;

  layer(velo_dtype dtype, const sizes& s, int rank, bool transpose = false, bool wide = false)
      : of(s),
        x(dtype, {s.m, s.k}, 5 * rank),
        weight(
            dtype,
            transpose ? std::vector<std::int64_t>{s.n, s.k} : std::vector<std::int64_t>{s.k, s.n},
            5 * rank + 1),
        bias(rank % 2 == 0 ? dtype : f32, {s.n}, 5 * rank + 2),
        residual(wide ? f32 : dtype, {1, s.m, s.n}, 5 * rank + 3),
        gamma(wide ? f32 : dtype, {s.n}, 4),
        y(wide ? f32 : dtype, {1, s.m, s.n}),
        norm(dtype, {1, s.m, s.n}),
        rstd(f32, {1, s.m, 1}),
        transposed(transpose) {}

  velo_status run(velo_stream stream, velo_group group) const {
    const velo_tensor in = x.view(), by = weight.view(), added = bias.view(),
                      other = residual.view(), gain = gamma.view(), sum = y.view(),
                      out = norm.view(), root = rstd.view();
    velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
    args.group = group, args.x = &in, args.weight = &by, args.residual = &other;
    args.gamma = &gain, args.norm_out = &out, args.rstd = &root;
    args.y = in_place ? &other : &sum;
    if (has_bias) args.bias = &added;
    args.transpose_weight = transposed, args.epsilon = epsilon, args.parallel_num = slices;
    return velo_matmul_all_reduce_add_rms_norm(stream, &args);
  }
};

// The results of the calls apart, without a bias.
struct apart {
  matrix y, norm, rstd;
  explicit apart(const layer& of)
      : y(of.y.view().dtype, {1, of.of.m, of.of.n}),
        norm(of.norm.view().dtype, {1, of.of.m, of.of.n}),
        rstd(f32, {1, of.of.m, 1}) {}

  velo_status run(const layer& of, velo_stream stream, velo_group group) const {
    const std::int64_t folded[] = {of.of.m, of.of.n};
    const velo_tensor in = of.x.view(), by = of.weight.view(), other = of.residual.view(),
                      gain = of.gamma.view(), z = y.view(), out = norm.view(), root = rstd.view();
    velo_tensor sum = out;
    sum.ndim = 2, sum.shape = folded;
    velo_matmul_all_reduce_args first = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    first.group = group, first.x = &in, first.weight = &by, first.y = &sum;
    first.transpose_weight = of.transposed, first.parallel_num = of.slices;
    velo_status done = velo_matmul_all_reduce(stream, &first);
    velo_dropout_add_rms_norm_args then = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
    then.x = &out, then.residual = &other, then.gamma = &gain, then.y = &out;
    then.pre_norm = &z, then.rstd = &root, then.epsilon = of.epsilon;
    if (done == VELO_OK) done = velo_dropout_add_rms_norm(stream, &then);
    return done;
  }
  bool equals(const layer& of) const {
    return norm.same_bits(of.norm) && y.same_bits(of.in_place ? of.residual : of.y) &&
           rstd.same_bits(of.rstd);
  }
};

using layers = std::vector<std::unique_ptr<layer>>;
layers make_layers(int ranks, velo_dtype dtype, const sizes& s, bool transpose = false,
                   bool wide = false) {
  layers all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<layer>(dtype, s, rank, transpose, wide));
  return all;
}

void run_all(const local_ranks& ranks, const layers& all) {
  ranks.require(
      [&](const rank_of_group& me) { return all[at(me.rank)]->run(me.stream, me.group); });
}

// The sums of the ranks' products and biases in double.
std::vector<double> exact_sums(const layers& all) {
  const sizes s = all[0]->of;
  std::vector<double> sums(at(s.m * s.n));
  for (const auto& one : all)
    for (std::int64_t i = 0; i < s.m * s.n; ++i) {
      const std::int64_t column = i % s.n;
      double& sum = sums[at(i)];
      if (one->has_bias) sum += one->bias[column];
      for (std::int64_t d = 0; d < s.k; ++d)
        sum += one->x[i / s.n * s.k + d] *
               one->weight[one->transposed ? column * s.k + d : d * s.n + column];
    }
  return sums;
}

// The largest errors of a rank's y, norm and rstd, as shares of the largest exact value of each.
struct errors {
  double y = 0, norm = 0, rstd = 0;
  double worst() const { return std::max({y, norm, rstd}); }
};
errors errors_of(const layer& one, const std::vector<double>& sums) {
  const sizes s = one.of;
  double largest_y = 0, largest_norm = 0, largest_rstd = 0;
  errors found;
  const auto note = [](double got, double exact, double& error, double& largest) {
    error = std::max(error, std::isnan(got) ? 1e30 : std::abs(got - exact));
    largest = std::max(largest, std::abs(exact));
  };
  for (std::int64_t row = 0; row < s.m; ++row) {
    std::vector<double> z(at(s.n));
    double squares = 0;
    for (std::int64_t j = 0; j < s.n; ++j) {
      z[at(j)] = sums[at(row * s.n + j)] + one.residual[row * s.n + j];
      squares += z[at(j)] * z[at(j)];
    }
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(s.n) + one.epsilon);
    note(one.rstd[row], rstd, found.rstd, largest_rstd);
    for (std::int64_t j = 0; j < s.n; ++j) {
      note(one.y[row * s.n + j], z[at(j)], found.y, largest_y);
      note(one.norm[row * s.n + j], z[at(j)] * rstd * one.gamma[j], found.norm, largest_norm);
    }
  }
  return {found.y / largest_y, found.norm / largest_norm, found.rstd / largest_rstd};
}

void require_close(const layers& all, double bound) {
  const std::vector<double> sums = exact_sums(all);
  for (const auto& one : all) {
    const errors found = errors_of(*one, sums);
    INFO(found.y << " " << found.norm << " " << found.rstd);
    CHECK(found.worst() <= bound);
    CHECK((one->y.borders_kept() && one->norm.borders_kept() && one->rstd.borders_kept()));
  }
}

constexpr std::pair<velo_dtype, double> dtypes[] = {
    {f32, 4e-6}, {bf16, 0.015625}, {f16, 0.001953125}};

std::string name_of(velo_dtype dtype) {
  return std::to_string(dtype.code) + "." + std::to_string(dtype.bits);
}

void require_bits_of_calls_apart(const local_ranks& ranks, const layers& all) {
  std::vector<std::unique_ptr<apart>> others;
  for (const auto& one : all) others.push_back(std::make_unique<apart>(*one));
  ranks.require([&](const rank_of_group& me) {
    return others[at(me.rank)]->run(*all[at(me.rank)], me.stream, me.group);
  });
  run_all(ranks, all);
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    CHECK(others[rank]->equals(*all[rank]));
    CHECK(all[rank]->norm.borders_kept());
  }
}

}  // namespace

TEST_CASE("sums, residual and norm are those of double, over ranks, levels and dtypes") {
  for (const int count : {1, 2, 3, 4, 8}) {
    const local_ranks ranks(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(ranks, "level", level);
      for (const auto& [dtype, bound] : dtypes)
        for (const bool transpose : {false, true})
          for (const bool wide : {false, true}) {
            INFO(count << " ranks, level " << level << ", dtype " << name_of(dtype)
                       << ", transposed " << transpose << ", float32 residual " << wide);
            const layers all = make_layers(count, dtype, {}, transpose, wide);
            run_all(ranks, all);
            require_close(all, bound);
          }
    }
  }
}

TEST_CASE("each rank's bias is in the sum of all, whichever ranks have one") {
  for (const int count : {1, 2, 3}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 8 << 10;  // whose slots hold a part of the biases
    const local_ranks ranks(count, desc);
    for (const char* level : {"0", "1", "2"}) {
      set_all(ranks, "level", level);
      for (const auto& [dtype, bound] : dtypes)
        for (int with = 1; with < 1 << count; ++with) {
          INFO(count << " ranks, level " << level << ", dtype " << name_of(dtype) << ", ranks "
                     << with);
          const layers all = make_layers(count, dtype, {40, 1500, 8});
          for (int rank = 0; rank < count; ++rank) all[at(rank)]->has_bias = (with >> rank) & 1;
          run_all(ranks, all);
          require_close(all, bound);
        }
    }
  }
}

TEST_CASE("matmul_all_reduce and dropout_add_rms_norm give the same bits") {
  for (const int count : {1, 2, 3, 4}) {
    velo_group_desc desc = group_desc();
    desc.buffer = 16 << 10;  // slices of some columns, and many of them
    const local_ranks ranks(count, desc);
    for (const char* level : {"2", "1"}) {
      set_all(ranks, "level", level);
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t m : {0, 1, 7, 64, 300})
          for (const std::int64_t n : {72, 400}) {
            INFO(count << " ranks, level " << level << ", dtype " << name_of(dtype) << ", " << m
                       << " x " << n);
            require_bits_of_calls_apart(ranks, make_layers(count, dtype, {m, n, 24}, true, n > 72));
          }
    }
  }
}

TEST_CASE("any number of slices, ranks of several threads and empty sizes give the same bits") {
  for (const auto& [count, threads] : {std::pair{8, 1}, {2, 3}}) {
    const local_ranks ranks(count, group_desc(), threads);
    for (const std::int64_t slices : {0, 1, 2, 7, 1024}) {
      const layers all = make_layers(count, bf16, {700, 100, 30});
      for (const auto& one : all) one->slices = slices;
      INFO(count << " ranks, " << slices << " slices");
      require_bits_of_calls_apart(ranks, all);
    }
    for (const sizes& s : {sizes{500, 100, 0}, {3, 0, 8}, {129, 1, 64}}) {
      INFO(s.m << " " << s.n << " " << s.k);
      require_bits_of_calls_apart(ranks, make_layers(count, f32, s));
    }
  }
}

TEST_CASE("the sum may be written over the residual") {
  const local_ranks ranks(3);
  for (const char* level : {"0", "1", "2"}) {
    set_all(ranks, "level", level);
    for (const velo_dtype dtype : {f32, bf16, f16}) {
      const layers apart_from = make_layers(3, dtype, {300, 96, 16}),
                   all = make_layers(3, dtype, {300, 96, 16});
      run_all(ranks, apart_from);
      for (const auto& one : all) one->in_place = true;
      run_all(ranks, all);
      for (std::size_t rank = 0; rank < 3; ++rank) {
        CHECK(all[rank]->residual.same_bits(apart_from[rank]->y));
        CHECK(all[rank]->norm.same_bits(apart_from[rank]->norm));
        CHECK(all[rank]->residual.borders_kept());
      }
    }
  }
}

TEST_CASE("a quantized weight is multiplied as weight_quant_matmul does, then summed and normed") {
  constexpr std::int64_t m = 600, n = 48, k = 64;
  const local_ranks ranks(2);
  for (const char* level : {"0", "1", "2"}) {
    set_all(ranks, "level", level);
    for (const bool pairs : {false, true}) {
      std::vector<std::uint8_t> integers(at(k * n), 0);
      for (std::size_t i = 0; i < integers.size(); ++i)
        integers[i] = static_cast<std::uint8_t>(i * 37 + 11);
      const std::int64_t stored[] = {k, pairs ? n / 2 : n};
      const velo_tensor weight = view_of(integers.data(), pairs ? u8 : i8, stored);
      const matrix scale(f32, {2, n}, 8), offset(f32, {2, n}, 9);
      std::vector<std::unique_ptr<layer>> fused;
      std::vector<std::unique_ptr<matrix>> norms;
      for (int rank = 0; rank < 2; ++rank) {
        fused.push_back(std::make_unique<layer>(bf16, sizes{m, n, k}, rank));
        norms.push_back(std::make_unique<matrix>(bf16, std::vector<std::int64_t>{1, m, n}));
      }
      ranks.require([&](const rank_of_group& me) {
        const layer& one = *fused[at(me.rank)];
        const velo_tensor x = one.x.view(), residual = one.residual.view(),
                          gamma = one.gamma.view(), y = one.y.view(), out = one.norm.view(),
                          scales = scale.view(), offsets = offset.view(),
                          other = norms[at(me.rank)]->view();
        velo_matmul_all_reduce_add_rms_norm_args args =
            VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
        args.group = me.group, args.x = &x, args.weight = &weight, args.residual = &residual;
        args.gamma = &gamma, args.y = &y, args.norm_out = &out, args.scale = &scales;
        args.offset = &offsets, args.epsilon = 1e-5;
        velo_status done = velo_matmul_all_reduce_add_rms_norm(me.stream, &args);
        const std::int64_t folded[] = {m, n};
        velo_tensor sum = other;
        sum.ndim = 2, sum.shape = folded;
        velo_weight_quant_matmul_args product = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
        product.x = &x, product.weight = &weight, product.scale = &scales;
        product.offset = &offsets, product.y = &sum;
        if (done == VELO_OK) done = velo_weight_quant_matmul(me.stream, &product);
        if (done == VELO_OK) done = velo_group_all_reduce(me.stream, me.group, nullptr, &sum, &sum);
        velo_dropout_add_rms_norm_args then = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
        then.x = then.y = &other, then.residual = &residual, then.gamma = &gamma;
        then.epsilon = 1e-5;
        return done == VELO_OK ? velo_dropout_add_rms_norm(me.stream, &then) : done;
      });
      INFO("level " << level << ", int4 " << pairs);
      for (std::size_t rank = 0; rank < 2; ++rank) {
        CHECK(fused[rank]->norm.same_bits(*norms[rank]));
        CHECK(fused[rank]->norm[m * n - 1] != 0);
      }
    }
  }
}

TEST_CASE("level 2 slices it, but for a quantized weight, and velo_op_explain says why") {
  const local_ranks ranks(2);
  const layer one(f32, {4, 6, 32}, 0);
  const matrix scale(f32, {6}, 1);
  std::vector<std::int8_t> integers(32 * 6, 1);
  const std::int64_t stored[] = {32, 6};
  const velo_tensor x = one.x.view(), plain = one.weight.view(), residual = one.residual.view(),
                    gamma = one.gamma.view(), scales = scale.view(),
                    quantized = view_of(integers.data(), i8, stored);
  const auto explained = [&](const velo_tensor& weight, bool scaled) {
    velo_named_value values[7] = {};
    const std::pair<const char*, const velo_tensor*> tensors[] = {
        {"x", &x},
        {"weight", &weight},
        {"residual", &residual},
        {"gamma", &gamma},
        {"scale", scaled ? &scales : nullptr}};
    for (std::size_t i = 0; i < 5; ++i) {
      values[i].name = tensors[i].first, values[i].value.kind = VELO_VALUE_TENSOR;
      values[i].value.as.tensor = tensors[i].second;
    }
    values[5].name = "group", values[5].value.kind = VELO_VALUE_HANDLE;
    values[5].value.as.p = ranks.group(0);
    values[6].name = "parallel_num", values[6].value.kind = VELO_VALUE_INT;
    values[6].value.as.i = 2;
    char text[2048] = "";
    REQUIRE(velo_op_explain(ranks.context(0), "npu_mm_all_reduce_add_rms_norm_", values, 7, text,
                            sizeof text, nullptr) == VELO_OK);
    return std::string(text);
  };
  CHECK(explained(plain, false).find(R"("name":"sliced","isa":"scalar","chosen":true)") !=
        std::string::npos);
  CHECK(explained(quantized, true).find(R"("name":"sliced","isa":"scalar","chosen":true)") !=
        std::string::npos);
}

TEST_CASE("processes get the bits of the calls apart, and the sum of their biases") {
  processes ranks;
  velo_group_desc desc = group_desc();
  desc.buffer = 32 << 10;
  ranks.start_all(3, desc, [](const rank_of_group& me) {
    ending all;
    for (const velo_dtype dtype : {f32, bf16, f16})
      for (const sizes& s : {sizes{300, 70, 50}, {700, 512, 20}, {64, 96, 33}}) {
        const layer one(dtype, s, me.rank);
        const apart other(one);
        velo_status done = one.run(me.stream, me.group);
        if (done == VELO_OK) done = other.run(one, me.stream, me.group);
        if (done != VELO_OK) return ending_of(done);
        all.value += other.equals(one) && one.norm.borders_kept() ? 0 : 1;
      }
    const layers of_all = make_layers(3, f32, {400, 64, 16});
    for (std::size_t rank = 0; rank < 3; ++rank) of_all[rank]->has_bias = rank != 1;
    const layer& mine = *of_all[at(me.rank)];
    const velo_status done = mine.run(me.stream, me.group);
    if (done != VELO_OK) return ending_of(done);
    all.value += errors_of(mine, exact_sums(of_all)).worst() <= 4e-6 ? 0 : 1;
    all.code = VELO_OK;
    return all;
  });
  check_right(ranks.wait());
}

TEST_CASE("ranks that disagree get PEER, and one that does not come is named") {
  const auto failures_of = [](const layers& all, const char* level_of_last) {
    const local_ranks ranks(3, group_desc(400));
    REQUIRE(velo_config_set(ranks.context(2), "level", level_of_last) == VELO_OK);
    return ranks.run(
        [&](const rank_of_group& me) { return all[at(me.rank)]->run(me.stream, me.group); });
  };
  const auto check = [](const std::vector<call_record>& failures) {
    for (const call_record& one : failures) {
      INFO(one);
      CHECK(one.code == VELO_ERR_PEER);
      CHECK(one.rank == 2);
      CHECK(one.expected != one.got);
    }
  };
  layers all = make_layers(3, f32, {300, 64, 32});
  check(failures_of(all, "1"));
  all[2] = std::make_unique<layer>(f32, sizes{299, 64, 32}, 2);
  check(failures_of(all, "2"));
  all = make_layers(3, f32, {300, 64, 32});
  all[2]->slices = 5;
  check(failures_of(all, "2"));
  const local_ranks ranks(3, group_desc(200));
  const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
    return me.rank == 1 ? velo_status{VELO_OK} : all[at(me.rank)]->run(me.stream, me.group);
  });
  CHECK(failures[0].code == VELO_ERR_PEER);
  CHECK(failures[0].rank == 1);
  CHECK(failures[0].expected.find("all_reduce of 19200 float32") == 0);
}

// matmul_all_reduce has the same sum, and no norm.
TEST_CASE("another operator on one rank is refused instead of taking its slices") {
  const local_ranks ranks(2, group_desc(400));
  const layers all = make_layers(2, f32, {300, 64, 32});
  const std::vector<call_record> failures = ranks.run([&](const rank_of_group& me) {
    if (me.rank == 0) return all[0]->run(me.stream, me.group);
    const velo_tensor x = all[1]->x.view(), weight = all[1]->weight.view();
    velo_tensor y = all[1]->norm.view();
    const std::int64_t folded[] = {300, 64};
    y.ndim = 2, y.shape = folded;
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.y = &y, args.parallel_num = 3;
    return velo_matmul_all_reduce(me.stream, &args);
  });
  for (const call_record& one : failures) CHECK(one.code == VELO_ERR_PEER);
}

TEST_CASE("matmul_all_reduce_add_rms_norm names what is wrong and leaves its outputs alone") {
  const local_ranks ranks(2);
  const layer one(f32, {4, 6, 8}, 0);
  const matrix untouched(f32, {1, 4, 6}), narrow(f32, {8, 5}), low(bf16, {8, 6}), row(f32, {6}),
      long_row(f32, {7}), other(f32, {1, 4, 7}), flat(f32, {24}), half(f16, {1, 4, 6});
  std::vector<std::int8_t> integers(48, 1);
  const std::int64_t stored[] = {8, 6};
  const velo_tensor in = one.x.view(), by = one.weight.view(), residual = one.residual.view(),
                    gain = one.gamma.view(), sum = one.y.view(), out = one.norm.view(),
                    quantized = view_of(integers.data(), i8, stored), scale = row.view();
  velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  args.group = ranks.group(0), args.x = &in, args.weight = &by, args.residual = &residual;
  args.gamma = &gain, args.y = &sum, args.norm_out = &out;
  const auto call = [&](const auto& change) {
    velo_matmul_all_reduce_add_rms_norm_args wrong = args;
    change(wrong);
    return record_of(velo_matmul_all_reduce_add_rms_norm(ranks.stream(0), &wrong));
  };
  const auto with = [&](const velo_tensor* velo_matmul_all_reduce_add_rms_norm_args::*field,
                        const velo_tensor& tensor) {
    return call([&](auto& wrong) { wrong.*field = &tensor; });
  };
  using fields = velo_matmul_all_reduce_add_rms_norm_args;
  CHECK_REFUSED(with(&fields::weight, narrow.view()), VELO_ERR_SHAPE, "args.residual.shape");
  CHECK_REFUSED(with(&fields::weight, low.view()), VELO_ERR_DTYPE, "args.weight.dtype");
  CHECK_REFUSED(with(&fields::weight, quantized), VELO_ERR_DTYPE, "args.weight.dtype");
  CHECK_REFUSED(with(&fields::scale, scale), VELO_ERR_DTYPE, "args.weight.dtype");
  CHECK_REFUSED(with(&fields::offset, scale), VELO_ERR_ARGUMENT, "args.offset");
  CHECK_REFUSED(with(&fields::bias, long_row.view()), VELO_ERR_SHAPE, "args.bias.shape");
  CHECK_REFUSED(with(&fields::gamma, long_row.view()), VELO_ERR_SHAPE, "args.gamma.shape");
  CHECK_REFUSED(with(&fields::residual, other.view()), VELO_ERR_SHAPE, "args.residual.shape");
  CHECK_REFUSED(with(&fields::residual, flat.view()), VELO_ERR_RANK, "args.residual.ndim");
  CHECK_REFUSED(with(&fields::residual, half.view()), VELO_ERR_DTYPE, "args.residual.dtype");
  CHECK_REFUSED(with(&fields::y, half.view()), VELO_ERR_DTYPE, "args.y.dtype");
  CHECK_REFUSED(with(&fields::norm_out, other.view()), VELO_ERR_SHAPE, "args.norm_out.shape");
  CHECK_REFUSED(with(&fields::norm_out, residual), VELO_ERR_OVERLAP, "args.norm_out");
  CHECK_REFUSED(call([](auto& wrong) { wrong.epsilon = 2; }), VELO_ERR_ARGUMENT, "args.epsilon");
  CHECK_REFUSED(call([](auto& wrong) { wrong.parallel_num = -1; }), VELO_ERR_ARGUMENT,
                "args.parallel_num");
  CHECK_REFUSED(call([&](auto& wrong) { wrong.group = ranks.group(1); }), VELO_ERR_ARGUMENT,
                "args.group");
  const call_record text = call([&](auto& wrong) {
    wrong.weight = &quantized, wrong.scale = &scale, wrong.residual = &out, wrong.gamma = &scale;
    wrong.norm_out = &sum, wrong.bias = &gain, wrong.x = &by;
  });
  CHECK_REFUSED(text, VELO_ERR_SHAPE, "args.x.shape");
  CHECK(one.norm.same_bits(untouched));
  // None of these calls reached the other rank.
  const layers all = make_layers(2, f32, {4, 6, 8});
  run_all(ranks, all);
  require_close(all, 4e-6);
}
