// Quantized products next to a sum over ranks: a weight of int8 or int4 against double, int8 by
// int8 against quant_grouped_matmul bit for bit, the norm behind the sum against the calls apart;
// which fields of one form are refused beside those of another.
#include <cmath>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/quantized_calls.hpp"

using namespace velo::testing;
using namespace velo::testing::quantized;

namespace {

void check_weights(const local_ranks& ranks, const weight_form& form, velo_dtype dtype,
                   std::int64_t m) {
  INFO(form.name << ", dtype " << int{dtype.code} << "." << int{dtype.bits} << ", " << m
                 << " rows, " << ranks.size() << " ranks");
  const weight_calls all = make_calls(form, dtype, m, ranks.size());
  ranks.require([&](const rank_of_group& me) { return all[at(me.rank)]->run(me); });
  const double ulp = dtype.bits == 32                  ? 0x1p-24
                     : dtype.code == VELO_DTYPE_BFLOAT ? 0x1p-8
                                                       : 0x1p-11;
  for (const auto& one : all) {
    check_sums(all, *one, m, ulp);
    CHECK(one->y.same_bits(all[0]->y));
    CHECK(one->norm_has_bits_of_calls_apart());
    CHECK(one->borders_kept());
  }
}

void check_integers(const local_ranks& ranks, const integer_form& form, std::int64_t m) {
  INFO(form.name << ", " << m << " rows, " << ranks.size() << " ranks");
  std::vector<std::unique_ptr<integer_call>> all;
  for (int rank = 0; rank < ranks.size(); ++rank)
    all.push_back(std::make_unique<integer_call>(form, m, rank));
  ranks.require([&](const rank_of_group& me) { return all[at(me.rank)]->run(me); });
  for (const auto& one : all) {
    CHECK(one->has_bits_of_calls_apart());
    CHECK(one->borders_kept());
    CHECK((m == 0 || one->y[0] != 0));
  }
}

// ---- what is refused ----

// A call of each operator over its own tensors, of which a test changes some.
struct refusals {
  const local_ranks ranks{2};
  const std::int64_t weight_shape[2] = {64, 6};
  const std::vector<std::uint8_t> integers = drawn_bytes(64 * 6, 1);
  const matrix floats{f32, {4, 64}, 1}, plain{f32, {64, 6}, 2}, one{f32, {1}, 3}, row{f32, {6}, 4},
      two_groups{f32, {2, 6}, 5}, narrow{f32, {2}, 5}, half{bf16, {6}, 6}, tokens{f32, {4}, 7},
      residual{f32, {4, 6}, 8}, y{f32, {4, 6}}, norm{f32, {4, 6}};
  const std::int64_t x_shape[2] = {4, 64}, long_shape[2] = {80, 6};
  const std::vector<std::uint8_t> more = drawn_bytes(80 * 6, 1);
  const velo_tensor in = floats.view(), by_floats = plain.view(), scale = one.view(),
                    columns_of = row.view(), groups_of = two_groups.view(), too_few = narrow.view(),
                    low = half.view(), token = tokens.view(), other = residual.view(),
                    gain = row.view(), out = y.view(), normed_out = norm.view(),
                    weight = view_of(integers.data(), i8, weight_shape),
                    bytes = view_of(integers.data(), i8, x_shape),
                    longer = view_of(more.data(), i8, long_shape);

  template <class Change>
  velo_status reduce(const Change& change) const {
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = ranks.group(0), args.x = &in, args.weight = &weight, args.y = &out;
    change(args);
    return velo_matmul_all_reduce(ranks.stream(0), &args);
  }
  template <class Change>
  velo_status add_norm(const Change& change) const {
    velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
    args.group = ranks.group(0), args.x = &in, args.weight = &weight, args.residual = &other;
    args.gamma = &gain, args.y = &out, args.norm_out = &normed_out;
    change(args);
    return velo_matmul_all_reduce_add_rms_norm(ranks.stream(0), &args);
  }
  // Both operators refuse the same change of fields that both have.
  template <class Change>
  void both(velo_status code, const char* argument, const char* expected,
            const Change& change) const {
    for (const bool norms : {false, true}) {
      const call_record got = record_of(norms ? add_norm(change) : reduce(change));
      INFO(got << (norms ? ", with a norm" : ""));
      CHECK(got.code == code);
      CHECK(got.argument == argument);
      CHECK(got.expected.find(expected) != std::string::npos);
    }
  }
};

}  // namespace

TEST_CASE("a quantized weight has the sums of double, over ranks, levels, forms and dtypes") {
  for (const int count : {1, 2, 3}) {
    const local_ranks ranks(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(ranks, "level", level);
      for (const weight_form& form : weight_forms)
        for (const velo_dtype dtype : {f32, bf16, f16})
          for (const std::int64_t m : {3, 40}) check_weights(ranks, form, dtype, m);
    }
  }
}

TEST_CASE("short groups serve every instruction set, and blocks of rows, columns and depth") {
  const local_ranks ranks(2, group_desc(), 2);
  for (const char* isa : {"avx2", "avx512", "avx512_bf16"}) {
    bool has = true;
    for (int rank = 0; rank < 2; ++rank)
      has = velo_config_set(ranks.context(rank), "isa", isa) == VELO_OK && has;
    if (!has) continue;  // beyond this machine's
    INFO(isa);
    for (const weight_form& form : weight_forms)
      for (const std::int64_t m : {0, 1, 17, 600})
        check_weights(ranks, form, m == 1 ? f32 : bf16, m);
  }
}

TEST_CASE("int8 by int8 has the bits of quant_grouped_matmul and the sum") {
  for (const int count : {2, 3}) {
    const local_ranks ranks(count);
    for (const char* level : {"0", "1", "2"}) {
      set_all(ranks, "level", level);
      for (const integer_form& form : integer_forms)
        for (const std::int64_t m : {0, 1, 300}) check_integers(ranks, form, m);
    }
  }
}

TEST_CASE("processes get the same sums of quantized products") {
  processes ranks;
  ranks.start_all(2, group_desc(), [](const rank_of_group& me) {
    ending all;
    for (const weight_form& form : weight_forms) {
      const weight_call one(form, bf16, 40, me.rank);
      const velo_status done = one.run(me);
      if (done != VELO_OK) return ending_of(done);
      all.value += one.norm_has_bits_of_calls_apart() && one.borders_kept() ? 0 : 1;
    }
    for (const integer_form& form : integer_forms) {
      const integer_call one(form, 40, me.rank);
      const velo_status done = one.run(me);
      if (done != VELO_OK) return ending_of(done);
      all.value += one.has_bits_of_calls_apart() ? 0 : 1;
    }
    all.code = VELO_OK;
    return all;
  });
  check_right(ranks.wait());
}

TEST_CASE("ranks whose outputs differ in dtype all get PEER") {
  const local_ranks ranks(2, group_desc(400));
  const integer_call first(integer_forms[2], 8, 0), second(integer_forms[4], 8, 1);
  for (const call_record& one :
       ranks.run([&](const rank_of_group& me) { return (me.rank == 0 ? first : second).run(me); }))
    CHECK(one.code == VELO_ERR_PEER);
}

TEST_CASE("a sum of int8 products may be written over the residual") {
  const local_ranks ranks(2);
  const integer_form& form = integer_forms[3];
  std::vector<std::unique_ptr<integer_call>> all;
  for (int rank = 0; rank < 2; ++rank)
    all.push_back(std::make_unique<integer_call>(form, 20, rank));
  ranks.require([&](const rank_of_group& me) { return all[at(me.rank)]->run(me); });
  const matrix sums[2] = {{bf16, {20, columns}, 98}, {bf16, {20, columns}, 98}};
  const matrix norms[2] = {{bf16, {20, columns}}, {bf16, {20, columns}}};
  ranks.require([&](const rank_of_group& me) {
    return all[at(me.rank)]->run_in_place(me, sums[me.rank], norms[me.rank]);
  });
  for (int rank = 0; rank < 2; ++rank) {
    CHECK(sums[rank].same_bits(all[at(rank)]->z));
    CHECK(norms[rank].same_bits(all[at(rank)]->norm));
  }
}

TEST_CASE("fields of one form of quantization are refused beside those of another") {
  const refusals r;
  const auto fails = [&](const char* argument, const char* expected, const auto& change) {
    r.both(VELO_ERR_ARGUMENT, argument, expected, change);
  };
  fails("args.offset", "NULL, because args.scale is NULL", [&](auto& a) { a.offset = &r.scale; });
  fails("args.group_size", "0, because args.scale is NULL", [&](auto& a) { a.group_size = 32; });
  fails("args.dequant_scale", "NULL, because args.scale is given",
        [&](auto& a) { a.scale = a.dequant_scale = &r.scale; });
  fails("args.offset", "NULL, because args.dequant_scale is given",
        [&](auto& a) { a.x = &r.bytes, a.offset = a.dequant_scale = &r.scale; });
  fails("args.group_size", "0, because args.dequant_scale is given",
        [&](auto& a) { a.x = &r.bytes, a.dequant_scale = &r.scale, a.group_size = 32; });
  fails("args.group_size", "0, because args.scale has no dimension of groups",
        [&](auto& a) { a.scale = &r.scale, a.group_size = 32; });
  for (const std::int64_t wrong : {16, 64, 48, 96})
    fails("args.group_size", "a multiple of 32 below k, which is 64",
          [&](auto& a) { a.scale = &r.groups_of, a.group_size = wrong; });
  const auto reduce_fails = [&](const char* argument, const char* expected, const auto& change) {
    const call_record got = record_of(r.reduce(change));
    INFO(got);
    CHECK(got.code == VELO_ERR_ARGUMENT);
    CHECK(got.argument == argument);
    CHECK(got.expected.find(expected) != std::string::npos);
  };
  reduce_fails("args.per_token_scale", "NULL, because args.dequant_scale is NULL",
               [&](auto& a) { a.weight = &r.by_floats, a.per_token_scale = &r.token; });
  reduce_fails("args.per_token_scale", "NULL, because args.scale is given",
               [&](auto& a) { a.scale = &r.scale, a.per_token_scale = &r.token; });
  reduce_fails("args.output_dtype", "by_scale, because args.dequant_scale is NULL",
               [&](auto& a) { a.scale = &r.scale, a.output_dtype = VELO_DEQUANTIZED_FLOAT32; });
}

TEST_CASE("quantized operands of other shapes and dtypes are refused by name") {
  const refusals r;
  r.both(VELO_ERR_DTYPE, "args.x.dtype", "because args.dequant_scale is NULL",
         [&](auto& a) { a.x = &r.bytes; });
  r.both(VELO_ERR_DTYPE, "args.x.dtype", "because args.scale is given",
         [&](auto& a) { a.x = &r.bytes, a.scale = &r.scale; });
  r.both(VELO_ERR_DTYPE, "args.x.dtype", "int8", [&](auto& a) { a.dequant_scale = &r.scale; });
  r.both(VELO_ERR_DTYPE, "args.weight.dtype", "int8, uint8 or int4, because args.scale is given",
         [&](auto& a) { a.weight = &r.by_floats, a.scale = &r.scale; });
  r.both(VELO_ERR_DTYPE, "args.weight.dtype", "int8",
         [&](auto& a) { a.x = &r.bytes, a.weight = &r.by_floats, a.dequant_scale = &r.scale; });
  r.both(VELO_ERR_SHAPE, "args.scale.shape", "6", [&](auto& a) { a.scale = &r.too_few; });
  r.both(VELO_ERR_SHAPE, "args.dequant_scale.shape", "6",
         [&](auto& a) { a.x = &r.bytes, a.dequant_scale = &r.too_few; });
  r.both(VELO_ERR_DTYPE, "args.bias.dtype", "int32",
         [&](auto& a) { a.x = &r.bytes, a.dequant_scale = &r.scale, a.bias = &r.gain; });
  const auto with_scale = [&](const velo_tensor& scale, std::int64_t output) {
    return r.reduce(
        [&](auto& a) { a.x = &r.bytes, a.dequant_scale = &scale, a.output_dtype = output; });
  };
  CHECK_REFUSED(with_scale(r.low, VELO_DEQUANTIZED_FLOAT32), VELO_ERR_DTYPE,
                "args.dequant_scale.dtype");
  CHECK_REFUSED(with_scale(r.scale, VELO_DEQUANTIZED_BY_SCALE), VELO_ERR_DTYPE, "args.y.dtype");
  CHECK_REFUSED(r.reduce([&](auto& a) {
    a.x = &r.bytes, a.dequant_scale = &r.scale, a.per_token_scale = &r.gain;
    a.output_dtype = VELO_DEQUANTIZED_FLOAT32;
  }),
                VELO_ERR_SHAPE, "args.per_token_scale.shape");
  const call_record three = record_of(
      r.reduce([&](auto& a) { a.scale = &r.groups_of, a.group_size = 32, a.weight = &r.longer; }));
  CHECK(three.code == VELO_ERR_SHAPE);
  CHECK(three.expected == "3 groups, because args.group_size is 32 and k is 80");
  const matrix untouched(f32, {4, 6});
  CHECK(r.y.same_bits(untouched));
  CHECK(r.norm.same_bits(untouched));
}

TEST_CASE("a bias may have a leading dimension of 1") {
  const matrix x(f32, {4, 8}, 1), weight(f32, {8, 6}, 2), row(f32, {1, 6}, 3), flat(f32, {6}, 3);
  const auto results = [&](const matrix& bias) {
    std::vector<std::unique_ptr<matrix>> all;
    const velo_tensor in = x.view(), by = weight.view(), added = bias.view();
    const live_context context;
    const auto run = [&](auto function, auto args) {
      all.push_back(std::make_unique<matrix>(f32, sizes{4, 6}));
      const velo_tensor out = all.back()->view();
      args.x = &in, args.weight = &by, args.bias = &added, args.y = &out;
      REQUIRE(function(context.inline_stream(), &args) == VELO_OK);
    };
    run(velo_matmul_all_reduce, velo_matmul_all_reduce_args VELO_MATMUL_ALL_REDUCE_ARGS_INIT);
    run(velo_matmul_reduce_scatter,
        velo_matmul_reduce_scatter_args VELO_MATMUL_REDUCE_SCATTER_ARGS_INIT);
    run(velo_all_gather_matmul, velo_all_gather_matmul_args VELO_ALL_GATHER_MATMUL_ARGS_INIT);
    run(velo_all_gather_matmul_reduce_scatter,
        velo_all_gather_matmul_reduce_scatter_args VELO_ALL_GATHER_MATMUL_REDUCE_SCATTER_ARGS_INIT);
    return all;
  };
  const auto rows = results(row), flats = results(flat);
  for (std::size_t i = 0; i < rows.size(); ++i) CHECK(rows[i]->same_bits(*flats[i]));
}
