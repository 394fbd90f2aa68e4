// ring_attention_update: the merge of attention over two halves of the keys is attention over all
// of them, for every kernel, layout and shape of the statistics; the formula in double; rows
// without keys; refusals.
#include <array>
#include <cfloat>

#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// Attention over the keys [first, first + count) of a problem in layout sbh, with its queries.
template <class T>
struct part {
  setup p;
  tensors<T> t;

  part(const setup& whole, tensors<T>& from, std::int64_t first, std::int64_t count)
      : p(narrowed(whole, count)), t(p) {
    const std::int64_t row = whole.batch * whole.kv_heads;
    for (std::size_t i = 0; i < t.k.size(); ++i)
      t.k[i] = from.k[static_cast<std::size_t>(first * row * whole.d) + i];
    for (std::size_t i = 0; i < t.v.size(); ++i)
      t.v[i] = from.v[static_cast<std::size_t>(first * row * whole.dv) + i];
  }
  static setup narrowed(setup p, std::int64_t count) {
    p.skv = count;
    return p;
  }
};

template <class T>
velo_ring_attention_update_args merge_of(part<T>& a, part<T>& b) {
  velo_ring_attention_update_args r = VELO_RING_ATTENTION_UPDATE_ARGS_INIT;
  r.prev_out = r.out = a.t.out.tensor(), r.cur_out = b.t.out.tensor();
  r.prev_max = r.max = a.t.max.tensor(), r.prev_sum = r.sum = a.t.sum.tensor();
  r.cur_max = b.t.max.tensor(), r.cur_sum = b.t.sum.tensor();
  r.layout = a.p.layout;
  return r;
}

template <class T>
void check_halves(session& s, std::int64_t copies) {
  setup p = make(VELO_ATTENTION_LAYOUT_SBH, 2, 3, 1, 37, 90, 24, 40);
  p.copies = copies;
  tensors<T> whole(p);
  part<T> a(p, whole, 0, 50), b(p, whole, 50, 40);
  VELO_RUN(velo_fusion_attention(s.stream(), &a.t.forward));
  VELO_RUN(velo_fusion_attention(s.stream(), &b.t.forward));
  const velo_ring_attention_update_args merge = merge_of(a, b);
  VELO_RUN(velo_ring_attention_update(s.stream(), &merge));
  const truth want = truth_of(p, whole);
  require_close(a.t.out, want.out, 2 * rounding<T>(),
                (is_coarse<T>     ? 0x1p-6
                 : sizeof(T) == 2 ? 0x1p-9
                                  : 4e-6) *
                    largest(want.out));
  require_close(a.t.max, want.max, 1e-6, 1e-5);
  require_close(a.t.sum, want.sum, is_coarse<T> ? 4e-4 : 6e-6, 0);
}

// Random statistics and outputs of any layout against the formula.
template <class T>
void check_formula(session& s, const setup& p) {
  INFO("layout " << p.layout << " copies " << p.copies << " bytes " << sizeof(T));
  const ints shape = p.shape(true, p.heads, p.d), rows = p.stats_shape();
  array<T> prev(shape), cur(shape), out(shape);
  array<float> pm(rows), ps(rows), cm(rows), cs(rows), max(rows), sum(rows);
  prev.fill(1), cur.fill(2), pm.fill(3, 5), cm.fill(4, 5), ps.fill(5), cs.fill(6);
  std::vector<double> want_out(out.size()), want_max(pm.size()), want_sum(pm.size());
  for (std::int64_t b = 0; b < p.sequences(); ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < p.q_length(b); ++i) {
        const std::size_t at = p.stats_at(b, h, i);
        for (std::size_t c = 0; c < static_cast<std::size_t>(p.copies); ++c) {
          ps[at + c] = std::abs(ps[at]), cs[at + c] = std::abs(cs[at]);
          pm[at + c] = pm[at], cm[at + c] = cm[at];
        }
        const double m = std::max(pm.at(at), cm.at(at));
        const double x = ps.at(at) * std::exp(pm.at(at) - m),
                     y = cs.at(at) * std::exp(cm.at(at) - m);
        for (std::size_t c = 0; c < static_cast<std::size_t>(p.copies); ++c)
          want_max[at + c] = m, want_sum[at + c] = x + y;
        const std::size_t row = p.at(true, p.heads, p.d, b, h, i);
        for (std::size_t c = row; c < row + static_cast<std::size_t>(p.d); ++c)
          want_out[c] = (prev.at(c) * x + cur.at(c) * y) / (x + y);
      }
  velo_ring_attention_update_args r = VELO_RING_ATTENTION_UPDATE_ARGS_INIT;
  r.prev_out = prev.tensor(), r.cur_out = cur.tensor(), r.out = out.tensor();
  r.prev_max = pm.tensor(), r.prev_sum = ps.tensor(), r.cur_max = cm.tensor();
  r.cur_sum = cs.tensor(), r.max = max.tensor(), r.sum = sum.tensor(), r.layout = p.layout;
  const velo_ints ends{p.q_ends.data(), static_cast<std::int64_t>(p.q_ends.size())};
  if (p.lists()) r.actual_seq_qlen = &ends;
  VELO_RUN(velo_ring_attention_update(s.stream(), &r));
  require_close(out, want_out, rounding<T>(), 3e-6);
  require_close(max, want_max, 0, 0);
  require_close(sum, want_sum, 3e-6, 0);
  CHECK((out.intact() && max.intact() && sum.intact()));
}

template <class T>
void check_layouts(session& s) {
  for (const std::int64_t copies : {1, 8}) {
    for (const std::int64_t layout : {VELO_ATTENTION_LAYOUT_BSND, VELO_ATTENTION_LAYOUT_BNSD,
                                      VELO_ATTENTION_LAYOUT_SBH, VELO_ATTENTION_LAYOUT_BSH}) {
      setup p = make(layout, 2, 19, 19, 37, 1, 40, 40);
      p.copies = copies;
      check_formula<T>(s, p);
    }
    setup packed = make_tnd({0, 5, 5, 21}, {0, 5, 5, 21}, 3, 3, 17);
    packed.copies = copies;
    check_formula<T>(s, packed);
  }
}

}  // namespace

TEST_CASE("ring_attention_update makes attention over all keys of its halves") {
  for_each_kernel("ring_attention_update", [](session& s) {
    for (const std::int64_t copies : {1, 8})
      check_halves<float>(s, copies), check_halves<bf16>(s, copies), check_halves<f16>(s, copies);
  });
}

TEST_CASE("ring_attention_update agrees with its formula in every layout") {
  for_each_kernel("ring_attention_update", [](session& s) {
    check_layouts<float>(s), check_layouts<bf16>(s), check_layouts<f16>(s);
  });
}

TEST_CASE("ring_attention_update takes rows without keys, and maxima of -Inf") {
  for_each_kernel("ring_attention_update", [](session& s) {
    for (const double none : {-static_cast<double>(FLT_MAX), -HUGE_VAL}) {
      array<float> prev({4, 1, 3}), cur({4, 1, 3});
      array<float> pm({1, 1, 4}), ps({1, 1, 4}), cm({1, 1, 4}), cs({1, 1, 4});
      prev.fill(1), cur.fill(2);
      for (std::size_t i = 0; i < 4; ++i) {
        const bool before = i % 2 == 1, now = i / 2 == 1;  // whether each part has keys
        pm[i] = static_cast<float>(before ? 0.5 : none), ps[i] = before ? 2.0f : 0.0f;
        cm[i] = static_cast<float>(now ? 0.5 : none), cs[i] = now ? 2.0f : 0.0f;
      }
      std::vector<double> want(12);
      for (std::size_t i = 0; i < 12; ++i) {
        const double a = prev.at(i), b = cur.at(i);
        want[i] = std::array<double, 4>{0, a, b, (a + b) / 2}[i / 3];
      }
      velo_ring_attention_update_args r = VELO_RING_ATTENTION_UPDATE_ARGS_INIT;
      r.prev_out = r.out = prev.tensor(), r.cur_out = cur.tensor();
      r.prev_max = r.max = pm.tensor(), r.prev_sum = r.sum = ps.tensor();
      r.cur_max = cm.tensor(), r.cur_sum = cs.tensor();
      VELO_RUN(velo_ring_attention_update(s.stream(), &r));
      require_close(prev, want, 1e-6, 1e-6);
      require_close(ps, std::vector<double>{0, 2, 2, 4}, 0, 0);
    }
  });
}

TEST_CASE("ring_attention_update refuses what does not fit, by name") {
  session s;
  array<float> out({6, 2, 24}), result({6, 2, 24}), stats({2, 3, 6}), max({2, 3, 6}),
      sum({2, 3, 6}), other({2, 3, 5}), many({2, 5, 6}), flat({6, 24});
  array<bf16> half({6, 2, 24});
  using args = velo_ring_attention_update_args;
  args r = VELO_RING_ATTENTION_UPDATE_ARGS_INIT;
  r.prev_out = r.cur_out = out.tensor(), r.out = result.tensor();
  r.prev_max = r.prev_sum = r.cur_max = r.cur_sum = stats.tensor();
  r.max = max.tensor(), r.sum = sum.tensor();
  check_refusals(
      s, velo_ring_attention_update, r, result,
      {{[&](args& a) { a.prev_out = nullptr; }, VELO_ERR_NULL, "args.prev_out"},
       {[&](args& a) { a.prev_out = flat.tensor(); }, VELO_ERR_RANK, "args.prev_out.ndim"},
       {[&](args& a) { a.cur_out = half.tensor(); }, VELO_ERR_DTYPE, "args.cur_out.dtype"},
       {[&](args& a) { a.prev_max = many.tensor(); }, VELO_ERR_SHAPE, "args.prev_out.shape"},
       {[&](args& a) { a.cur_sum = other.tensor(); }, VELO_ERR_SHAPE, "args.cur_sum.shape"},
       {[&](args& a) { a.prev_max = flat.tensor(); }, VELO_ERR_RANK, "args.prev_max.ndim"},
       {[&](args& a) { a.layout = 9; }, VELO_ERR_ARGUMENT, "args.layout"}});
  array<float> tokens({6, 2, 24}), eight({6, 2, 8}), top({6, 2, 8}), total({6, 2, 8});
  args packed = r;
  packed.layout = VELO_ATTENTION_LAYOUT_TND;
  packed.prev_out = packed.cur_out = tokens.tensor();
  packed.prev_max = packed.prev_sum = packed.cur_max = packed.cur_sum = eight.tensor();
  packed.max = top.tensor(), packed.sum = total.tensor();
  const ints wrong = {0, 5};
  const velo_ints ends{wrong.data(), 2};
  check_refusals(
      s, velo_ring_attention_update, packed, result,
      {{[](args&) {}, VELO_ERR_NULL, "args.actual_seq_qlen"},
       {[&](args& a) { a.actual_seq_qlen = &ends; }, VELO_ERR_ARGUMENT, "args.actual_seq_qlen"}});
}
