// flash_attention against fusion_attention, whose engine it shares: the same bits under the
// arguments that its own become; the one statistic; the gradient by it; refusals.
#include <cfloat>

#include "tests/ops/attention/attention_truth.hpp"
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

// Arguments of both passes of a problem whose tensors a fusion_attention has.
template <class T>
struct flash {
  array<T> out, dq, dk, dv;
  array<float> lse;
  velo_flash_attention_args forward = VELO_FLASH_ATTENTION_ARGS_INIT;
  velo_flash_attention_backward_args backward = VELO_FLASH_ATTENTION_BACKWARD_ARGS_INIT;

  flash(const setup& p, tensors<T>& t)
      : out(p.shape(true, p.heads, p.d)),
        dq(p.shape(true, p.heads, p.d)),
        dk(p.shape(true, p.heads, p.d)),
        dv(p.shape(true, p.heads, p.d)),
        lse(p.stats_shape()) {
    forward.attention_out = out.tensor(), forward.softmax_log_max_sum = lse.tensor();
    backward.dy = t.dy.tensor(), backward.attention_out = out.tensor();
    backward.softmax_log_max_sum = lse.tensor();
    backward.dquery = dq.tensor(), backward.dkey = dk.tensor(), backward.dvalue = dv.tensor();
    fill(forward, p, t), fill(backward, p, t);
  }
  template <class Args>
  static void fill(Args& a, const setup& p, tensors<T>& t) {
    a.query = t.q.tensor(), a.key = t.k.tensor(), a.value = t.v.tensor();
    a.head_num = p.heads, a.io_layout = p.layout, a.scale_value = p.scale;
    a.atten_mask = p.mask, a.alibi_mask = p.pse;
    a.keep_prob = p.keep_prob, a.seed = p.seed, a.offset = p.offset;
  }
};

template <class T>
void check_against_fusion(session& s, const setup& p) {
  INFO("layout " << p.layout << " bytes " << sizeof(T));
  tensors<T> t(p);
  flash<T> f(p, t);
  VELO_RUN(velo_fusion_attention(s.stream(), &t.forward));
  VELO_RUN(velo_flash_attention(s.stream(), &f.forward));
  CHECK((f.out.bytes() == t.out.bytes()));
  std::vector<double> lse(t.max.size());
  for (std::size_t i = 0; i < lse.size(); ++i)
    lse[i] = t.sum.at(i) == 0 ? -static_cast<double>(FLT_MAX) : t.max.at(i) + std::log(t.sum.at(i));
  require_close(f.lse, lse, 1e-6, 1e-6);
  VELO_RUN(velo_fusion_attention_backward(s.stream(), &t.backward));
  VELO_RUN(velo_flash_attention_backward(s.stream(), &f.backward));
  const auto near = [](const array<T>& got, const array<T>& want) {
    std::vector<double> values(want.size());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = want.at(i);
    require_close(got, values, 2 * rounding<T>(), gradient_error<T>() * largest(values));
  };
  near(f.dq, t.dq), near(f.dk, t.dk), near(f.dv, t.dv);
}

template <class T>
void check_all(session& s) {
  std::vector<unsigned char> hidden(37 * 37);
  for (std::size_t i = 0; i < hidden.size(); ++i) hidden[i] = i / 37 == 5 || i * 7 % 3 == 0;
  const std::int64_t square[] = {37, 37};
  velo_tensor mask{};
  mask.data = hidden.data(), mask.shape = square, mask.ndim = 2;
  mask.dtype = {VELO_DTYPE_UINT, 8, 1}, mask.device = {VELO_DEVICE_CPU, 0};
  array<T> alibi({1, 3, 1, 37});
  alibi.fill(8);
  for (const std::int64_t layout :
       {VELO_ATTENTION_LAYOUT_BNSD, VELO_ATTENTION_LAYOUT_BSH, VELO_ATTENTION_LAYOUT_SBH}) {
    setup p = make(layout, 2, 3, 3, 37, 37, 24, 24);
    p.mode = VELO_ATTENTION_SPARSE_MODE_ALL_MASK;
    p.pse_type = VELO_ATTENTION_PSE_TYPE_ADDED_AFTER_SCALE;
    check_against_fusion<T>(s, p);
    p.mask = &mask, p.pse = alibi.tensor(), p.keep_prob = 0.8, p.seed = 3, p.offset = 9;
    check_against_fusion<T>(s, p);
  }
}

}  // namespace

TEST_CASE("flash_attention does what fusion_attention does, with one statistic") {
  session s;
  check_all<float>(s), check_all<bf16>(s), check_all<f16>(s);
}

TEST_CASE("flash_attention's kernels agree with its reference") {
  for_each_kernel("flash_attention", [](session& s) {
    const setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 2, 37, 37, 24, 24);
    tensors<bf16> t(p);
    flash<bf16> f(p, t);
    VELO_RUN(velo_flash_attention(s.stream(), &f.forward));
    const truth want = truth_of(p, t);
    require_close(f.out, want.out, rounding<bf16>(), 0x1p-7 * largest(want.out));
  });
}

TEST_CASE("flash_attention refuses what does not fit, by name") {
  session s;
  const setup p = make(VELO_ATTENTION_LAYOUT_BNSD, 1, 2, 2, 8, 8, 16, 16);
  tensors<float> t(p);
  flash<float> f(p, t);
  array<float> longer({1, 2, 9, 16}), alibi({1, 2, 8, 9}), flat({8, 32});
  array<std::uint8_t> wide({8, 9});
  using args = velo_flash_attention_args;
  check_refusals(
      s, velo_flash_attention, f.forward, f.out,
      {{[&](args& a) { a.query = nullptr; }, VELO_ERR_NULL, "args.query"},
       {[&](args& a) { a.query = a.key = a.value = flat.tensor(); }, VELO_ERR_RANK,
        "args.query.ndim"},
       {[&](args& a) { a.key = longer.tensor(); }, VELO_ERR_SHAPE, "args.key.shape"},
       {[&](args& a) { a.value = longer.tensor(); }, VELO_ERR_SHAPE, "args.value.shape"},
       {[&](args& a) { a.atten_mask = wide.tensor(); }, VELO_ERR_SHAPE, "args.atten_mask.shape"},
       {[&](args& a) { a.alibi_mask = alibi.tensor(); }, VELO_ERR_SHAPE, "args.alibi_mask.shape"},
       {[&](args& a) { a.io_layout = VELO_ATTENTION_LAYOUT_TND; }, VELO_ERR_ARGUMENT,
        "args.io_layout"},
       {[&](args& a) { a.head_num = 3; }, VELO_ERR_ARGUMENT, "args.head_num"},
       {[&](args& a) { a.head_num = -1; }, VELO_ERR_ARGUMENT, "args.head_num"},
       {[&](args& a) { a.scale_value = 1e39; }, VELO_ERR_ARGUMENT, "args.scale_value"},
       {[&](args& a) { a.q_scale = 2; }, VELO_ERR_UNSUPPORTED, "args.q_scale"},
       {[&](args& a) { a.precise_mode = 1; }, VELO_ERR_UNSUPPORTED, "args.precise_mode"},
       {[&](args& a) { a.keep_prob = 2; }, VELO_ERR_ARGUMENT, "args.keep_prob"}});
  using gradient_args = velo_flash_attention_backward_args;
  check_refusals(
      s, velo_flash_attention_backward, f.backward, f.dq,
      {{[&](gradient_args& a) { a.dy = longer.tensor(); }, VELO_ERR_SHAPE, "args.dy.shape"},
       {[&](gradient_args& a) { a.softmax_log_max_sum = alibi.tensor(); }, VELO_ERR_RANK,
        "args.softmax_log_max_sum.shape"}});
}
