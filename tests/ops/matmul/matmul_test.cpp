// matmul and matmul_add_fp32 against double: shapes, transposes, strides, packs, every kernel,
// threads, refusals.
#include <algorithm>

#include "ops/gemm/gemm.hpp"
#include "tests/host_memory.hpp"
#include "tests/ops/matmul/weight_pack.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// A matrix with rows at a distance: the view, and the array that holds it.
template <class T>
struct matrix {
  std::int64_t rows, columns, ld;
  array<T> memory;
  std::int64_t shape[2], strides[2];
  velo_tensor view{};

  matrix(std::int64_t r, std::int64_t c, std::int64_t gap, std::uint64_t seed)
      : rows(r),
        columns(c),
        ld(c + gap),
        memory({r * (c + gap)}),
        shape{r, c},
        strides{c + gap, 1} {
    memory.fill(seed);
  }
  double at(std::int64_t i, std::int64_t j) const {
    return memory.at(static_cast<std::size_t>(i * ld + j));
  }
  const velo_tensor* tensor() {
    view = *memory.tensor();
    view.ndim = 2, view.shape = shape, view.strides = strides;
    return &view;
  }
};

struct form {
  bool transpose_a = false, transpose_b = false, accumulate = false, bias = false, packed = false;
  std::int64_t gap = 0;
};

struct weight_handle {
  velo_pack pack = nullptr;
  ~weight_handle() { velo_pack_destroy(pack); }
};

// One product of In with results in Out. False when the forced kernel does not serve the arguments.
template <class In, class Out>
bool check_product(session& s, std::int64_t m, std::int64_t n, std::int64_t k, const form& f) {
  INFO("m " << m << " n " << n << " k " << k << " ta " << f.transpose_a << " tb " << f.transpose_b
            << " acc " << f.accumulate << " bias " << f.bias << " packed " << f.packed << " gap "
            << f.gap << " bytes " << sizeof(In) << sizeof(Out));
  matrix<In> a(f.transpose_a ? k : m, f.transpose_a ? m : k, f.gap, 1);
  matrix<In> b(f.transpose_b ? n : k, f.transpose_b ? k : n, f.gap, 2);
  matrix<Out> c(m, n, f.gap, 3);
  array<float> bias({n});
  bias.fill(4);
  const matrix<Out> before(m, n, f.gap, 3);

  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.c = c.tensor();
  args.transpose_a = f.transpose_a, args.accumulate = f.accumulate;
  args.dtype = sizeof(Out) == sizeof(In) ? VELO_PRODUCT_DTYPE_LIKE_A : VELO_PRODUCT_DTYPE_FLOAT32;
  if (f.bias) args.bias = bias.tensor();
  weight_handle w;
  if (f.packed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.transpose = f.transpose_b, desc.dtype = dtype_of<In>(), desc.k = k, desc.n = n;
    VELO_RUN(velo_pack_create(s.context(), &desc, &w.pack));
    VELO_RUN(velo_pack_update(s.stream(), w.pack, b.tensor()));
    args.packed = w.pack;
  } else {
    args.b = b.tensor(), args.transpose_b = f.transpose_b;
  }
  const velo_status status = velo_matmul(s.stream(), &args);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);

  const double denormal = std::is_same_v<Out, f16> ? 0x1p-25 : 0;  // half an ulp of one
  for (std::int64_t i = 0; i < m; i = next_compared(i, m)) {
    for (std::int64_t j = 0; j < c.ld; ++j) {
      if (j >= n) {
        if (c.at(i, j) != before.at(i, j)) FAIL("wrote between the rows");
        continue;
      }
      double sum = 0, size = 0;
      for (std::int64_t q = 0; q < k; ++q) {
        const double term =
            (f.transpose_a ? a.at(q, i) : a.at(i, q)) * (f.transpose_b ? b.at(j, q) : b.at(q, j));
        sum += term, size += std::abs(term);
      }
      if (f.bias) sum += bias.at(static_cast<std::size_t>(j)), size += 1;
      if (f.accumulate) sum += before.at(i, j), size += 1;
      const double bound = size * 0x1p-24 * (3 + std::sqrt(static_cast<double>(k))) +
                           std::abs(sum) * rounding<Out>() + denormal;
      if (!(std::abs(c.at(i, j) - sum) <= bound)) {
        FAIL("element " << i << ", " << j << ": got " << c.at(i, j) << ", truth " << sum);
      }
    }
  }
  CHECK(c.memory.intact());
  return true;
}

template <class T>
bool check_add(session& s, std::int64_t t, std::int64_t n, std::int64_t k) {
  INFO("t " << t << " n " << n << " k " << k << " bytes " << sizeof(T));
  array<T> x({t, k}), dy({t, n});
  array<float> grad({n, k});
  x.fill(1), dy.fill(2), grad.fill(3);
  const std::vector<unsigned char> bits = grad.bytes();
  std::vector<double> truth(grad.size());
  for (std::size_t i = 0; i < truth.size(); ++i) truth[i] = grad.at(i);
  const auto width = static_cast<std::size_t>(k), rows = static_cast<std::size_t>(n);
  for (std::size_t q = 0; q < static_cast<std::size_t>(t); ++q) {
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < width; ++j) {
        truth[i * width + j] += dy.at(q * rows + i) * x.at(q * width + j);
      }
    }
  }
  velo_matmul_add_fp32_args a = VELO_MATMUL_ADD_FP32_ARGS_INIT;
  a.total_input = x.tensor(), a.grad_output = dy.tensor(), a.grad = grad.tensor();
  const velo_status status = velo_matmul_add_fp32(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  require_close(grad, truth, 1e-6, 2e-7 * static_cast<double>(t + 4));
  if (t == 0) CHECK(grad.bytes() == bits);
  return true;
}

// The number of kernels that serve some call here: those of the list that the machine and VELO_ISA
// allow, less the dot product where it is slower than float32.
int kernels_that_serve() {
  using velo::core::isa;
  velo::ops::op_id op{};
  REQUIRE(velo::ops::find_op("matmul", op));
  const velo::ops::kernel_list& all = *velo::ops::definition_of(op).kernels;
  const isa highest = session().isa();
  return static_cast<int>(std::count_if(all.entries, all.entries + all.count, [&](const auto& k) {
    return k.isa <= highest && (k.isa != isa::avx512_bf16 || velo::ops::dot_product_pays());
  }));
}

// Both products with 1, 2 and 3 threads, plain and packed, inline and queued.
template <class T>
void check_threads() {
  std::vector<unsigned char> plain_bits, packed_bits, add_bits;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<T> a({333, 500}), b({500, 420}), plain({333, 420}), packed({333, 420});
    array<float> grad({500, 420});
    array<T> dy({333, 420});
    a.fill(1), b.fill(2), dy.fill(3), grad.fill(4);
    const velo_stream queue = s.new_stream();
    const velo_stream on = threads == 3 ? queue : s.stream();
    weight_handle w;
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = dtype_of<T>(), desc.k = 500, desc.n = 420;
    VELO_RUN(velo_pack_create(s.context(), &desc, &w.pack));
    VELO_RUN(velo_pack_update(on, w.pack, b.tensor()));
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = a.tensor(), args.b = b.tensor(), args.c = plain.tensor();
    VELO_RUN(velo_matmul(on, &args));
    args.b = nullptr, args.packed = w.pack, args.c = packed.tensor();
    VELO_RUN(velo_matmul(on, &args));
    velo_matmul_add_fp32_args add = VELO_MATMUL_ADD_FP32_ARGS_INIT;
    add.total_input = dy.tensor(), add.grad_output = a.tensor(), add.grad = grad.tensor();
    VELO_RUN(velo_matmul_add_fp32(on, &add));
    VELO_RUN(velo_stream_synchronize(queue));
    if (plain_bits.empty()) {
      plain_bits = plain.bytes(), packed_bits = packed.bytes(), add_bits = grad.bytes();
    }
    CHECK(plain.bytes() == plain_bits);
    CHECK(packed.bytes() == packed_bits);
    CHECK(plain_bits == packed_bits);
    CHECK(grad.bytes() == add_bits);
  }
}

// A bias of the dtype of a against a float32 bias of the same values.
template <class T>
void check_narrow_bias() {
  session s;
  array<T> a({5, 30}), b({30, 40}), c({5, 40}), again({5, 40}), narrow({40});
  array<float> bias({40});
  a.fill(1), b.fill(2), narrow.fill(3);
  for (std::size_t i = 0; i < 40; ++i) bias[i] = static_cast<float>(narrow.at(i));
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor(), args.bias = narrow.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  args.c = again.tensor(), args.bias = bias.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  CHECK(c.bytes() == again.bytes());
}

const std::int64_t some_sizes[] = {0, 1, 2, 15, 16, 17, 33, 64, 100};

}  // namespace

TEST_CASE(
    "matmul agrees with its definition for every kernel, shape, transpose, stride and dtype") {
  int run = 0;
  for_each_kernel("matmul", [&](session& s) {
    int here = 0;
    for (int bits = 0; bits < 64; ++bits) {
      form f;
      f.transpose_a = bits & 1, f.transpose_b = bits & 2, f.accumulate = bits & 4,
      f.bias = bits & 8;
      f.packed = bits & 16, f.gap = bits & 32 ? 5 : 0;
      const auto size = [&](int salt) {
        return some_sizes[static_cast<std::size_t>((bits * 5 + salt) % 9)];
      };
      here += check_product<float, float>(s, size(1), size(3), size(bits / 9), f);
      here += check_product<bf16, bf16>(s, size(2), size(7), size(bits / 7), f);
      here += check_product<bf16, float>(s, size(4), size(6), size(bits / 8), f);
      here += check_product<f16, f16>(s, size(5), size(2), size(bits / 6), f);
      here += check_product<f16, float>(s, size(8), size(1), size(bits / 5), f);
    }
    run += here > 0;
    for (const std::int64_t n : {0, 1, 70}) {
      for (const std::int64_t k : {0, 1, 40}) {
        for (const std::int64_t m : {0, 1, 35}) {
          check_product<bf16, bf16>(s, m, n, k, {});
          check_product<f16, f16>(s, m, n, k, {});
        }
      }
    }
  });
  CHECK(run == kernels_that_serve());
}

TEST_CASE("large products agree with their definition") {
  for_each_kernel("matmul", [&](session& s) {
    form f;
    check_product<float, float>(s, 150, 700, 600, f);
    check_product<bf16, bf16>(s, 600, 150, 700, f);
    check_product<f16, f16>(s, 150, 600, 700, f);
    f.packed = f.transpose_b = f.bias = true;
    check_product<bf16, float>(s, 40, 600, 1100, f);
    check_product<f16, float>(s, 40, 600, 1100, f);
    check_product<float, float>(s, 300, 130, 1030, f);
  });
}

TEST_CASE("matmul folds the leading dimensions of a") {
  session s;
  array<float> a({3, 4, 5, 7}), b({7, 6}), c({3, 4, 5, 6}), flat_a({60, 7}), flat_c({60, 6});
  a.fill(1), b.fill(2), flat_a.fill(1);
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  args.a = flat_a.tensor(), args.c = flat_c.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  CHECK(c.bytes() == flat_c.bytes());

  // Rows at one distance fold; rows that jump do not.
  const std::int64_t shape[] = {2, 3, 7}, even[] = {24, 8, 1}, jump[] = {30, 8, 1};
  const std::int64_t c_shape[] = {2, 3, 6};
  velo_tensor view = *a.tensor(), out = *c.tensor();
  view.ndim = 3, view.shape = shape, view.strides = even;
  out.ndim = 3, out.shape = c_shape;
  args.a = &view, args.c = &out;
  VELO_RUN(velo_matmul(s.stream(), &args));
  view.strides = jump;
  CHECK_REFUSED(velo_matmul(s.stream(), &args), VELO_ERR_LAYOUT, "args.a.strides");
}

TEST_CASE(
    "matmul gives the same bits for any number of threads, plain and packed, inline and queued") {
  check_threads<bf16>();
  check_threads<f16>();
}

TEST_CASE("a bias of 16 bits is widened exactly") {
  check_narrow_bias<bf16>();
  check_narrow_bias<f16>();
}

TEST_CASE("matmul_add_fp32 adds the unrounded product for every kernel, shape and dtype") {
  int run = 0;
  for_each_kernel("matmul_add_fp32", [&](session& s) {
    int here = 0;
    for (const std::int64_t t : {0, 1, 2, 31, 64, 130}) {
      for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{0, 3},
                                 {3, 0},
                                 {1, 1},
                                 {17, 40},
                                 {64, 32},
                                 {100, 70}}) {
        here += check_add<float>(s, t, n, k);
        here += check_add<bf16>(s, t, n, k);
        here += check_add<f16>(s, t, n, k);
      }
    }
    here += check_add<bf16>(s, 600, 70, 150);
    here += check_add<f16>(s, 600, 70, 150);
    run += here > 0;
  });
  CHECK(run == kernels_that_serve());
}

TEST_CASE("every kernel of matmul serves what velo_op_explain says it serves") {
  session s;
  array<float> a({4, 8}), b({8, 4}), c({4, 4});
  a.fill(1), b.fill(2);
  velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
  args.a = a.tensor(), args.b = b.tensor(), args.c = c.tensor();
  VELO_RUN(velo_matmul(s.stream(), &args));
  session forced(1, "{\"kernel.matmul\": \"amx\"}");
  CHECK_REFUSED(velo_matmul(forced.stream(), &args), VELO_ERR_UNSUPPORTED, "args");
}

TEST_CASE("matmul refuses what does not fit, by name, and leaves c alone") {
  session s;
  array<float> a({4, 8}), b({8, 6}), c({4, 6}), bias({6}), short_bias({5}), wide({4, 7}),
      cube({2, 2, 8});
  array<bf16> half({8, 6}), half_c({4, 6});
  array<std::int32_t> integers({4, 8});
  a.fill(1), b.fill(2), c.fill(3);
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 8, desc.n = 6;
  weight_handle w, other, halves, float16;
  VELO_RUN(velo_pack_create(s.context(), &desc, &w.pack));
  desc.k = 9;
  VELO_RUN(velo_pack_create(s.context(), &desc, &other.pack));
  desc.k = 8, desc.dtype = dtype_of<bf16>();
  VELO_RUN(velo_pack_create(s.context(), &desc, &halves.pack));
  desc.dtype = dtype_of<f16>();
  VELO_RUN(velo_pack_create(s.context(), &desc, &float16.pack));
  const auto no_pack = static_cast<velo_pack>(static_cast<void*>(s.stream()));
  const std::int64_t skipping[] = {16, 2}, repeated[] = {0, 1}, overlapping[] = {5, 1};

  using args = velo_matmul_args;
  args valid = VELO_MATMUL_ARGS_INIT;
  valid.a = a.tensor(), valid.b = b.tensor(), valid.c = c.tensor();
  const auto strides = [](const std::int64_t* of) {
    return [of](velo_tensor& t) { t.strides = of; };
  };
  check_refusals(
      s, velo_matmul, valid, c,
      {{[&](args& x) { x.a = nullptr; }, VELO_ERR_NULL, "args.a"},
       {[&](args& x) { x.b = nullptr; }, VELO_ERR_NULL, "args.b"},
       {[&](args& x) { x.c = nullptr; }, VELO_ERR_NULL, "args.c"},
       {[&](args& x) { x.a = integers.tensor(); }, VELO_ERR_DTYPE, "args.a.dtype"},
       {[&](args& x) { x.b = half.tensor(); }, VELO_ERR_DTYPE, "args.b.dtype"},
       {[&](args& x) { x.b = a.tensor(); }, VELO_ERR_SHAPE, "args.b.shape"},
       {[&](args& x) { x.b = bias.tensor(); }, VELO_ERR_RANK, "args.b.ndim"},
       {[&](args& x) { x.transpose_b = 1; }, VELO_ERR_SHAPE, "args.b.shape"},
       {[&](args& x) { x.transpose_a = 1; }, VELO_ERR_SHAPE, "args.b.shape"},
       {[&](args& x) { x.a = cube.tensor(), x.transpose_a = 1; }, VELO_ERR_RANK, "args.a.ndim"},
       {[&](args& x) { x.c = wide.tensor(); }, VELO_ERR_SHAPE, "args.c.shape"},
       {[&](args& x) { x.c = half_c.tensor(); }, VELO_ERR_DTYPE, "args.c.dtype"},
       {[&](args& x) { x.bias = short_bias.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[&](args& x) { x.dtype = 7; }, VELO_ERR_ARGUMENT, "args.dtype"},
       {[&](args& x) { x.accumulate = 2; }, VELO_ERR_ARGUMENT, "args.accumulate"},
       {[&](args& x) { x.packed = w.pack; }, VELO_ERR_ARGUMENT, "args.b"},
       {changed(&args::a, strides(skipping)), VELO_ERR_LAYOUT, "args.a.strides"},
       {changed(&args::b, strides(skipping)), VELO_ERR_LAYOUT, "args.b.strides"},
       {changed(&args::c, strides(skipping)), VELO_ERR_LAYOUT, "args.c.strides"},
       {changed(&args::c, strides(overlapping)), VELO_ERR_LAYOUT, "args.c.strides"},
       {changed(&args::c, strides(repeated)), VELO_ERR_LAYOUT, "args.c.strides"},
       {changed(&args::c, [&](velo_tensor& t) { t.data = a.data(); }), VELO_ERR_OVERLAP,
        "args.c"}});
  valid.b = nullptr, valid.packed = w.pack;
  check_refusals(s, velo_matmul, valid, c,
                 {{[&](args& x) { x.packed = other.pack; }, VELO_ERR_SHAPE, "args.packed"},
                  {[&](args& x) { x.packed = halves.pack; }, VELO_ERR_DTYPE, "args.packed"},
                  {[&](args& x) { x.packed = float16.pack; }, VELO_ERR_DTYPE, "args.packed"},
                  {[&](args& x) { x.packed = no_pack; }, VELO_ERR_HANDLE, "args.packed"},
                  {[&](args& x) { x.transpose_b = 1; }, VELO_ERR_ARGUMENT, "args.transpose_b"}});
}

TEST_CASE("matmul_add_fp32 refuses what does not fit, by name") {
  session s;
  array<float> x({5, 8}), dy({5, 6}), grad({6, 8}), transposed({8, 6}), few({4, 6});
  array<bf16> half({5, 6});
  using args = velo_matmul_add_fp32_args;
  args valid = VELO_MATMUL_ADD_FP32_ARGS_INIT;
  valid.total_input = x.tensor(), valid.grad_output = dy.tensor(), valid.grad = grad.tensor();
  check_refusals(
      s, velo_matmul_add_fp32, valid, grad,
      {{[&](args& a) { a.grad = nullptr; }, VELO_ERR_NULL, "args.grad"},
       {[&](args& a) { a.grad = transposed.tensor(); }, VELO_ERR_SHAPE, "args.grad.shape"},
       {[&](args& a) { a.grad = half.tensor(); }, VELO_ERR_DTYPE, "args.grad.dtype"},
       {[&](args& a) { a.grad_output = few.tensor(); }, VELO_ERR_SHAPE, "args.grad_output.shape"},
       {[&](args& a) { a.grad_output = half.tensor(); }, VELO_ERR_DTYPE,
        "args.grad_output.dtype"}});
}

TEST_CASE(
    "a pack of experts takes their weights at any distance, and older headers mean a matrix") {
  session s;
  array<float> weight({2, 5, 4, 3}), x({5, 4}), y({5, 3}), expected({5, 3});
  weight.fill(1), x.fill(2);
  const std::int64_t shape[] = {2, 4, 3}, strides[] = {60, 3, 1};
  velo_tensor apart = *weight.tensor();
  apart.ndim = 3, apart.shape = shape, apart.strides = strides;
  const weight_pack pack(s, apart, false);
  const std::int64_t ends[] = {0, 5}, last[] = {4, 3};
  const velo_ints list{ends, 2};
  velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.packed = pack, a.y = y.tensor(), a.group_list = &list;
  VELO_RUN(velo_grouped_matmul(s.stream(), &a));
  velo_tensor second = *weight.tensor();
  second.ndim = 2, second.shape = last, second.data = weight.data() + 60;
  velo_matmul_args one = VELO_MATMUL_ARGS_INIT;
  one.a = x.tensor(), one.b = &second, one.c = expected.tensor();
  VELO_RUN(velo_matmul(s.stream(), &one));
  CHECK(y.bytes() == expected.bytes());

  velo_pack_desc older = VELO_PACK_DESC_INIT;
  older.struct_size = offsetof(velo_pack_desc, count);
  older.k = 4, older.n = 3, older.count = 7;  // beyond the struct that the size states
  weight_handle matrix;
  VELO_RUN(velo_pack_create(s.context(), &older, &matrix.pack));
  VELO_RUN(velo_pack_update(s.stream(), matrix.pack, &second));
}

TEST_CASE("a pack that was not updated holds zeros, whatever its memory held") {
  host_memory host;
  host.fill = 0x41;
  const velo_allocator allocator = host.allocator();
  int tried = 0;
  for (const char* isa : {"scalar", "avx2", "avx512", "avx512_bf16", "amx"}) {
    session s(1, "", &allocator);
    if (velo_config_set(s.context(), "isa", isa) != VELO_OK) continue;  // beyond this machine's
    INFO(isa);
    array<bf16> x({3, 70}), y({3, 50});
    x.fill(1), y.fill(2);
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.k = 70, desc.n = 50, desc.dtype = dtype_of<bf16>();
    weight_handle w;
    VELO_RUN(velo_pack_create(s.context(), &desc, &w.pack));
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = x.tensor(), args.packed = w.pack, args.c = y.tensor();
    VELO_RUN(velo_matmul(s.stream(), &args));
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y.at(i) == 0);
    ++tried;
  }
  CHECK(tried > static_cast<int>(session().isa()));
}

TEST_CASE("packs are made, updated and refused as their header says") {
  session s, stranger;
  velo_pack_desc desc = VELO_PACK_DESC_INIT;
  desc.k = 8, desc.n = 6;
  weight_handle w;
  CHECK_REFUSED(velo_pack_create(nullptr, &desc, &w.pack), VELO_ERR_NULL, "context");
  CHECK_REFUSED(velo_pack_create(s.context(), &desc, nullptr), VELO_ERR_NULL, "pack");
  check_refusals(
      desc, [&](const velo_pack_desc& d) { return velo_pack_create(s.context(), &d, &w.pack); },
      {{[](auto& d) { d.k = -1; }, VELO_ERR_SHAPE, "desc.k"},
       {[](auto& d) { d.count = -1; }, VELO_ERR_SHAPE, "desc.count"},
       {[](auto& d) { d.count = std::int64_t{1} << 31; }, VELO_ERR_SHAPE, "desc.count"},
       {[](auto& d) { d.k = d.n = d.count = (std::int64_t{1} << 31) - 1; }, VELO_ERR_SHAPE,
        "desc.k"},
       {[](auto& d) {
          d.k = 0, d.n = d.count = (std::int64_t{1} << 31) - 1;
          d.dtype = dtype_of<std::int8_t>();
        },
        VELO_ERR_MEMORY, ""},
       {[](auto& d) { d.dtype = dtype_of<std::int8_t>(); }, VELO_ERR_SHAPE, "desc.count"},
       {[](auto& d) { d.dtype = dtype_of<std::int8_t>(), d.count = 1, d.k = 131072; },
        VELO_ERR_SHAPE, "desc.k"},
       {[](auto& d) { d.dtype = dtype_of<double>(); }, VELO_ERR_DTYPE, "desc.dtype"},
       {[](auto& d) { d.transpose = 3; }, VELO_ERR_ARGUMENT, "desc.transpose"}});
  desc.transpose = 1;
  VELO_RUN(velo_pack_create(s.context(), &desc, &w.pack));

  array<float> right({6, 8}), wrong({8, 6});
  array<bf16> half({6, 8});
  VELO_RUN(velo_pack_update(s.stream(), w.pack, right.tensor()));
  const std::int64_t strides[] = {16, 2};
  velo_tensor spread = *right.tensor();
  spread.strides = strides;
  const auto update = [&](const velo_tensor* of) {
    return velo_pack_update(s.stream(), w.pack, of);
  };
  CHECK_REFUSED(update(wrong.tensor()), VELO_ERR_SHAPE, "weight.shape");
  CHECK_REFUSED(update(half.tensor()), VELO_ERR_DTYPE, "weight.dtype");
  CHECK_REFUSED(update(nullptr), VELO_ERR_NULL, "weight");
  CHECK_REFUSED(update(&spread), VELO_ERR_LAYOUT, "weight.strides");
  CHECK_REFUSED(velo_pack_update(stranger.stream(), w.pack, right.tensor()), VELO_ERR_ARGUMENT,
                "stream");
  const velo_pack gone = w.pack;
  velo_pack_destroy(w.pack);
  w.pack = nullptr;
  CHECK_REFUSED(velo_pack_update(s.stream(), gone, right.tensor()), VELO_ERR_HANDLE, "pack");
}
