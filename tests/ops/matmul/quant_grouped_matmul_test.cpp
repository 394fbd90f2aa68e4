// weight_quant_grouped_matmul against double and quant_grouped_matmul against exact sums: groups,
// empty ones, lists, scales, offsets, biases, activations, outputs, packs, kernels, threads,
// refusals.
#include <optional>

#include "tests/ops/matmul/weight_pack.hpp"
#include "tests/ops/quant/quantized_weight.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

using counts_list = std::vector<std::int64_t>;

std::int64_t sum_of(const counts_list& counts) {
  std::int64_t sum = 0;
  for (const std::int64_t c : counts) sum += c;
  return sum;
}

const counts_list uneven = {1, 3, 0, 5, 7, 0, 33, 2};

template <class T>
void check_weights(session& s, const counts_list& counts, std::int64_t n, std::int64_t k,
                   const weight_form& f) {
  INFO("n " << n << " k " << k << " int4 " << f.int4 << " turned " << f.transposed << " group "
            << f.group << " bytes " << sizeof(T));
  const std::int64_t m = sum_of(counts), groups = static_cast<std::int64_t>(counts.size());
  quantized_weight w(groups, k, n, f);
  array<T> x({m, k}), y({m, n});
  array<float> bias({groups, n});
  x.fill(1), bias.fill(3);
  const velo_ints list{counts.data(), groups};
  velo_weight_quant_grouped_matmul_args a = VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = w.weight(), a.scale = w.scale(), a.offset = w.offset();
  a.bias = f.bias ? bias.tensor() : nullptr, a.y = y.tensor(), a.group_list = &list;
  a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS, a.transpose_weight = f.transposed;
  VELO_RUN(velo_weight_quant_grouped_matmul(s.stream(), &a));
  if (groups > 1 && !f.transposed) {  // a pack of several, with the same bits
    const weight_pack pack(s, *w.weight(), false, true);
    array<T> from_pack({m, n});
    a.weight = nullptr, a.packed = pack, a.y = from_pack.tensor();
    VELO_RUN(velo_weight_quant_grouped_matmul(s.stream(), &a));
    CHECK(from_pack.bytes() == y.bytes());
  }
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    for (const std::int64_t end = row + counts[static_cast<std::size_t>(e)]; row < end; ++row) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0, size = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const double term = x.at(static_cast<std::size_t>(row * k + l)) * w.at(e, l, j);
          sum += term, size += std::abs(term);
        }
        if (f.bias) sum += bias.at(static_cast<std::size_t>(e * n + j));
        const double bound = size * 0x1p-24 * (4 + std::sqrt(static_cast<double>(k))) +
                             std::abs(sum) * (rounding<T>() + 0x1p-22);
        const double got = y.at(static_cast<std::size_t>(row * n + j));
        if (!(std::abs(got - sum) <= bound)) FAIL("got " << got << ", truth " << sum);
      }
    }
  }
  CHECK(y.intact());
}

struct integer_form {
  bool transposed = false, bias = false, tokens = false;
  std::int64_t act = VELO_QUANT_ACTIVATION_NONE;
  bool packed = false;
};

double activation(std::int64_t act, double x) {
  const double t = 0.7978845608 * (x + 0.044715 * x * x * x);
  switch (act) {
    case VELO_QUANT_ACTIVATION_RELU:
      return x > 0 ? x : 0;
    case VELO_QUANT_ACTIVATION_GELU_TANH:
      return x / 2 * (1 + std::tanh(t));
    case VELO_QUANT_ACTIVATION_GELU:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case VELO_QUANT_ACTIVATION_FAST_GELU:
      return x / (1 + std::exp(-1.702 * x));
    case VELO_QUANT_ACTIVATION_SILU:
      return x / (1 + std::exp(-x));
    default:
      return x;
  }
}

template <class Out>
constexpr std::int64_t output_of = std::is_same_v<Out, float>         ? VELO_QUANT_OUTPUT_FLOAT32
                                   : std::is_same_v<Out, bf16>        ? VELO_QUANT_OUTPUT_BFLOAT16
                                   : std::is_same_v<Out, std::int8_t> ? VELO_QUANT_OUTPUT_INT8
                                                                      : VELO_QUANT_OUTPUT_FLOAT16;

void fill_bytes(array<std::int8_t>& x, std::uint64_t seed) {
  cheap_random64 draw(seed);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int8_t>(draw() >> 20);
}

template <class Out>
void check_integers(session& s, const counts_list& counts, std::int64_t n, std::int64_t k,
                    const integer_form& f, int extreme = 0) {
  INFO("n " << n << " k " << k << " turned " << f.transposed << " act " << f.act << " output "
            << output_of<Out>);
  const std::int64_t m = sum_of(counts), groups = static_cast<std::int64_t>(counts.size());
  array<std::int8_t> x({m, k}), w({groups, f.transposed ? n : k, f.transposed ? k : n});
  array<float> scale({groups, n}), tokens({m});
  array<std::int32_t> bias({groups, n});
  array<Out> y({m, n});
  fill_bytes(x, 1), fill_bytes(w, 2);
  if (extreme != 0) {
    std::memset(x.data(), extreme, x.size());
    std::memset(w.data(), extreme, w.size());
  }
  scale.fill(3, 4.0 / (1000 * std::sqrt(static_cast<double>(k) + 1))), tokens.fill(4, 2);
  for (std::size_t i = 0; i < bias.size(); ++i)
    bias[i] = static_cast<std::int32_t>(i * 7919 % 10007) - 5000;
  const velo_ints list{counts.data(), groups};
  velo_quant_grouped_matmul_args a = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = w.tensor(), a.scale = scale.tensor(), a.y = y.tensor();
  if (f.bias) a.bias = bias.tensor();
  if (f.tokens) a.per_token_scale = tokens.tensor();
  a.group_list = &list, a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  a.output_dtype = output_of<Out>, a.act_type = f.act, a.transpose_weight = f.transposed;
  std::optional<weight_pack> pack;
  if (f.packed) {
    pack.emplace(s, *w.tensor(), f.transposed);
    a.weight = nullptr, a.packed = *pack, a.transpose_weight = 0;
  }
  const velo_status status = velo_quant_grouped_matmul(s.stream(), &a);
  if (f.packed && status == VELO_ERR_UNSUPPORTED) return;  // the form of another instruction set
  VELO_RUN(status);
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    for (const std::int64_t end = row + counts[static_cast<std::size_t>(e)]; row < end; ++row) {
      for (std::int64_t j = 0; j < n; ++j) {
        const auto column = static_cast<std::size_t>(e * n + j);
        std::int64_t sum = f.bias ? bias[column] : 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += std::int64_t{x[static_cast<std::size_t>(row * k + l)]} *
                 w[static_cast<std::size_t>(e * k * n + (f.transposed ? j * k + l : l * n + j))];
        const auto at = static_cast<std::size_t>(row * n + j);
        if constexpr (std::is_same_v<Out, std::int8_t>) {
          const float value = static_cast<float>(sum) * scale[column];
          REQUIRE(y[at] == std::nearbyint(std::min(127.0f, std::max(-128.0f, value))));
        } else {
          double value = static_cast<double>(sum) * scale.at(column);
          if (f.tokens) value *= tokens.at(static_cast<std::size_t>(row));
          const double truth = activation(f.act, value), got = y.at(at);
          const double bound = std::abs(truth) * (rounding<Out>() + 2e-6) + 4e-7 * std::abs(value) +
                               1e-30 + (std::is_same_v<Out, f16> ? 0x1p-25 : 0);
          if (!(std::abs(got - truth) <= bound)) FAIL("got " << got << ", truth " << truth);
        }
      }
    }
  }
  CHECK(y.intact());
}

template <class Out>
void check_integer_forms(session& s) {
  for (int bits = 0; bits < 4; ++bits) {
    const integer_form f = {(bits & 1) != 0, (bits & 2) != 0,
                            bits > 1 && !std::is_same_v<Out, std::int8_t>};
    check_integers<Out>(s, uneven, 32, 64, f);
    check_integers<Out>(s, uneven, 37 + bits, 61 + bits, f);
    check_integers<Out>(s, {5, 2}, 3, bits, f);
    integer_form packed = f;
    packed.packed = true;
    check_integers<Out>(s, uneven, 37 + bits, 61 + bits, packed);
  }
}

}  // namespace

TEST_CASE("weight_quant_grouped_matmul agrees with double for every kernel and form") {
  for (const int threads : {1, 3}) {
    for_each_kernel(
        "weight_quant_grouped_matmul",
        [](session& s) {
          for (int bits = 0; bits < 8; ++bits) {
            weight_form f;
            f.int4 = bits & 1, f.transposed = bits & 2, f.offset = bits & 4, f.bias = bits & 4;
            check_weights<float>(s, uneven, 34, 20, f);
            f.group = 32;
            check_weights<bf16>(s, uneven, 18, 64, f);
            check_weights<f16>(s, {1, 0, 2}, 18, 64, f);
          }
        },
        threads);
  }
}

TEST_CASE("quant_grouped_matmul agrees with exact sums for every kernel, output and activation") {
  for (const int threads : {1, 3}) {
    for_each_kernel(
        "quant_grouped_matmul",
        [](session& s) {
          check_integer_forms<float>(s);
          check_integer_forms<bf16>(s);
          check_integer_forms<f16>(s);
          check_integer_forms<std::int8_t>(s);
          for (std::int64_t act = 1; act <= 5; ++act)
            check_integers<float>(s, {3, 4}, 40, 20, {false, true, true, act});
          check_integers<f16>(s, {300, 1}, 70, 130, {});
          check_integers<f16>(s, {0, 0}, 8, 8, {});
        },
        threads);
  }
}

// The largest magnitudes, whose sums of pairs of bytes saturate in 16 bits, at a depth that VNNI's
// unsigned products exceed int32 at.
TEST_CASE("quant_grouped_matmul is exact for the largest products and the deepest sums") {
  for_each_kernel("quant_grouped_matmul", [](session& s) {
    for (const int all : {-128, 127}) {
      check_integers<float>(s, {2}, 33, 66, {}, all);
      check_integers<float>(s, {1, 1}, 2, 131071, {true}, all);
    }
  });
}

TEST_CASE("a pack of int8 gives the bits of the plain weight on every instruction set") {
  std::vector<unsigned char> bits;
  for (const char* isa : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) {
    INFO(isa);
    session s(2, std::string("{\"isa\": \"") + isa + "\"}");
    array<std::int8_t> x({40, 70}), w({2, 50, 70});
    array<float> scale({2, 50}), y({40, 50});
    fill_bytes(x, 1), fill_bytes(w, 2), scale.fill(3);
    const weight_pack pack(s, *w.tensor(), true);
    const std::int64_t ends[] = {7, 40};
    const velo_ints list{ends, 2};
    velo_quant_grouped_matmul_args a = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    a.x = x.tensor(), a.weight = w.tensor(), a.scale = scale.tensor(), a.y = y.tensor();
    a.group_list = &list, a.output_dtype = VELO_QUANT_OUTPUT_FLOAT32, a.transpose_weight = 1;
    VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
    if (bits.empty()) bits = y.bytes();
    CHECK(y.bytes() == bits);
    y.fill(4);
    a.weight = nullptr, a.packed = pack, a.transpose_weight = 0;
    VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
    CHECK(y.bytes() == bits);
  }
}

// The update of a pack so large is shared by threads; rows and experts lie apart.
TEST_CASE("a pack of int8 takes weights of many panels at any distance, and of no depth") {
  session s(3);
  constexpr std::int64_t k = 530, n = 501, rows = 540, ld = 520;
  array<std::int8_t> x({3, k}), w({2, rows, ld}), packed_together({2, k, n});
  array<float> scale({2, n}), y({3, n}), expected({3, n});
  fill_bytes(x, 1), fill_bytes(w, 2), scale.fill(3);
  for (std::size_t e = 0; e < 2; ++e)
    for (std::size_t i = 0; i < k; ++i)
      std::copy_n(w.data() + (e * rows + i) * ld, n, packed_together.data() + (e * k + i) * n);
  const std::int64_t shape[] = {2, k, n}, strides[] = {rows * ld, ld, 1}, ends[] = {1, 3};
  const velo_ints list{ends, 2};
  velo_tensor apart = *w.tensor();
  apart.shape = shape, apart.strides = strides;
  const weight_pack pack(s, apart, false);
  velo_quant_grouped_matmul_args a = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = packed_together.tensor(), a.scale = scale.tensor();
  a.y = expected.tensor(), a.group_list = &list, a.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
  VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
  a.weight = nullptr, a.packed = pack, a.y = y.tensor();
  VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
  CHECK(y.bytes() == expected.bytes());
  array<std::int8_t> no_depth({2, 0, n}), no_columns({3, 0});
  const weight_pack nothing(s, *no_depth.tensor(), false);
  a.x = no_columns.tensor(), a.packed = nothing;
  VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == 0);
}

TEST_CASE("quant_grouped_matmul takes packed scales, scales of bfloat16 and lists in a tensor") {
  for_each_kernel("quant_grouped_matmul", [](session& s) {
    array<std::int8_t> x({2, 3}), w({1, 3, 2}), y({2, 2});
    fill_bytes(x, 1), fill_bytes(w, 2);
    const std::int64_t packed_values[] = {0x7fffffff3b000000, 0x3b800000};
    array<std::int64_t> packed({1, 2}), ends({1});
    std::copy_n(packed_values, 2, packed.data());
    ends[0] = 2;
    array<bf16> scale({1, 2}), z({2, 2});
    scale.fill(3);
    velo_quant_grouped_matmul_args a = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    a.x = x.tensor(), a.weight = w.tensor(), a.scale = packed.tensor(), a.y = y.tensor();
    a.group_list_tensor = ends.tensor(), a.output_dtype = VELO_QUANT_OUTPUT_INT8;
    VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
    a.scale = scale.tensor(), a.y = z.tensor(), a.output_dtype = VELO_QUANT_OUTPUT_BFLOAT16;
    VELO_RUN(velo_quant_grouped_matmul(s.stream(), &a));
    for (std::size_t i = 0; i < 4; ++i) {
      int sum = 0;
      for (std::size_t l = 0; l < 3; ++l) sum += x[i / 2 * 3 + l] * w[l * 2 + i % 2];
      const float value = static_cast<float>(sum) * (i % 2 == 0 ? 0x1p-9f : 0x1p-8f);
      CHECK(y[i] == std::nearbyint(std::min(127.0f, std::max(-128.0f, value))));
      CHECK(std::abs(z.at(i) - sum * scale.at(i % 2)) <=
            rounding<bf16>() * std::abs(z.at(i)) * 1.01);
    }
    ends[0] = 3;  // known when the call runs, before anything is written
    const auto before = z.bytes();
    CHECK_REFUSED(velo_quant_grouped_matmul(s.stream(), &a), VELO_ERR_ARGUMENT,
                  "args.group_list_tensor");
    CHECK(z.bytes() == before);
  });
}

TEST_CASE("quant_grouped_matmul refuses what does not fit, by name") {
  session s;
  array<std::int8_t> x({4, 6}), w({2, 6, 5});
  array<float> scale({2, 5}), tokens({4});
  array<std::int64_t> packed({2, 5});
  array<bf16> narrow({2, 5});
  array<std::int32_t> bias({2, 5});
  array<f16> y({4, 5});
  const std::int64_t counts[] = {1, 3}, wrong[] = {1, 2}, three[] = {1, 1, 2};
  const velo_ints list{counts, 2}, short_list{wrong, 2}, long_list{three, 3};
  velo_quant_grouped_matmul_args valid = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.weight = w.tensor(), valid.scale = scale.tensor();
  valid.y = y.tensor(), valid.bias = bias.tensor(), valid.per_token_scale = tokens.tensor();
  valid.group_list = &list, valid.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  const weight_pack pack(s, *w.tensor(), false),
      floats(s, *array<float>({2, 6, 5}).tensor(), false);
  using args = velo_quant_grouped_matmul_args;
  static const std::int64_t deep[] = {4, 131072}, deep_weight[] = {2, 131072, 5},
                            other[] = {2, 7, 5}, four[] = {2, 4}, five[] = {5};
  check_refusals<args>(
      s, velo_quant_grouped_matmul, valid, y,
      {{[](args& a) { a.group_list = nullptr; }, VELO_ERR_NULL, "args.group_list"},
       {[&](args& a) { a.group_list = &short_list; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[&](args& a) { a.group_list = &long_list; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {changed(&args::weight, [](velo_tensor& t) { t.shape = other; }), VELO_ERR_SHAPE,
        "args.weight.shape"},
       {[d = changed(&args::x, [](velo_tensor& t) { t.shape = deep; }),
         w2 = changed(&args::weight, [](velo_tensor& t) { t.shape = deep_weight; })](args& a) {
          d(a), w2(a);
        },
        VELO_ERR_SHAPE, "args.x.shape"},
       {changed(&args::scale, [](velo_tensor& t) { t.shape = four; }), VELO_ERR_SHAPE,
        "args.scale.shape"},
       {changed(&args::bias, [](velo_tensor& t) { t.shape = four; }), VELO_ERR_SHAPE,
        "args.bias.shape"},
       {changed(&args::per_token_scale, [](velo_tensor& t) { t.shape = five; }), VELO_ERR_SHAPE,
        "args.per_token_scale.shape"},
       {[](args& a) { a.weight = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.packed = pack; }, VELO_ERR_ARGUMENT, "args.weight"},
       {[&](args& a) { a.weight = nullptr, a.packed = floats; }, VELO_ERR_DTYPE, "args.packed"},
       {[&](args& a) { a.scale = packed.tensor(); }, VELO_ERR_DTYPE, "args.scale.dtype"},
       {[&](args& a) { a.scale = narrow.tensor(); }, VELO_ERR_DTYPE, "args.scale.dtype"},
       {[](args& a) { a.output_dtype = VELO_QUANT_OUTPUT_INT8; }, VELO_ERR_ARGUMENT,
        "args.per_token_scale"},
       {[](args& a) {
          a.output_dtype = VELO_QUANT_OUTPUT_INT8, a.per_token_scale = nullptr;
          a.act_type = VELO_QUANT_ACTIVATION_RELU;
        },
        VELO_ERR_ARGUMENT, "args.act_type"},
       {[](args& a) { a.output_dtype = VELO_QUANT_OUTPUT_BFLOAT16; }, VELO_ERR_DTYPE,
        "args.y.dtype"}});
}

TEST_CASE("weight_quant_grouped_matmul refuses what does not fit, by name") {
  session s;
  weight_form f;
  quantized_weight w(2, 6, 4, f);
  array<float> x({4, 6}), y({4, 4}), bias({2, 4});
  const std::int64_t counts[] = {1, 3}, wrong[] = {1, 4}, one[] = {4};
  const velo_ints list{counts, 2}, long_list{wrong, 2}, short_list{one, 1};
  velo_weight_quant_grouped_matmul_args valid = VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.weight = w.weight(), valid.scale = w.scale(), valid.y = y.tensor();
  valid.bias = bias.tensor(), valid.group_list = &list;
  valid.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  using args = velo_weight_quant_grouped_matmul_args;
  static const std::int64_t other[] = {4, 5}, flat[] = {2, 5};
  check_refusals<args>(
      s, velo_weight_quant_grouped_matmul, valid, y,
      {{[&](args& a) { a.group_list = &long_list; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[&](args& a) { a.group_list = &short_list; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {changed(&args::x, [](velo_tensor& t) { t.shape = other; }), VELO_ERR_SHAPE, "args.x.shape"},
       {changed(&args::scale, [](velo_tensor& t) { t.shape = flat; }), VELO_ERR_SHAPE,
        "args.scale.shape"},
       {changed(&args::bias, [](velo_tensor& t) { t.shape = flat; }), VELO_ERR_SHAPE,
        "args.bias.shape"},
       {changed(&args::weight, [](velo_tensor& t) { t.ndim = 2; }), VELO_ERR_RANK,
        "args.weight.ndim"}});
}
