// grouped_matmul, its gradient and grouped_matmul_add_fp32 against double: groups of rows and of
// depth, empty groups, packs, every kernel, threads, forms of the list, refusals.
#include <optional>

#include "tests/ops/matmul/checked_sum.hpp"
#include "tests/ops/matmul/weight_pack.hpp"

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

// Element i, j of op(t) with op(t) [rows][columns] behind `first` elements.
template <class T>
double at(const array<T>& t, std::int64_t first, bool transposed, std::int64_t rows,
          std::int64_t columns, std::int64_t i, std::int64_t j) {
  return t.at(static_cast<std::size_t>(first + (transposed ? j * rows + i : i * columns + j)));
}

struct form {
  bool turned = false, accumulate = false, bias = false, packed = false;
};

template <class In, class Out>
bool check_rows(session& s, const counts_list& counts, std::int64_t n, std::int64_t k, form f) {
  INFO("n " << n << " k " << k << " bytes " << sizeof(In) << sizeof(Out) << " turned " << f.turned
            << " packed " << f.packed);
  const std::int64_t m = sum_of(counts), groups = static_cast<std::int64_t>(counts.size());
  array<In> x({m, k}), weight({groups, f.turned ? n : k, f.turned ? k : n});
  array<Out> y({m, n}), before({m, n});
  array<float> bias({groups, n});
  x.fill(1), weight.fill(2), y.fill(3), before.fill(3), bias.fill(4);
  const velo_ints list{counts.data(), groups};
  velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = weight.tensor(), a.y = y.tensor(), a.group_list = &list;
  a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  a.transpose_weight = f.turned, a.accumulate = f.accumulate;
  a.dtype = sizeof(Out) == sizeof(In) ? VELO_PRODUCT_DTYPE_LIKE_A : VELO_PRODUCT_DTYPE_FLOAT32;
  if (f.bias) a.bias = bias.tensor();
  std::optional<weight_pack> pack;
  if (f.packed) {
    pack.emplace(s, *weight.tensor(), f.turned);
    a.weight = nullptr, a.packed = *pack, a.transpose_weight = 0;
  }
  const velo_status status = velo_grouped_matmul(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  std::int64_t row = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    for (const std::int64_t end = row + counts[static_cast<std::size_t>(e)]; row < end; ++row) {
      for (std::int64_t j = 0; j < n; ++j) {
        checked_sum truth;
        for (std::int64_t q = 0; q < k; ++q)
          truth.add(at(x, 0, false, m, k, row, q) * at(weight, e * k * n, f.turned, k, n, q, j));
        if (f.bias) truth.add(bias.at(static_cast<std::size_t>(e * n + j)));
        if (f.accumulate) truth.add(at(before, 0, false, m, n, row, j));
        truth.require<Out>(at(y, 0, false, m, n, row, j));
      }
    }
  }
  CHECK(y.intact());
  return true;
}

template <class In, class Out>
bool check_depth(session& s, const counts_list& counts, std::int64_t m, std::int64_t n, bool tx,
                 bool tw, bool accumulate) {
  INFO("m " << m << " n " << n << " bytes " << sizeof(In) << sizeof(Out) << " tx " << tx << tw);
  const std::int64_t k = sum_of(counts), groups = static_cast<std::int64_t>(counts.size());
  array<In> x({tx ? k : m, tx ? m : k}), weight({tw ? n : k, tw ? k : n});
  array<Out> y({groups, m, n}), before({groups, m, n});
  x.fill(1), weight.fill(2), y.fill(3), before.fill(3);
  const velo_ints list{counts.data(), groups};
  velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = weight.tensor(), a.y = y.tensor(), a.group_list = &list;
  a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS, a.group_type = VELO_GROUP_TYPE_DEPTH;
  a.transpose_x = tx, a.transpose_weight = tw, a.accumulate = accumulate;
  a.dtype = sizeof(Out) == sizeof(In) ? VELO_PRODUCT_DTYPE_LIKE_A : VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_grouped_matmul(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    const std::int64_t end = first + counts[static_cast<std::size_t>(e)];
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        checked_sum truth;
        for (std::int64_t q = first; q < end; ++q)
          truth.add(at(x, 0, tx, m, k, i, q) * at(weight, 0, tw, k, n, q, j));
        if (accumulate) truth.add(at(before, e * m * n, false, m, n, i, j));
        truth.require<Out>(at(y, e * m * n, false, m, n, i, j));
      }
    }
    first = end;
  }
  CHECK(y.intact());
  return true;
}

const counts_list uneven = {1, 3, 0, 5, 7, 0, 33, 2}, empty = {0, 0, 0}, long_ones = {70, 0, 300};

template <class In, class Out>
int check_forms(session& s) {
  int served = 0;
  for (int bits = 0; bits < 8; ++bits) {
    const form f = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    served += check_rows<In, Out>(s, uneven, 32, 64, f);
    check_rows<In, Out>(s, uneven, 17 + bits, 3 * bits, f);
    check_depth<In, Out>(s, uneven, 33, 20 + bits, f.turned, f.bias, f.accumulate);
    check_rows<In, Out>(s, uneven, 97 + bits, 5 * bits, {f.turned, f.accumulate, f.bias, true});
  }
  check_rows<In, Out>(s, empty, 8, 8, {});
  check_depth<In, Out>(s, empty, 8, 8, true, false, false);
  check_rows<In, Out>(s, {5}, 600, 1100, {});
  check_rows<In, Out>(s, long_ones, 100, 40, {true, false, true});
  check_depth<In, Out>(s, long_ones, 70, 130, true, false, true);
  return served;
}

// The gradient of sum(y * dy) with respect to x, weight and bias, of a matrix each.
template <class T>
bool check_gradient(session& s, const counts_list& counts, std::int64_t n, std::int64_t k,
                    bool turned, bool accumulate) {
  INFO("n " << n << " k " << k << " bytes " << sizeof(T) << " turned " << turned);
  const std::int64_t m = sum_of(counts), groups = static_cast<std::int64_t>(counts.size());
  array<T> x({m, k}), weight({groups, turned ? n : k, turned ? k : n}), dy({m, n}), dx({m, k});
  array<float> dweight({groups, turned ? n : k, turned ? k : n}), dbias({groups, n});
  x.fill(1), weight.fill(2), dy.fill(3), dweight.fill(4, accumulate), dbias.fill(5, accumulate);
  array<float> old_dweight({groups, turned ? n : k, turned ? k : n}), old_dbias({groups, n});
  old_dweight.fill(4, accumulate), old_dbias.fill(5, accumulate);
  const velo_ints list{counts.data(), groups};
  velo_grouped_matmul_backward_args a = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
  a.dy = dy.tensor(), a.x = x.tensor(), a.weight = weight.tensor(), a.group_list = &list;
  a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS, a.transpose_weight = turned;
  a.dx = dx.tensor(), a.dweight = dweight.tensor(), a.dbias = dbias.tensor();
  a.accumulate = accumulate, a.dtype = VELO_PRODUCT_DTYPE_FLOAT32;
  const velo_status status = velo_grouped_matmul_backward(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    const std::int64_t end = first + counts[static_cast<std::size_t>(e)];
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t row = first; row < end; ++row) {
        checked_sum truth;
        for (std::int64_t j = 0; j < n; ++j)
          truth.add(at(dy, 0, false, m, n, row, j) * at(weight, e * k * n, turned, k, n, i, j));
        truth.require<T>(at(dx, 0, false, m, k, row, i));
      }
      for (std::int64_t j = 0; j < n; ++j) {
        checked_sum truth;
        for (std::int64_t row = first; row < end; ++row)
          truth.add(at(x, 0, false, m, k, row, i) * at(dy, 0, false, m, n, row, j));
        truth.add(at(old_dweight, e * k * n, turned, k, n, i, j));
        truth.require<float>(at(dweight, e * k * n, turned, k, n, i, j));
      }
    }
    for (std::int64_t j = 0; j < n; ++j) {
      checked_sum truth;
      for (std::int64_t row = first; row < end; ++row) truth.add(at(dy, 0, false, m, n, row, j));
      truth.add(old_dbias.at(static_cast<std::size_t>(e * n + j)));
      truth.require<float>(dbias.at(static_cast<std::size_t>(e * n + j)));
    }
    first = end;
  }
  CHECK((dx.intact() && dweight.intact() && dbias.intact()));
  return true;
}

template <class T>
void check_bits() {
  const counts_list counts = {40, 0, 3, 700, 8, 17};
  const std::int64_t m = sum_of(counts), n = 500, k = 1100;
  std::vector<unsigned char> y_bits, dx_bits, dweight_bits, dbias_bits;
  for (const int threads : {1, 2, 3}) {
    session s(threads);
    array<T> x({m, k}), weight({6, k, n}), y({m, n}), dx({m, k}), dweight({6, k, n}), alone({m, n});
    array<float> dbias({6, n});
    x.fill(1), weight.fill(2);
    const velo_ints list{counts.data(), 6};
    velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
    a.x = x.tensor(), a.weight = weight.tensor(), a.y = y.tensor(), a.group_list = &list;
    a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
    VELO_RUN(velo_grouped_matmul(s.stream(), &a));
    const weight_pack pack(s, *weight.tensor(), false);
    array<T> from_pack({m, n});
    velo_grouped_matmul_args packed = a;
    packed.weight = nullptr, packed.packed = pack, packed.y = from_pack.tensor();
    const velo_stream queue = s.new_stream();
    VELO_RUN(velo_grouped_matmul(queue, &packed));
    VELO_RUN(velo_stream_synchronize(queue));
    CHECK(from_pack.bytes() == y.bytes());
    velo_grouped_matmul_backward_args b = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
    b.dy = y.tensor(), b.x = x.tensor(), b.weight = weight.tensor(), b.group_list = &list;
    b.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
    b.dx = dx.tensor(), b.dweight = dweight.tensor(), b.dbias = dbias.tensor();
    VELO_RUN(velo_grouped_matmul_backward(s.stream(), &b));
    if (y_bits.empty()) {
      y_bits = y.bytes(), dx_bits = dx.bytes();
      dweight_bits = dweight.bytes(), dbias_bits = dbias.bytes();
    }
    CHECK(y.bytes() == y_bits);
    CHECK(dx.bytes() == dx_bits);
    CHECK(dweight.bytes() == dweight_bits);
    CHECK(dbias.bytes() == dbias_bits);
    std::int64_t row = 0;
    for (std::int64_t e = 0; e < 6; ++e) {
      const std::int64_t rows = counts[static_cast<std::size_t>(e)];
      const std::int64_t x_shape[] = {rows, k}, w_shape[] = {k, n}, y_shape[] = {rows, n};
      velo_tensor part = *x.tensor(), matrix = *weight.tensor(), out = *alone.tensor();
      part.data = x.data() + row * k, part.shape = x_shape;
      matrix.data = weight.data() + e * k * n, matrix.ndim = 2, matrix.shape = w_shape;
      out.data = alone.data() + row * n, out.shape = y_shape;
      velo_matmul_args one = VELO_MATMUL_ARGS_INIT;
      one.a = &part, one.b = &matrix, one.c = &out;
      VELO_RUN(velo_matmul(s.stream(), &one));
      row += rows;
    }
    CHECK(alone.bytes() == y_bits);
  }
}

template <class T>
bool check_add(session& s, bool flat) {
  const std::int64_t m = sum_of(uneven), k = 40, n = 24, groups = 8;
  array<T> x({m, k}), dy({m, n});
  array<float> grad(flat ? std::vector<std::int64_t>{groups * k, n}
                         : std::vector<std::int64_t>{groups, k, n});
  array<float> before({groups, k, n});
  x.fill(1), dy.fill(2), grad.fill(3), before.fill(3);
  counts_list ends = uneven;
  for (std::size_t e = 1; e < ends.size(); ++e) ends[e] += ends[e - 1];
  const velo_ints list{ends.data(), groups};
  velo_grouped_matmul_add_fp32_args a = VELO_GROUPED_MATMUL_ADD_FP32_ARGS_INIT;
  a.x = x.tensor(), a.dy = dy.tensor(), a.grad = grad.tensor(), a.group_list = &list;
  const velo_status status = velo_grouped_matmul_add_fp32(s.stream(), &a);
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  std::int64_t first = 0;
  for (std::int64_t e = 0; e < groups; ++e) {
    const std::int64_t end = ends[static_cast<std::size_t>(e)];
    for (std::int64_t i = 0; i < k; ++i) {
      for (std::int64_t j = 0; j < n; ++j) {
        checked_sum truth;
        for (std::int64_t q = first; q < end; ++q)
          truth.add(at(x, 0, false, m, k, q, i) * at(dy, 0, false, m, n, q, j));
        truth.add(at(before, e * k * n, false, k, n, i, j));
        truth.require<float>(at(grad, e * k * n, false, k, n, i, j));
      }
    }
    first = end;
  }
  return true;
}

}  // namespace

TEST_CASE("grouped_matmul agrees with its definition for every kernel, axis, form and dtype") {
  for_each_kernel("grouped_matmul", [](session& s) {
    check_forms<float, float>(s);
    check_forms<bf16, bf16>(s);
    check_forms<bf16, float>(s);
    check_forms<f16, f16>(s);
    check_forms<f16, float>(s);
  });
}

TEST_CASE("grouped_matmul_backward agrees with double for every kernel and dtype") {
  for_each_kernel("grouped_matmul_backward", [](session& s) {
    for (const bool turned : {false, true}) {
      for (const bool accumulate : {false, true}) {
        check_gradient<float>(s, uneven, 20, 35, turned, accumulate);
        check_gradient<bf16>(s, uneven, 32, 64, turned, accumulate);
        check_gradient<f16>(s, uneven, 33, 18, turned, accumulate);
        check_gradient<bf16>(s, long_ones, 50, 40, turned, accumulate);
      }
    }
  });
}

TEST_CASE("grouped_matmul_backward is the slope of grouped_matmul") {
  session s;
  array<float> x({6, 5}), weight({3, 5, 4}), bias({3, 4}), y({6, 4}), dy({6, 4});
  array<float> dx({6, 5}), dweight({3, 5, 4}), dbias({3, 4});
  x.fill(1), weight.fill(2), bias.fill(3), dy.fill(4);
  const std::int64_t ends[] = {2, 2, 6};
  const velo_ints list{ends, 3};
  velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = weight.tensor(), a.bias = bias.tensor(), a.y = y.tensor();
  a.group_list = &list;
  velo_grouped_matmul_backward_args b = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.x = x.tensor(), b.weight = weight.tensor(), b.group_list = &list;
  b.dx = dx.tensor(), b.dweight = dweight.tensor(), b.dbias = dbias.tensor();
  VELO_RUN(velo_grouped_matmul_backward(s.stream(), &b));
  const auto objective = [&] {
    VELO_RUN(velo_grouped_matmul(s.stream(), &a));
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += y.at(i) * dy.at(i);
    return sum;
  };
  check_slope(x, dx, objective);
  check_slope(weight, dweight, objective);
  check_slope(bias, dbias, objective);
}

TEST_CASE("grouped products have the bits of products alone, for any number of threads") {
  check_bits<float>();
  check_bits<bf16>();
  check_bits<f16>();
}

TEST_CASE("grouped_matmul_add_fp32 adds the unrounded product for every kernel and dtype") {
  for_each_kernel("grouped_matmul_add_fp32", [](session& s) {
    for (const bool flat : {false, true}) {
      check_add<float>(s, flat);
      check_add<bf16>(s, flat);
      check_add<f16>(s, flat);
    }
  });
}

TEST_CASE("every form of a list of groups gives the same result") {
  session s;
  array<float> x({9, 6}), weight({4, 6, 5}), y({9, 5});
  x.fill(1), weight.fill(2);
  const std::int64_t counts[] = {2, 0, 3, 4}, ends[] = {2, 2, 5, 9};
  const velo_ints counts_ints{counts, 4}, ends_ints{ends, 4};
  array<std::int64_t> tensor({4});
  velo_grouped_matmul_args a = VELO_GROUPED_MATMUL_ARGS_INIT;
  a.x = x.tensor(), a.weight = weight.tensor(), a.y = y.tensor(), a.group_list = &ends_ints;
  VELO_RUN(velo_grouped_matmul(s.stream(), &a));
  const std::vector<unsigned char> bits = y.bytes();
  const auto again = [&](const velo_ints* ints, const std::int64_t* values, std::int64_t kind) {
    y.fill(7);
    a.group_list = ints, a.group_list_kind = kind, a.group_list_tensor = nullptr;
    if (values != nullptr) {
      std::copy(values, values + 4, tensor.data());
      a.group_list_tensor = tensor.tensor();
    }
    const velo_stream queue = s.new_stream();
    VELO_RUN(velo_grouped_matmul(queue, &a));
    VELO_RUN(velo_stream_synchronize(queue));
    CHECK(y.bytes() == bits);
  };
  again(&counts_ints, nullptr, VELO_GROUP_LIST_KIND_COUNTS);
  again(nullptr, counts, VELO_GROUP_LIST_KIND_COUNTS);
  again(nullptr, ends, VELO_GROUP_LIST_KIND_CUMULATIVE);
}

TEST_CASE("grouped_matmul refuses what does not fit, by name, and leaves y alone") {
  session s;
  array<float> x({9, 6}), weight({3, 6, 5}), y({9, 5}), bias({3, 5}), matrix({6, 5});
  array<bf16> half({3, 6, 5});
  y.fill(1);
  const std::int64_t good[] = {2, 2, 9}, falling[] = {3, 2, 9}, short_of[] = {2, 2, 8},
                     beyond[] = {2, 2, 10}, negative[] = {-1, 2, 9};
  const velo_ints list{good, 3}, fewer{good + 1, 2}, down{falling, 3}, missing{short_of, 3},
      over{beyond, 3}, below{negative, 3};
  array<std::int64_t> tensor({3});
  std::copy(falling, falling + 3, tensor.data());
  velo_grouped_matmul_args valid = VELO_GROUPED_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.weight = weight.tensor(), valid.y = y.tensor();
  valid.group_list = &list, valid.bias = bias.tensor();
  using args = velo_grouped_matmul_args;
  check_refusals<args>(
      s, velo_grouped_matmul, valid, y,
      {{[](args& a) { a.group_list = nullptr; }, VELO_ERR_NULL, "args.group_list"},
       {[&](args& a) { a.group_list_tensor = tensor.tensor(); }, VELO_ERR_ARGUMENT,
        "args.group_list"},
       {[&](args& a) { a.group_list = &fewer; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](args& a) { a.group_list = &down; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[&](args& a) { a.group_list = &missing; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[&](args& a) { a.group_list = &over; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[&](args& a) { a.group_list = &below; }, VELO_ERR_ARGUMENT, "args.group_list"},
       {[](args& a) { a.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS; }, VELO_ERR_ARGUMENT,
        "args.group_list"},
       {[&](args& a) { a.group_list = nullptr, a.group_list_tensor = tensor.tensor(); },
        VELO_ERR_ARGUMENT, "args.group_list_tensor"},
       {[](args& a) { a.group_type = 1; }, VELO_ERR_ARGUMENT, "args.group_type"},
       {[](args& a) { a.transpose_x = 1; }, VELO_ERR_ARGUMENT, "args.transpose_x"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_SHAPE, "args.weight.shape"},
       {[&](args& a) { a.weight = half.tensor(); }, VELO_ERR_DTYPE, "args.weight.dtype"},
       {[&](args& a) { a.weight = matrix.tensor(); }, VELO_ERR_RANK, "args.weight.ndim"},
       {[&](args& a) { a.bias = matrix.tensor(); }, VELO_ERR_SHAPE, "args.bias.shape"},
       {[](args& a) { a.group_type = VELO_GROUP_TYPE_DEPTH; }, VELO_ERR_RANK, "args.weight.ndim"},
       {[](args& a) { a.dtype = 7; }, VELO_ERR_ARGUMENT, "args.dtype"}});
}

TEST_CASE("grouped_matmul refuses packs that do not fit, by name, and leaves y alone") {
  session s;
  array<float> x({9, 6}), weight({3, 6, 5}), y({9, 5}), one({6, 5}), two({2, 6, 5}),
      deep({3, 7, 5});
  array<bf16> half({3, 6, 5});
  array<std::int8_t> integers({3, 6, 5});
  const weight_pack good(s, *weight.tensor(), false), matrix(s, *one.tensor(), false),
      fewer(s, *two.tensor(), false), other(s, *deep.tensor(), false),
      halves(s, *half.tensor(), false), bytes(s, *integers.tensor(), false);
  y.fill(1);
  const std::int64_t ends[] = {2, 2, 9};
  const velo_ints list{ends, 3};
  velo_grouped_matmul_args valid = VELO_GROUPED_MATMUL_ARGS_INIT;
  valid.x = x.tensor(), valid.packed = good, valid.y = y.tensor(), valid.group_list = &list;
  using args = velo_grouped_matmul_args;
  check_refusals<args>(
      s, velo_grouped_matmul, valid, y,
      {{[](args& a) { a.packed = nullptr; }, VELO_ERR_NULL, "args.weight"},
       {[&](args& a) { a.weight = weight.tensor(); }, VELO_ERR_ARGUMENT, "args.weight"},
       {[](args& a) { a.transpose_weight = 1; }, VELO_ERR_ARGUMENT, "args.transpose_weight"},
       {[&](args& a) { a.packed = matrix; }, VELO_ERR_SHAPE, "args.packed"},
       {[&](args& a) { a.packed = fewer; }, VELO_ERR_SHAPE, "args.packed"},
       {[&](args& a) { a.packed = other; }, VELO_ERR_SHAPE, "args.packed"},
       {[&](args& a) { a.packed = halves; }, VELO_ERR_DTYPE, "args.packed"},
       {[&](args& a) { a.packed = bytes; }, VELO_ERR_DTYPE, "args.packed"},
       {[](args& a) { a.group_type = VELO_GROUP_TYPE_DEPTH; }, VELO_ERR_ARGUMENT, "args.packed"}});
  const std::int64_t none_shape[] = {0, 6}, none_result[] = {0, 5};
  velo_tensor none = *x.tensor(), nothing = *y.tensor();
  none.shape = none_shape, nothing.shape = none_result;
  const velo_ints no_groups{nullptr, 0};
  args empty = valid;
  empty.x = &none, empty.y = &nothing, empty.group_list = &no_groups, empty.packed = matrix;
  CHECK_REFUSED(velo_grouped_matmul(s.stream(), &empty), VELO_ERR_SHAPE, "args.packed");
  empty.packed = good;
  VELO_RUN(velo_grouped_matmul(s.stream(), &empty));
  velo_matmul_args product = VELO_MATMUL_ARGS_INIT;
  product.a = x.tensor(), product.c = y.tensor(), product.packed = good;
  CHECK_REFUSED(velo_matmul(s.stream(), &product), VELO_ERR_SHAPE, "args.packed");
  product.packed = bytes;
  CHECK_REFUSED(velo_matmul(s.stream(), &product), VELO_ERR_DTYPE, "args.packed");
}

TEST_CASE("the gradient of grouped_matmul names the input that a result needs") {
  session s;
  array<float> x({4, 3}), weight({2, 3, 5}), dy({4, 5}), dx({4, 3}), dweight({2, 3, 5});
  const std::int64_t ends[] = {1, 4};
  const velo_ints list{ends, 2};
  velo_grouped_matmul_backward_args a = VELO_GROUPED_MATMUL_BACKWARD_ARGS_INIT;
  a.dy = dy.tensor(), a.dx = dx.tensor(), a.group_list = &list;
  CHECK_REFUSED(velo_grouped_matmul_backward(s.stream(), &a), VELO_ERR_NULL, "args.weight");
  a.dx = nullptr, a.dweight = dweight.tensor();
  CHECK_REFUSED(velo_grouped_matmul_backward(s.stream(), &a), VELO_ERR_NULL, "args.x");
  a.x = x.tensor();
  VELO_RUN(velo_grouped_matmul_backward(s.stream(), &a));
}
