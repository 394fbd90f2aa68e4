// Quantized products next to a sum over ranks: a weight of int8 or int4 against double, int8 by
// int8 against quant_grouped_matmul bit for bit, the norm behind the sum against the calls apart;
// which fields of one form are refused beside those of another.
#include <cmath>

#include "comm/processes.hpp"
#include "comm/ranks.hpp"
#include "tests/sched/overlap/matrices.hpp"

using namespace velo::testing;

namespace {

using sizes = std::vector<std::int64_t>;
constexpr velo_dtype u64{VELO_DTYPE_UINT, 64, 1};

// Integers of a weight, all of int8, or two numbers of int4 in a byte.
std::vector<std::uint8_t> drawn_bytes(std::int64_t count, int seed) {
  std::vector<std::uint8_t> all(at(count));
  cheap_random draw(static_cast<std::uint32_t>(seed) * 2654435761u + 7);
  for (std::uint8_t& one : all) one = static_cast<std::uint8_t>(draw() >> 13);
  return all;
}

// Products of two ranks or more that are multiplied and summed in any precision, and the call that
// norms a sum, from the same fields.
template <class Args>
velo_status normed(velo_stream stream, const Args& by, const matrix& residual, const matrix& gamma,
                   const matrix& y, const matrix& norm) {
  const velo_tensor other = residual.view(), gain = gamma.view(), z = y.view(), out = norm.view();
  velo_matmul_all_reduce_add_rms_norm_args args = VELO_MATMUL_ALL_REDUCE_ADD_RMS_NORM_ARGS_INIT;
  args.group = by.group, args.x = by.x, args.weight = by.weight, args.scale = by.scale;
  args.offset = by.offset, args.group_size = by.group_size, args.dequant_scale = by.dequant_scale;
  args.transpose_weight = by.transpose_weight;
  args.residual = &other, args.gamma = &gain, args.y = &z, args.norm_out = &out;
  args.epsilon = 1e-5;
  return velo_matmul_all_reduce_add_rms_norm(stream, &args);
}

// The same of the calls apart: a sum without a bias in `norm`, and dropout_add_rms_norm over it.
template <class Args>
velo_status norm_apart(velo_stream stream, Args by, const matrix& residual, const matrix& gamma,
                       const matrix& y, const matrix& norm) {
  const velo_tensor other = residual.view(), gain = gamma.view(), z = y.view(), out = norm.view();
  by.y = &out, by.bias = nullptr;
  const velo_status done = velo_matmul_all_reduce(stream, &by);
  velo_dropout_add_rms_norm_args then = VELO_DROPOUT_ADD_RMS_NORM_ARGS_INIT;
  then.x = then.y = &out, then.residual = &other, then.gamma = &gain, then.pre_norm = &z,
  then.epsilon = 1e-5;
  return done == VELO_OK ? velo_dropout_add_rms_norm(stream, &then) : done;
}

// ---- a quantized weight ----

struct weight_form {
  const char* name;
  sizes scale;              // shape
  std::int64_t group_size;  // the field
  std::int64_t group;       // rows of k that share a scale
  bool offset = false, int4 = false, transposed = false;
};

constexpr std::int64_t depth = 144, columns = 56;
const weight_form weight_forms[] = {
    {"one scale", {1}, 0, depth},
    {"one scale and offset", {1}, 0, depth, true, false, true},
    {"a scale a column", {columns}, 0, depth, true, true},
    {"a row of scales", {1, columns}, 0, depth, false, false, true},
    {"short last group", {5, columns}, 32, 32},
    {"short last group, offset", {5, columns}, 32, 32, true, false, true},
    {"short last group of int4", {2, columns}, 128, 128, true, true},
    {"short last group of int4, turned", {3, columns}, 64, 64, false, true, true},
};

class weight_call {
 public:
  weight_call(const weight_form& form, velo_dtype dtype, std::int64_t m, int rank)
      : form_(form),
        stored_{form.transposed ? columns : depth, form.transposed ? depth : columns},
        integers_(drawn_bytes(depth * columns, rank)),
        x_(dtype, {m, depth}, 5 * rank),
        scale_(rank % 2 == 0 ? f32 : dtype, form.scale, 5 * rank + 1),
        offset_(rank % 2 == 0 ? f32 : dtype, form.scale, 5 * rank + 2),
        bias_(f32, {1, columns}, 99),
        residual_(dtype, {m, columns}, 98),
        gamma_(dtype, {columns}, 97),
        y(dtype, {m, columns}),
        z(dtype, {m, columns}),
        norm(dtype, {m, columns}),
        z_apart(dtype, {m, columns}),
        norm_apart_(dtype, {m, columns}) {
    if (form.int4) stored_[1] /= 2;
  }

  // All calls of a rank.
  velo_status run(const rank_of_group& me) const {
    const velo_tensor x = x_.view(), out = y.view(), bias = bias_.view(), scale = scale_.view(),
                      offset = offset_.view(),
                      weight = view_of(integers_.data(), form_.int4 ? u8 : i8, stored_);
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.y = &out, args.bias = &bias;
    args.scale = &scale, args.offset = form_.offset ? &offset : nullptr;
    args.group_size = form_.group_size, args.transpose_weight = form_.transposed;
    velo_status done = velo_matmul_all_reduce(me.stream, &args);
    if (done == VELO_OK) done = normed(me.stream, args, residual_, gamma_, z, norm);
    if (done == VELO_OK)
      done = norm_apart(me.stream, args, residual_, gamma_, z_apart, norm_apart_);
    return done;
  }
  bool norm_has_bits_of_calls_apart() const {
    return z.same_bits(z_apart) && norm.same_bits(norm_apart_);
  }
  bool borders_kept() const { return y.borders_kept() && norm.borders_kept(); }

  // The exact product, and the sum of its terms' magnitudes.
  std::pair<double, double> product(std::int64_t row, std::int64_t column) const {
    double sum = 0, size = 0;
    for (std::int64_t i = 0; i < depth; ++i) {
      const double term = x_[row * depth + i] * weight_at(i, column);
      sum += term, size += std::abs(term);
    }
    return {sum, size};
  }
  double bias(std::int64_t column) const { return bias_[column]; }

 private:
  double weight_at(std::int64_t i, std::int64_t column) const {
    const std::int64_t element = form_.transposed ? column * depth + i : i * columns + column;
    const std::uint8_t byte = integers_[at(form_.int4 ? element / 2 : element)];
    const int four = byte >> (element % 2 * 4) & 0xf;
    const double integer = form_.int4 ? four - (four & 8) * 2 : static_cast<std::int8_t>(byte);
    const std::int64_t at_scale = scale_.count() == 1 ? 0 : i / form_.group * columns + column;
    return (integer + (form_.offset ? offset_[at_scale] : 0)) * scale_[at_scale];
  }

  const weight_form& form_;
  std::int64_t stored_[2];
  std::vector<std::uint8_t> integers_;
  matrix x_, scale_, offset_, bias_, residual_, gamma_;

 public:
  matrix y, z, norm, z_apart, norm_apart_;
};

using weight_calls = std::vector<std::unique_ptr<weight_call>>;
weight_calls make_calls(const weight_form& form, velo_dtype dtype, std::int64_t m, int ranks) {
  weight_calls all;
  for (int rank = 0; rank < ranks; ++rank)
    all.push_back(std::make_unique<weight_call>(form, dtype, m, rank));
  return all;
}

// Whether a rank's sums are the exact ones: products are rounded, then their sum, then the sum with
// the bias.
void check_sums(const weight_calls& all, const weight_call& one, std::int64_t m, double ulp) {
  for (std::int64_t i = 0; i < m * columns; ++i) {
    double sum = 0, size = 0, rounded = 0;
    for (const auto& rank : all) {
      const auto [product, terms] = rank->product(i / columns, i % columns);
      sum += product, size += terms, rounded += std::abs(product);
    }
    const double exact = sum + one.bias(i % columns);
    const double bound = ulp * (rounded + std::abs(sum) + std::abs(exact)) + size * 0x1p-21;
    if (!(std::abs(one.y[i] - exact) <= bound))
      FAIL("element " << i << ": got " << one.y[i] << ", exactly " << exact);
  }
}

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

// ---- int8 by int8 ----

struct integer_form {
  const char* name;
  velo_dtype scale;
  sizes shape;
  std::int64_t output;
  velo_dtype y;
  bool per_token = false, transposed = false;
};

constexpr std::int64_t integer_depth = 70;
const integer_form integer_forms[] = {
    {"float32 scales", f32, {columns}, VELO_DEQUANTIZED_BY_SCALE, f16, true},
    {"one float32 scale", f32, {1}, VELO_DEQUANTIZED_FLOAT32, f32, true, true},
    {"a row of bfloat16 scales", bf16, {1, columns}, VELO_DEQUANTIZED_BY_SCALE, bf16},
    {"float32 scales of bfloat16", f32, {columns}, VELO_DEQUANTIZED_BFLOAT16, bf16},
    {"packed scales", i64, {columns}, VELO_DEQUANTIZED_FLOAT16, f16, false, true},
    {"one packed scale", u64, {1}, VELO_DEQUANTIZED_BY_SCALE, f16, true},
};

class integer_call {
 public:
  integer_call(const integer_form& form, std::int64_t m, int rank)
      : form_(form),
        m_(m),
        x_(drawn_bytes(m * integer_depth, 3 * rank)),
        weight_(drawn_bytes(columns * integer_depth, 3 * rank + 1)),
        bias_(at(columns)),
        scale_(form.scale.bits == 64 ? f32 : form.scale, form.shape, 8),
        spread_(form.scale.bits == 64 ? f32 : form.scale, {1, columns}),
        per_token_(f32, {m}, 9),
        residual_(form.y, {m, columns}, 98),
        gamma_(form.y, {columns}, 97),
        y(form.y, {m, columns}),
        apart(form.y, {m, columns}),
        z(form.y, {m, columns}),
        norm(form.y, {m, columns}),
        z_apart(form.y, {m, columns}),
        norm_apart_(form.y, {m, columns}) {
    for (std::int64_t j = 0; j < columns; ++j) {
      bias_[at(j)] = static_cast<std::int32_t>(j * 331 - 9000);
      const std::int64_t from = scale_.count() == 1 ? 0 : j;
      if (scale_.count() > j) scale_.set(j, std::abs(scale_[j]) * 1e-4 + 1e-5);
      spread_.set(j, scale_[from]);
      const auto low = static_cast<float>(scale_[from]);
      std::uint32_t word;
      std::memcpy(&word, &low, sizeof word);
      packed_.push_back(0xabcdef0000000000u | word);  // only the low half counts
    }
  }

  velo_status run(const rank_of_group& me) const {
    const std::int64_t stored[] = {form_.transposed ? columns : integer_depth,
                                   form_.transposed ? integer_depth : columns},
                       left[] = {m_, integer_depth}, width[] = {columns};
    const velo_tensor x = view_of(x_.data(), i8, left),
                      weight = view_of(weight_.data(), i8, stored),
                      bias = view_of(bias_.data(), i32, width), out = y.view(),
                      per_token = per_token_.view(), scale = scale_view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.y = &out, args.bias = &bias;
    args.dequant_scale = &scale, args.per_token_scale = form_.per_token ? &per_token : nullptr;
    args.output_dtype = form_.output, args.transpose_weight = form_.transposed;
    velo_status done = velo_matmul_all_reduce(me.stream, &args);
    if (done == VELO_OK) done = run_apart(me, args);
    args.per_token_scale = nullptr;
    if (done == VELO_OK) done = normed(me.stream, args, residual_, gamma_, z, norm);
    if (done == VELO_OK)
      done = norm_apart(me.stream, args, residual_, gamma_, z_apart, norm_apart_);
    return done;
  }
  // The norm again, with y in place of the residual, and without a bias as before.
  velo_status run_in_place(const rank_of_group& me, const matrix& sum, const matrix& out) const {
    const std::int64_t stored[] = {form_.transposed ? columns : integer_depth,
                                   form_.transposed ? integer_depth : columns},
                       left[] = {m_, integer_depth};
    const velo_tensor x = view_of(x_.data(), i8, left),
                      weight = view_of(weight_.data(), i8, stored), scale = scale_view();
    velo_matmul_all_reduce_args args = VELO_MATMUL_ALL_REDUCE_ARGS_INIT;
    args.group = me.group, args.x = &x, args.weight = &weight, args.dequant_scale = &scale;
    args.transpose_weight = form_.transposed;
    return normed(me.stream, args, sum, gamma_, sum, out);
  }
  bool has_bits_of_calls_apart() const {
    return y.same_bits(apart) && z.same_bits(z_apart) && norm.same_bits(norm_apart_);
  }
  bool borders_kept() const { return y.borders_kept() && norm.borders_kept(); }

 private:
  velo_tensor scale_view() const {
    velo_tensor all = scale_.view();
    if (form_.scale.bits == 64) {
      all.dtype = form_.scale;
      all.data = const_cast<std::uint64_t*>(packed_.data());
    }
    return all;
  }
  velo_status run_apart(const rank_of_group& me, const velo_matmul_all_reduce_args& of) const {
    const std::int64_t stored[] = {1, of.weight->shape[0], of.weight->shape[1]},
                       row[] = {1, columns};
    const std::int64_t list[] = {m_};
    const velo_ints groups = {list, 1};
    const velo_tensor weight = view_of(weight_.data(), i8, stored), scale = spread_.view(),
                      bias = view_of(bias_.data(), i32, row), out = apart.view();
    velo_quant_grouped_matmul_args args = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    args.x = of.x, args.weight = &weight, args.scale = &scale, args.bias = &bias;
    args.per_token_scale = of.per_token_scale, args.y = &out, args.group_list = &groups;
    args.transpose_weight = of.transpose_weight;
    args.output_dtype = form_.y.bits == 32                  ? VELO_QUANT_OUTPUT_FLOAT32
                        : form_.y.code == VELO_DTYPE_BFLOAT ? VELO_QUANT_OUTPUT_BFLOAT16
                                                            : VELO_QUANT_OUTPUT_FLOAT16;
    const velo_status done = velo_quant_grouped_matmul(me.stream, &args);
    if (done != VELO_OK || me.group == nullptr) return done;
    return velo_group_all_reduce(me.stream, me.group, nullptr, &out, &out);
  }

  const integer_form& form_;
  const std::int64_t m_;
  std::vector<std::uint8_t> x_, weight_;
  std::vector<std::int32_t> bias_;
  std::vector<std::uint64_t> packed_;
  matrix scale_, spread_, per_token_, residual_, gamma_;

 public:
  matrix y, apart, z, norm, z_apart, norm_apart_;
};

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
