// ffn against double: plain, weights of int8 and int4, int8 throughout; experts and none, each
// activation, every kernel, refusals.
#include "tests/ops/operator_testing.hpp"
#include "tests/ops/quant/quantized_weight.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

using counts_list = std::vector<std::int64_t>;

double activation(std::int64_t act, double x) {
  switch (act) {
    case VELO_FFN_ACTIVATION_FASTGELU:
      return x / (1 + std::exp(-1.702 * x));
    case VELO_FFN_ACTIVATION_GELU:
    case VELO_FFN_ACTIVATION_GEGLU:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case VELO_FFN_ACTIVATION_SILU:
    case VELO_FFN_ACTIVATION_SWIGLU:
      return x / (1 + std::exp(-x));
    default:
      return x > 0 ? x : 0;
  }
}

// Sizes of a call; without experts the one group is all rows.
struct sizes {
  counts_list counts;
  bool experts;
  std::int64_t k1, n1, n2;
  std::int64_t act = VELO_FFN_ACTIVATION_RELU;

  bool gated() const { return act >= VELO_FFN_ACTIVATION_GEGLU; }
  std::int64_t k2() const { return gated() ? n1 / 2 : n1; }
  std::int64_t groups() const { return static_cast<std::int64_t>(counts.size()); }
  std::int64_t m() const {
    std::int64_t sum = 0;
    for (const std::int64_t c : counts) sum += c;
    return sum;
  }
  std::vector<std::int64_t> shape(std::vector<std::int64_t> of_one) const {
    if (experts) of_one.insert(of_one.begin(), groups());
    return of_one;
  }
  std::int64_t expert_of(std::int64_t row) const {
    std::int64_t e = 0;
    for (; row >= counts[static_cast<std::size_t>(e)]; ++e)
      row -= counts[static_cast<std::size_t>(e)];
    return e;
  }
};

// act(x w1 + b1) of a row, in double.
template <class First>
std::vector<double> between(const sizes& z, const First& first) {
  std::vector<double> h(static_cast<std::size_t>(z.n1)), out;
  for (std::int64_t j = 0; j < z.n1; ++j) h[static_cast<std::size_t>(j)] = first(j);
  for (std::int64_t j = 0; j < z.k2(); ++j) {
    const auto at = static_cast<std::size_t>(j);
    const double factor = z.gated() ? h[at + static_cast<std::size_t>(z.k2())] : 1;
    out.push_back(activation(z.act, h[at]) * factor);
  }
  return out;
}

void set_list(velo_ffn_args& a, const sizes& z, const velo_ints& list) {
  if (z.experts) a.group_list = &list;
  a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  a.activation = z.act;
}

// Norm-wise over the whole result.
template <class T, class Truth>
void check_norm(const array<T>& y, std::int64_t n, double limit, const Truth& truth) {
  double difference = 0, size = 1e-30;
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double want = truth(static_cast<std::int64_t>(i) / n, static_cast<std::int64_t>(i) % n);
    difference += (y.at(i) - want) * (y.at(i) - want), size += want * want;
  }
  CHECK(std::sqrt(difference / size) <= limit);
  CHECK(y.intact());
}

template <class T>
constexpr double norm_limit = sizeof(T) == 4           ? 2e-6
                              : std::is_same_v<T, f16> ? 2e-3
                                                       : 1e-2;

template <class T>
void check_plain(session& s, const sizes& z) {
  INFO("act " << z.act << " experts " << z.experts << " bytes " << sizeof(T));
  array<T> x({z.m(), z.k1}), w1(z.shape({z.k1, z.n1})), w2(z.shape({z.k2(), z.n2})),
      y({z.m(), z.n2});
  array<float> b1(z.shape({z.n1})), b2(z.shape({z.n2}));
  x.fill(1), w1.fill(2), w2.fill(3), b1.fill(4), b2.fill(5);
  const velo_ints list{z.counts.data(), z.groups()};
  velo_ffn_args a = VELO_FFN_ARGS_INIT;
  a.x = x.tensor(), a.weight1 = w1.tensor(), a.weight2 = w2.tensor(), a.y = y.tensor();
  a.bias1 = b1.tensor(), a.bias2 = b2.tensor();
  set_list(a, z, list);
  const velo_status status = velo_ffn(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return;
  VELO_RUN(status);
  const auto at = [](const auto& t, std::int64_t i) { return t.at(static_cast<std::size_t>(i)); };
  std::vector<std::vector<double>> rows;
  for (std::int64_t r = 0; r < z.m(); ++r) {
    const std::int64_t e = z.expert_of(r);
    rows.push_back(between(z, [&](std::int64_t j) {
      double sum = at(b1, e * z.n1 + j);
      for (std::int64_t l = 0; l < z.k1; ++l)
        sum += at(x, r * z.k1 + l) * at(w1, (e * z.k1 + l) * z.n1 + j);
      return sum;
    }));
  }
  check_norm(y, z.n2, norm_limit<T>, [&](std::int64_t r, std::int64_t j) {
    const std::int64_t e = z.expert_of(r);
    double sum = at(b2, e * z.n2 + j);
    for (std::int64_t l = 0; l < z.k2(); ++l)
      sum += rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)] *
             at(w2, (e * z.k2() + l) * z.n2 + j);
    return sum;
  });
}

template <class T>
void check_weights(session& s, const sizes& z, const weight_form& f) {
  INFO("act " << z.act << " experts " << z.experts << " int4 " << f.int4 << " group " << f.group);
  const std::int64_t experts = z.experts ? z.groups() : 1;
  quantized_weight w1(experts, z.k1, z.n1, f), w2(experts, z.n1, z.n2, f);
  array<T> x({z.m(), z.k1}), y({z.m(), z.n2});
  array<float> b1(z.shape({z.n1})), b2(z.shape({z.n2}));
  x.fill(1), b1.fill(4), b2.fill(5);
  const velo_ints list{z.counts.data(), z.groups()};
  velo_ffn_args a = VELO_FFN_ARGS_INIT;
  a.x = x.tensor(), a.y = y.tensor(), a.bias1 = b1.tensor(), a.bias2 = b2.tensor();
  a.weight1 = w1.weight(), a.antiquant_scale1 = w1.scale(), a.antiquant_offset1 = w1.offset();
  a.weight2 = w2.weight(), a.antiquant_scale2 = w2.scale(), a.antiquant_offset2 = w2.offset();
  set_list(a, z, list);
  VELO_RUN(velo_ffn(s.stream(), &a));
  std::vector<std::vector<double>> rows;
  for (std::int64_t r = 0; r < z.m(); ++r) {
    const std::int64_t e = z.expert_of(r);
    rows.push_back(between(z, [&](std::int64_t j) {
      double sum = b1.at(static_cast<std::size_t>(e * z.n1 + j));
      for (std::int64_t l = 0; l < z.k1; ++l)
        sum += x.at(static_cast<std::size_t>(r * z.k1 + l)) * w1.at(e, l, j);
      return sum;
    }));
  }
  check_norm(y, z.n2, norm_limit<T>, [&](std::int64_t r, std::int64_t j) {
    const std::int64_t e = z.expert_of(r);
    double sum = b2.at(static_cast<std::size_t>(e * z.n2 + j));
    for (std::int64_t l = 0; l < z.n1; ++l)
      sum += rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)] * w2.at(e, l, j);
    return sum;
  });
}

// scale_form: 0 one number, 1 one for each expert, 2 one for each column.
template <class T>
void check_integers(session& s, const sizes& z, int scale_form) {
  INFO("act " << z.act << " experts " << z.experts << " scales " << scale_form);
  array<std::int8_t> x({z.m(), z.k1}), w1(z.shape({z.k1, z.n1})), w2(z.shape({z.n1, z.n2}));
  array<std::int32_t> b1(z.shape({z.n1})), b2(z.shape({z.n2}));
  array<float> deq1(z.shape({z.n1})), deq2(z.shape({z.n2})), offset({z.experts ? z.groups() : 1});
  array<float> scale(scale_form == 2   ? z.shape({z.n1})
                     : scale_form == 1 ? std::vector<std::int64_t>{z.groups()}
                                       : std::vector<std::int64_t>{1});
  array<T> y({z.m(), z.n2});
  cheap_random64 draw(3);
  for (array<std::int8_t>* t : {&x, &w1, &w2})
    for (std::size_t i = 0; i < t->size(); ++i) (*t)[i] = static_cast<std::int8_t>(draw() >> 20);
  for (array<std::int32_t>* t : {&b1, &b2})
    for (std::size_t i = 0; i < t->size(); ++i) (*t)[i] = static_cast<std::int32_t>(draw() >> 50);
  deq1.fill(1, 1e-4), deq2.fill(2, 1e-4), scale.fill(3, 40), offset.fill(4, 5);
  const velo_ints list{z.counts.data(), z.groups()};
  velo_ffn_args a = VELO_FFN_ARGS_INIT;
  a.x = x.tensor(), a.weight1 = w1.tensor(), a.weight2 = w2.tensor(), a.y = y.tensor();
  a.bias1 = b1.tensor(), a.bias2 = b2.tensor(), a.scale = scale.tensor();
  a.offset = offset.tensor(), a.deq_scale1 = deq1.tensor(), a.deq_scale2 = deq2.tensor();
  a.output_dtype = sizeof(T) == 4           ? VELO_QUANT_OUTPUT_FLOAT32
                   : std::is_same_v<T, f16> ? VELO_QUANT_OUTPUT_FLOAT16
                                            : VELO_QUANT_OUTPUT_BFLOAT16;
  set_list(a, z, list);
  VELO_RUN(velo_ffn(s.stream(), &a));
  std::vector<std::vector<double>> rows;
  for (std::int64_t r = 0; r < z.m(); ++r) {
    const std::int64_t e = z.expert_of(r);
    rows.push_back(between(z, [&](std::int64_t j) {
      double sum = b1[static_cast<std::size_t>(e * z.n1 + j)];
      for (std::int64_t l = 0; l < z.k1; ++l)
        sum += x[static_cast<std::size_t>(r * z.k1 + l)] *
               w1[static_cast<std::size_t>((e * z.k1 + l) * z.n1 + j)];
      return sum * deq1.at(static_cast<std::size_t>(e * z.n1 + j));
    }));
    for (std::int64_t j = 0; j < z.n1; ++j) {
      const std::int64_t at = scale_form == 2 ? e * z.n1 + j : scale_form == 1 ? e : 0;
      double& h = rows.back()[static_cast<std::size_t>(j)];
      h = std::nearbyint(h * scale.at(static_cast<std::size_t>(at)) +
                         offset.at(static_cast<std::size_t>(e)));
      h = std::min(127.0, std::max(-128.0, h));
    }
  }
  // A number that lies between two integers may become either.
  check_norm(y, z.n2, 5e-3, [&](std::int64_t r, std::int64_t j) {
    const std::int64_t e = z.expert_of(r);
    double sum = b2[static_cast<std::size_t>(e * z.n2 + j)];
    for (std::int64_t l = 0; l < z.n1; ++l)
      sum += rows[static_cast<std::size_t>(r)][static_cast<std::size_t>(l)] *
             w2[static_cast<std::size_t>((e * z.n1 + l) * z.n2 + j)];
    return sum * deq2.at(static_cast<std::size_t>(e * z.n2 + j));
  });
}

const counts_list uneven = {1, 0, 5, 12}, one = {7}, none = {0};

}  // namespace

TEST_CASE("ffn agrees with double for every kernel, activation and dtype, with experts and none") {
  for_each_kernel("ffn", [](session& s) {
    for (std::int64_t act = 0; act < 7; ++act) {
      check_plain<float>(s, {uneven, true, 20, 34, 18, act});
      check_plain<float>(s, {one, false, 33, 48, 7, act});
      check_plain<bf16>(s, {uneven, true, 20, 34, 18, act});
      check_plain<f16>(s, {one, false, 32, 50, 18, act});
    }
    check_plain<float>(s, {none, false, 4, 6, 3});
    check_plain<float>(s, {one, false, 0, 6, 3});
    check_plain<float>(s, {one, false, 4, 0, 3});
  });
}

TEST_CASE("ffn with weights of int8 and int4 agrees with double for every kernel") {
  for_each_kernel("ffn", [](session& s) {
    for (int bits = 0; bits < 4; ++bits) {
      weight_form f;
      f.int4 = bits & 1, f.offset = bits & 2;
      for (const std::int64_t act : {VELO_FFN_ACTIVATION_GELU, VELO_FFN_ACTIVATION_RELU}) {
        check_weights<float>(s, {uneven, true, 20, 34, 18, act}, f);
        check_weights<f16>(s, {{1}, false, 20, 34, 18, act}, f);
        f.group = 32;
        check_weights<bf16>(s, {uneven, true, 64, 32, 18, act}, f);
        f.group = 0;
      }
    }
  });
}

TEST_CASE("ffn of int8 throughout agrees with double for every kernel and form of the scale") {
  for_each_kernel("ffn", [](session& s) {
    for (const std::int64_t act : {VELO_FFN_ACTIVATION_FASTGELU, VELO_FFN_ACTIVATION_GELU,
                                   VELO_FFN_ACTIVATION_RELU, VELO_FFN_ACTIVATION_SILU}) {
      for (int scale = 0; scale < 3; ++scale) {
        check_integers<float>(s, {uneven, true, 20, 34, 18, act}, scale);
        check_integers<f16>(s, {one, false, 65, 48, 7, act}, scale);
      }
      check_integers<bf16>(s, {uneven, true, 20, 34, 18, act}, 0);
    }
  });
}

TEST_CASE("ffn refuses what does not fit, by name") {
  session s;
  array<float> x({4, 6}), w1({2, 6, 8}), w2({2, 8, 3}), y({4, 3}), b1({2, 8}), scale({1});
  array<std::int8_t> i1({2, 6, 8}), i2({2, 8, 3}), ix({4, 6});
  array<float> deq1({2, 8}), deq2({2, 3});
  array<bf16> narrow({2, 8});
  const std::int64_t counts[] = {1, 3}, wrong[] = {1, 2};
  const velo_ints list{counts, 2}, bad{wrong, 2};
  velo_ffn_args valid = VELO_FFN_ARGS_INIT;
  valid.x = x.tensor(), valid.weight1 = w1.tensor(), valid.weight2 = w2.tensor();
  valid.y = y.tensor(), valid.bias1 = b1.tensor(), valid.group_list = &list;
  valid.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  using args = velo_ffn_args;
  static const std::int64_t other[] = {2, 7, 3}, flat[] = {2, 7}, no_experts[] = {8, 3};
  const auto quantized = [&](args& a) { a.weight1 = i1.tensor(), a.weight2 = i2.tensor(); };
  const auto integers = [&, quantized](args& a) {
    quantized(a), a.x = ix.tensor(), a.bias1 = nullptr;
    a.scale = scale.tensor(), a.deq_scale1 = deq1.tensor(), a.deq_scale2 = deq2.tensor();
    a.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
  };
  check_refusals<args>(
      s, velo_ffn, valid, y,
      {{[&](args& a) { a.group_list = &bad; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[](args& a) { a.group_list = nullptr; }, VELO_ERR_NULL, "args.group_list"},
       {changed(&args::weight2, [](velo_tensor& t) { t.shape = other; }), VELO_ERR_SHAPE,
        "args.weight2.shape"},
       {changed(&args::weight2, [](velo_tensor& t) { t.ndim = 2, t.shape = no_experts; }),
        VELO_ERR_RANK, "args.weight2.ndim"},
       {changed(&args::bias1, [](velo_tensor& t) { t.shape = flat; }), VELO_ERR_SHAPE,
        "args.bias1.shape"},
       {[&](args& a) { a.bias1 = narrow.tensor(); }, VELO_ERR_DTYPE, "args.bias1.dtype"},
       {[&](args& a) { a.scale = scale.tensor(); }, VELO_ERR_ARGUMENT, "args.scale"},
       {[&](args& a) { a.deq_scale2 = deq2.tensor(); }, VELO_ERR_ARGUMENT, "args.deq_scale2"},
       {[&](args& a) { a.antiquant_offset1 = deq1.tensor(); }, VELO_ERR_ARGUMENT,
        "args.antiquant_offset1"},
       {[&](args& a) { a.weight1 = i1.tensor(); }, VELO_ERR_DTYPE, "args.weight2.dtype"},
       {quantized, VELO_ERR_NULL, "args.antiquant_scale1"},
       {[&](args& a) {
          quantized(a), a.antiquant_scale1 = deq1.tensor(), a.antiquant_scale2 = deq2.tensor();
          a.activation = VELO_FFN_ACTIVATION_SWIGLU;
        },
        VELO_ERR_ARGUMENT, "args.activation"},
       {[&](args& a) { integers(a), a.deq_scale1 = nullptr; }, VELO_ERR_NULL, "args.deq_scale1"},
       {[&](args& a) { integers(a), a.output_dtype = VELO_QUANT_OUTPUT_INT8; }, VELO_ERR_ARGUMENT,
        "args.output_dtype"},
       {[&](args& a) { integers(a), a.antiquant_scale1 = deq1.tensor(); }, VELO_ERR_ARGUMENT,
        "args.antiquant_scale1"},
       {[&](args& a) { integers(a), a.scale = deq2.tensor(); }, VELO_ERR_SHAPE,
        "args.scale.shape"}});
}

TEST_CASE("ffn refuses lists without experts, and precision that bfloat16 does not have") {
  session s;
  array<bf16> x({4, 6}), w1({6, 8}), w2({8, 3}), y({4, 3});
  const std::int64_t counts[] = {4};
  const velo_ints list{counts, 1};
  velo_ffn_args a = VELO_FFN_ARGS_INIT;
  a.x = x.tensor(), a.weight1 = w1.tensor(), a.weight2 = w2.tensor(), a.y = y.tensor();
  a.inner_precise = 1;
  CHECK_REFUSED(velo_ffn(s.stream(), &a), VELO_ERR_ARGUMENT, "args.inner_precise");
  a.inner_precise = 0, a.group_list = &list;
  CHECK_REFUSED(velo_ffn(s.stream(), &a), VELO_ERR_ARGUMENT, "args.group_list");
}
