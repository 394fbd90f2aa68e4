// Quantized products next to a sum over ranks in slices of columns: the bits of the same call in
// one slice, over forms of weights, rows, numbers of slices, ranks and transports; sizes on which
// ranks must agree; room that a slot lacks.
#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/quantized_calls.hpp"

using namespace velo::testing;
using quantized::drawn_bytes;

namespace {

// A weight of so many columns that there are several slices.
constexpr std::int64_t depth = 96, columns = 402;

struct form {
  const char* name;
  bool integers = false, int4 = false, transposed = false, groups = false, offset = false;
};
const form forms[] = {
    {"int8"},
    {"int8, turned", false, false, true, false, true},
    {"int4 in groups", false, true, false, true, true},
    {"int4 in groups, turned", false, true, true, true},
    {"int8 by int8", true},
    {"int8 by int8, turned", true, false, true},
};

struct operands {
  const form& of;
  std::int64_t m;
  std::int64_t stored[2], left[2]{m, depth};
  std::vector<std::uint8_t> integers, bytes;
  std::vector<std::int32_t> whole_bias = std::vector<std::int32_t>(at(columns), 77);
  matrix x, scale, offset, bias, per_token, residual, gamma;

  operands(const form& made_of, velo_dtype dtype, std::int64_t rows, int rank)
      : of(made_of),
        m(rows),
        stored{of.transposed ? columns : depth, of.transposed ? depth : columns},
        integers(drawn_bytes(depth * columns, rank)),
        bytes(drawn_bytes(rows * depth, rank + 50)),
        x(dtype, {rows, depth}, 5 * rank),
        scale(f32,
              of.groups ? std::vector<std::int64_t>{3, columns}
                        : std::vector<std::int64_t>{of.transposed ? 1 : columns},
              5 * rank + 1),
        offset(f32,
               of.groups ? std::vector<std::int64_t>{3, columns}
                         : std::vector<std::int64_t>{of.transposed ? 1 : columns},
               5 * rank + 2),
        bias(f32, {columns}, 99),
        per_token(f32, {rows}, 9),
        residual(of.integers ? bf16 : dtype, {rows, columns}, 98),
        gamma(of.integers ? bf16 : dtype, {columns}, 97) {
    if (of.int4) stored[1] /= 2;
  }
};

// The results of a call in so many slices.
struct sums {
  matrix y, z, norm;
  explicit sums(const operands& by)
      : y(by.residual.view().dtype, {by.m, columns}),
        z(by.residual.view().dtype, {by.m, columns}),
        norm(by.residual.view().dtype, {by.m, columns}) {}

  velo_status run(const rank_of_group& me, const operands& by, std::int64_t slices) const {
    const std::int64_t width[] = {columns};
    const velo_tensor x = by.of.integers ? view_of(by.bytes.data(), i8, by.left) : by.x.view(),
                      weight = view_of(by.integers.data(), by.of.int4 ? u8 : i8, by.stored),
                      scale = by.scale.view(), offset = by.offset.view(),
                      token = by.per_token.view(),
                      bias = by.of.integers ? view_of(by.whole_bias.data(), i32, width)
                                            : by.bias.view(),
                      out = y.view(), other = by.residual.view(), gain = by.gamma.view(),
                      sum = z.view(), normed = norm.view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    velo_matmul_all_reduce_add_rms_norm_args then = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
    args.group = then.group = me.group, args.x = then.x = &x, args.weight = then.weight = &weight;
    args.bias = then.bias = &bias, args.parallel_num = then.parallel_num = slices;
    args.transpose_weight = then.transpose_weight = by.of.transposed;
    if (by.of.integers) {
      args.dequant_scale = then.dequant_scale = &scale, args.per_token_scale = &token;
      args.output_dtype = VELO_DEQUANTIZED_BFLOAT16;
    } else {
      args.scale = then.scale = &scale;
      if (by.of.offset) args.offset = then.offset = &offset;
    }
    args.y = &out;
    then.residual = &other, then.gamma = &gain, then.y = &sum, then.norm_out = &normed;
    then.epsilon = 1e-5;
    const velo_status done = velo_matmul_all_reduce(me.stream, &args);
    return done == VELO_OK ? velo_matmul_all_reduce_add_rms_norm(me.stream, &then) : done;
  }
  bool same_bits(const sums& other) const {
    return y.same_bits(other.y) && z.same_bits(other.z) && norm.same_bits(other.norm);
  }
  bool borders_kept() const { return y.borders_kept() && z.borders_kept() && norm.borders_kept(); }
};

// How many of the slice numbers give other bits than one slice.
velo_status count_others(const rank_of_group& me, const operands& by, std::int64_t& others) {
  const sums whole(by);
  velo_status done = whole.run(me, by, 1);
  for (const std::int64_t slices : {2, 5, 100}) {
    const sums cut(by);
    if (done == VELO_OK) done = cut.run(me, by, slices);
    others += cut.same_bits(whole) && cut.borders_kept() ? 0 : 1;
  }
  return done;
}

std::string explained(const rank_of_group& me, const operands& by, std::int64_t slices) {
  const velo_tensor x = by.x.view(), weight = view_of(by.integers.data(), i8, by.stored),
                    scale = by.scale.view();
  velo_named_value values[5] = {};
  const std::pair<const char*, const velo_tensor*> tensors[] = {
      {"x", &x}, {"weight", &weight}, {"scale", &scale}};
  for (std::size_t i = 0; i < 3; ++i) {
    values[i].name = tensors[i].first, values[i].value.kind = VELO_VALUE_TENSOR;
    values[i].value.as.tensor = tensors[i].second;
  }
  values[3].name = "group", values[3].value.kind = VELO_VALUE_HANDLE;
  values[3].value.as.p = me.group;
  values[4].name = "parallel_num", values[4].value.kind = VELO_VALUE_INT;
  values[4].value.as.i = slices;
  char text[2048] = "";
  REQUIRE(velo_op_explain(me.context, "matmul_all_reduce", values, 5, text, sizeof text, nullptr) ==
          VELO_OK);
  return text;
}

}  // namespace

TEST_CASE("slices of columns have the bits of one product, over forms, dtypes, rows and ranks") {
  for (const auto& [count, threads] : {std::pair{2, 1}, {2, 2}, {3, 1}}) {
    const local_ranks ranks(count, group_desc(), threads);
    for (const form& of : forms)
      for (const velo_dtype dtype : {f32, bf16, f16})
        for (const std::int64_t m : {0, 1, 17, 600}) {
          if (of.integers && dtype.code != VELO_DTYPE_BFLOAT) continue;  // x is int8
          INFO(of.name << ", dtype " << int{dtype.code} << "." << int{dtype.bits} << ", " << m
                       << " rows, " << count << " ranks of " << threads << " threads");
          std::vector<std::int64_t> others(at(count));
          ranks.require([&](const rank_of_group& me) {
            return count_others(me, operands(of, dtype, m, me.rank), others[at(me.rank)]);
          });
          for (const std::int64_t one : others) CHECK(one == 0);
        }
  }
}

TEST_CASE("processes slice quantized products, too") {
  for (const std::uint64_t buffer : {64 << 10, 512 << 10}) {
    processes ranks;
    velo_group_desc desc = group_desc();
    desc.buffer = buffer;  // a small one has no room for 900 rows
    ranks.start_all(3, desc, [](const rank_of_group& me) {
      ending all;
      for (const form& of : forms)
        for (const std::int64_t m : {40, 900}) {
          std::int64_t others = 0;
          const velo_status done = count_others(me, operands(of, bf16, m, me.rank), others);
          if (done != VELO_OK) return ending_of(done);
          all.value += others == 0 ? 0 : 1;
        }
      all.code = VELO_OK;
      return all;
    });
    check_right(ranks.wait());
  }
}

TEST_CASE("velo_op_explain tells when a quantized product is sliced") {
  const local_ranks ranks(2);
  const operands few(forms[0], f32, 8, 0), some(forms[0], f32, 600, 0),
      many(forms[0], f32, 100000, 0);
  const rank_of_group me{ranks.context(0), ranks.stream(0), ranks.group(0), 0, 2};
  CHECK(explained(me, few, 2).find(R"("name":"sliced","isa":"scalar","chosen":true)") !=
        std::string::npos);
  CHECK(explained(me, few, 1).find("one slice is asked for") != std::string::npos);
  CHECK(explained(me, some, 0).find("slices of columns are not asked for") != std::string::npos);
  CHECK(explained(me, many, 2).find("the buffer of the group has no room for slices") !=
        std::string::npos);
}

TEST_CASE("overlap.mode asks for slices of columns, too") {
  const local_ranks ranks(2);
  set_all(ranks, "overlap.mode", "sliced");
  const operands by(forms[0], f32, 8, 0);
  const rank_of_group me{ranks.context(0), ranks.stream(0), ranks.group(0), 0, 2};
  CHECK(explained(me, by, 0).find(R"("name":"sliced","isa":"scalar","chosen":true)") !=
        std::string::npos);
  std::vector<std::int64_t> others(2);
  ranks.require([&](const rank_of_group& one) {
    return count_others(one, operands(forms[2], bf16, 600, one.rank), others[at(one.rank)]);
  });
  CHECK((others[0] == 0 && others[1] == 0));
}

TEST_CASE("ranks that slice columns in other numbers all get PEER") {
  const local_ranks ranks(2);
  std::vector<call_record> got = ranks.run([&](const rank_of_group& me) {
    const operands by(forms[0], f32, 40, me.rank);
    return sums(by).run(me, by, me.rank == 0 ? 2 : 5);
  });
  for (const call_record& one : got) CHECK(one.code == VELO_ERR_PEER);
}
