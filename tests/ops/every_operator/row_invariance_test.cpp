// A row's result does not depend on how many rows a call has: products and norms of a whole
// prefill, of its chunks and of single tokens give the same bits, on every kernel. Products of
// bfloat16 with weights of int8 or int4, and those with such a weight transposed, do so among up to
// 16 rows, among 17 and more, and with their attribute row_invariant among any number.
#include <set>

#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

constexpr std::int64_t all_rows = 131;
const std::int64_t counts[] = {1, 2, 3, 5, 7, 8, 9, 16, 31, 33, 47, 48, 49, 64, 65, 100, 130};

// Runs call(first, rows) for all `rows` at once, and then for chunks of each size from `least` on,
// the first of them from a row on that changes from size to size; `result` has `columns` elements a
// row.
template <class T, class Call>
void check_chunks(array<T>& result, std::int64_t columns, const Call& call, std::int64_t least = 1,
                  std::int64_t rows = all_rows) {
  if (!call(0, rows)) return;
  const std::vector<unsigned char> whole = result.bytes();
  const auto row = static_cast<std::size_t>(columns) * sizeof(T);
  for (const std::int64_t count : counts) {
    if (count < least || count > rows) continue;
    const std::int64_t begin = count * 37 % (rows - count + 1);
    const std::int64_t chunks = std::min<std::int64_t>(3, (rows - begin) / count);
    for (std::int64_t first = begin; first < begin + chunks * count; first += count) {
      std::memset(result.data() + first * columns, 0, static_cast<std::size_t>(count) * row);
      REQUIRE(call(first, count));
      INFO("rows " << count << " from " << first);
      const std::size_t at = static_cast<std::size_t>(first) * row;
      CHECK(std::memcmp(whole.data() + at, result.data() + first * columns,
                        static_cast<std::size_t>(count) * row) == 0);
    }
  }
}

// Rows [first, first + rows) of a matrix.
struct row_range {
  std::int64_t shape[2];
  velo_tensor view;

  template <class T>
  row_range(array<T>& of, std::int64_t columns, std::int64_t first, std::int64_t rows)
      : shape{rows, columns}, view(*of.tensor()) {
    view.data = of.data() + first * columns;
    view.ndim = 2, view.shape = shape;
  }
};

bool is_run(velo_status status) {
  if (status == VELO_ERR_UNSUPPORTED) return false;
  VELO_RUN(status);
  return true;
}

template <class T>
void check_product(session& s, std::int64_t n, std::int64_t k, bool turned, bool packed) {
  INFO("n " << n << " k " << k << " turned " << turned << " packed " << packed);
  array<T> a({all_rows, k}), b({turned ? n : k, turned ? k : n}), c({all_rows, n});
  array<float> bias({n});
  a.fill(1), b.fill(2), bias.fill(3);
  velo_pack pack = nullptr;
  if (packed) {
    velo_pack_desc desc = VELO_PACK_DESC_INIT;
    desc.dtype = dtype_of<T>(), desc.k = k, desc.n = n, desc.transpose = turned;
    VELO_RUN(velo_pack_create(s.context(), &desc, &pack));
    VELO_RUN(velo_pack_update(s.stream(), pack, b.tensor()));
  }
  check_chunks(c, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(a, k, first, rows), out(c, n, first, rows);
    velo_matmul_args args = VELO_MATMUL_ARGS_INIT;
    args.a = &in.view, args.c = &out.view, args.bias = bias.tensor();
    args.b = packed ? nullptr : b.tensor(), args.packed = pack;
    args.transpose_b = turned && !packed;
    return is_run(velo_matmul(s.stream(), &args));
  });
  velo_pack_destroy(pack);
}

// Rows of matmul_swiglu, whose weight is [k, 2 n].
template <class T>
void check_gated(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<T> x({all_rows, k}), weight({turned ? 2 * n : k, turned ? k : 2 * n}), y({all_rows, n});
  array<float> bias({2 * n});
  x.fill(1), weight.fill(2), bias.fill(3);
  check_chunks(y, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    velo_matmul_swiglu_args args = VELO_MATMUL_SWIGLU_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.bias = bias.tensor(), args.transpose_weight = turned;
    return is_run(velo_matmul_swiglu(s.stream(), &args));
  });
}

template <class T>
void check_normed(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<T> x({all_rows, k}), weight({turned ? n : k, turned ? k : n}), y({all_rows, n});
  array<float> gamma({k});
  x.fill(1), weight.fill(2), gamma.fill(3);
  check_chunks(y, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    velo_rms_norm_matmul_args args = VELO_RMS_NORM_MATMUL_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.gamma = gamma.tensor(), args.transpose_weight = turned;
    return is_run(velo_rms_norm_matmul(s.stream(), &args));
  });
}

// The rows of a chunk that each of three experts has, the second of them none.
struct expert_rows {
  std::int64_t counts[3];
  velo_ints list{counts, 3};

  expert_rows(std::int64_t first, std::int64_t rows)
      : counts{std::max<std::int64_t>(std::min<std::int64_t>(first + rows, 70) - first, 0), 0, 0} {
    counts[2] = rows - counts[0];
  }
  expert_rows(const expert_rows&) = delete;
  template <class Args>
  void set(Args& args) const {
    args.group_list = &list, args.group_list_kind = VELO_GROUP_LIST_KIND_COUNTS;
  }
};

template <class T>
void check_experts(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<T> x({all_rows, k}), weight({3, turned ? n : k, turned ? k : n}), y({all_rows, n});
  x.fill(1), weight.fill(2);
  check_chunks(y, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    const expert_rows experts(first, rows);
    velo_grouped_matmul_args args = VELO_GROUPED_MATMUL_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.transpose_weight = turned, experts.set(args);
    return is_run(velo_grouped_matmul(s.stream(), &args));
  });
}

void fill_integers(array<std::int8_t>& x, std::size_t step) {
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::int8_t>(i * step % 251);
}

void check_integer_experts(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<std::int8_t> x({all_rows, k}), weight({3, turned ? n : k, turned ? k : n});
  array<float> scale({3, n}), y({all_rows, n});
  fill_integers(x, 37), fill_integers(weight, 41), scale.fill(3);
  check_chunks(y, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    const expert_rows experts(first, rows);
    velo_quant_grouped_matmul_args args = VELO_QUANT_GROUPED_MATMUL_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.scale = scale.tensor(), args.output_dtype = VELO_QUANT_OUTPUT_FLOAT32;
    args.act_type = VELO_QUANT_ACTIVATION_SILU, args.transpose_weight = turned;
    experts.set(args);
    return is_run(velo_quant_grouped_matmul(s.stream(), &args));
  });
}

// Integer is std::int8_t, or std::uint8_t for two of 4 bits, with scales by groups of 32 where the
// depth is whole groups.
template <class T, class Integer>
void check_quantized_weight(session& s, std::int64_t n, std::int64_t k, bool turned) {
  const bool pairs = std::is_same_v<Integer, std::uint8_t>, groups = pairs && k % 32 == 0;
  INFO("n " << n << " k " << k << " turned " << turned << " int4 " << pairs);
  const std::int64_t stored = turned ? k : n;
  if (pairs && stored % 2 != 0) return;
  array<Integer> weight({turned ? n : k, pairs ? stored / 2 : stored});
  array<T> x({all_rows, k}), y({all_rows, n});
  array<float> scale({n}), group_scale({groups ? k / 32 : 1, n});
  x.fill(1), scale.fill(3), group_scale.fill(4);
  for (std::size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<Integer>(i * 41);
  bool row_invariant = false;
  const auto call = [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    velo_weight_quant_matmul_args args = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
    args.row_invariant = row_invariant;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.scale = groups ? group_scale.tensor() : scale.tensor(), args.transpose_weight = turned;
    return is_run(velo_weight_quant_matmul(s.stream(), &args));
  };
  if (!turned && !std::is_same_v<T, bf16>) {
    check_chunks(y, n, call);
  } else {
    check_chunks(y, n, call, 17);
    check_chunks(y, n, call, 1, 16);
  }
  row_invariant = true;
  check_chunks(y, n, call);
}

// Rows of experts with weights of int8, by one product or by the two of ffn.
template <class T>
void check_quantized_experts(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<std::int8_t> weight({3, turned ? n : k, turned ? k : n}), second({3, n, k});
  array<T> x({all_rows, k}), y({all_rows, n}), z({all_rows, k});
  array<float> scale({3, n}), second_scale({3, k});
  x.fill(1), scale.fill(3), second_scale.fill(4);
  fill_integers(weight, 41), fill_integers(second, 37);
  check_chunks(y, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(y, n, first, rows);
    const expert_rows experts(first, rows);
    velo_weight_quant_grouped_matmul_args args = VELO_WEIGHT_QUANT_GROUPED_MATMUL_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
    args.scale = scale.tensor(), args.transpose_weight = turned, args.row_invariant = 1;
    experts.set(args);
    return is_run(velo_weight_quant_grouped_matmul(s.stream(), &args));
  });
  if (turned) return;  // ffn has no such weights
  check_chunks(z, k, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, k, first, rows), out(z, k, first, rows);
    const expert_rows experts(first, rows);
    velo_ffn_args args = VELO_FFN_ARGS_INIT;
    args.x = &in.view, args.y = &out.view, args.row_invariant = 1;
    args.weight1 = weight.tensor(), args.antiquant_scale1 = scale.tensor();
    args.weight2 = second.tensor(), args.antiquant_scale2 = second_scale.tensor();
    experts.set(args);
    return is_run(velo_ffn(s.stream(), &args));
  });
}

// matmul_add, with another row to add to each.
template <class T>
void check_added(session& s, std::int64_t n, std::int64_t k, bool turned) {
  INFO("n " << n << " k " << k << " turned " << turned);
  array<T> a({all_rows, k}), b({turned ? n : k, turned ? k : n}), added({all_rows, n});
  array<T> c({all_rows, n});
  a.fill(1), b.fill(2), added.fill(3);
  check_chunks(c, n, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(a, k, first, rows), add(added, n, first, rows), out(c, n, first, rows);
    velo_matmul_add_args args = VELO_MATMUL_ADD_ARGS_INIT;
    args.a = &in.view, args.b = b.tensor(), args.add = &add.view, args.c = &out.view;
    args.transpose_b = turned;
    return is_run(velo_matmul_add(s.stream(), &args));
  });
}

template <class T>
void check_norms(session& s, std::int64_t columns, bool layer) {
  INFO("columns " << columns);
  array<T> x({all_rows, columns}), y({all_rows, columns}), gamma({columns}), beta({columns});
  x.fill(1), gamma.fill(2), beta.fill(3);
  check_chunks(y, columns, [&](std::int64_t first, std::int64_t rows) {
    const row_range in(x, columns, first, rows), out(y, columns, first, rows);
    if (!layer) {
      velo_rms_norm_args args = VELO_RMS_NORM_ARGS_INIT;
      args.x = &in.view, args.gamma = gamma.tensor(), args.y = &out.view;
      return is_run(velo_rms_norm(s.stream(), &args));
    }
    velo_layer_norm_args args = VELO_LAYER_NORM_ARGS_INIT;
    args.x = &in.view, args.y = &out.view;
    args.gamma = gamma.tensor(), args.beta = beta.tensor();
    return is_run(velo_layer_norm(s.stream(), &args));
  });
}

}  // namespace

TEST_CASE("a row of a product has the same bits among any number of rows") {
  for_each_kernel(
      "matmul",
      [](session& s) {
        int form = 0;
        for (const auto& [n, k] : {std::pair<std::int64_t, std::int64_t>{50, 64}, {200, 130}}) {
          for (const bool turned : {false, true}) {
            check_product<float>(s, n, k, turned, form++ % 2 == 1);
            check_product<bf16>(s, n, k, turned, form % 2 == 1);
            check_product<f16>(s, n, k, turned, form % 4 == 1);
          }
        }
      },
      2);
}

TEST_CASE("a row of a fused product, of an expert's or with integers has the same bits, too") {
  const auto with = [](const char* op, const auto& check) {
    for_each_kernel(
        op,
        [&](session& s) {
          check(s, 50, 64, false, float()), check(s, 50, 64, true, bf16());
          check(s, 97, 130, false, bf16());
        },
        2);
  };
  with("matmul_add", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
    check_added<decltype(t)>(s, n, k, turned);
  });
  with("matmul_swiglu", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
    check_gated<decltype(t)>(s, n, k, turned);
  });
  with("rms_norm_matmul", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
    check_normed<decltype(t)>(s, n, k, turned);
  });
  with("grouped_matmul", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
    check_experts<decltype(t)>(s, n, k, turned);
  });
  with("weight_quant_matmul", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
    check_quantized_weight<decltype(t), std::int8_t>(s, n, k, turned);
    check_quantized_weight<decltype(t), std::uint8_t>(s, n, k, turned);
  });
  for (const char* op : {"weight_quant_grouped_matmul", "ffn"})
    with(op, [](session& s, std::int64_t n, std::int64_t k, bool turned, auto t) {
      check_quantized_experts<decltype(t)>(s, n, k, turned);
    });
  with("quant_grouped_matmul", [](session& s, std::int64_t n, std::int64_t k, bool turned, auto) {
    check_integer_experts(s, n, k, turned);
  });
}

TEST_CASE("the last row of many by a quantized weight has the bits that it has alone") {
  for_each_kernel("weight_quant_matmul", [](session& s) {
    constexpr std::int64_t rows = 513, n = 20, k = 64;  // one row beyond a block of them
    for (const bool turned : {false, true}) {
      array<std::int8_t> weight({turned ? n : k, turned ? k : n});
      array<bf16> x({rows, k}), y({rows, n});
      array<float> scale({n});
      x.fill(1), scale.fill(3), fill_integers(weight, 41);
      check_chunks(
          y, n,
          [&](std::int64_t first, std::int64_t count) {
            const row_range in(x, k, first, count), out(y, n, first, count);
            velo_weight_quant_matmul_args args = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
            args.x = &in.view, args.y = &out.view, args.weight = weight.tensor();
            args.scale = scale.tensor(), args.transpose_weight = turned, args.row_invariant = 1;
            return is_run(velo_weight_quant_matmul(s.stream(), &args));
          },
          1, rows);
      const std::vector<unsigned char> chunks = y.bytes();
      const row_range last(x, k, rows - 1, 1), to(y, n, rows - 1, 1);
      velo_weight_quant_matmul_args args = VELO_WEIGHT_QUANT_MATMUL_ARGS_INIT;
      args.x = &last.view, args.y = &to.view, args.weight = weight.tensor();
      args.scale = scale.tensor(), args.transpose_weight = turned, args.row_invariant = 1;
      REQUIRE(is_run(velo_weight_quant_matmul(s.stream(), &args)));
      CHECK(y.bytes() == chunks);
    }
  });
}

TEST_CASE("a row of a norm has the same bits among any number of rows") {
  for (const bool layer : {false, true}) {
    for_each_kernel(
        layer ? "layer_norm" : "rms_norm",
        [layer](session& s) {
          for (const std::int64_t columns : {7, 64, 1000}) {
            check_norms<float>(s, columns, layer);
            check_norms<bf16>(s, columns, layer);
            check_norms<f16>(s, columns, layer);
          }
        },
        2);
  }
}

TEST_CASE("the operators that promise the same bits among any number of rows are tried") {
  const std::set<std::string> here{"matmul",          "matmul_add",          "matmul_swiglu",
                                   "rms_norm_matmul", "grouped_matmul",      "rms_norm",
                                   "layer_norm",      "quant_grouped_matmul"},
      in_attention{"fusion_attention", "flash_attention", "cached_attention"};
  std::set<std::string> promising;
  std::int64_t count = 0;
  VELO_RUN(velo_op_count(&count));
  for (std::int64_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    VELO_RUN(velo_op_name(i, &name));
    std::string text(1 << 16, '\0');
    VELO_RUN(velo_op_describe(name, text.data(), static_cast<std::int64_t>(text.size()), nullptr));
    if (text.find("\"row_invariant\":true") != std::string::npos) promising.insert(name);
  }
  std::set<std::string> tried = here;
  tried.insert(in_attention.begin(), in_attention.end());
  CHECK(promising == tried);
}
