// unpad_softmax against its formula in double: every kernel, lengths, gradients, refusals. That its
// gradient is its slope follows from softmax, whose kernels it has.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

template <class T>
void check(session& s, const std::vector<std::int64_t>& lengths, std::int64_t heads) {
  INFO("sequences " << lengths.size() << ", heads " << heads << ", bytes " << sizeof(T));
  std::int64_t count = 0;
  for (const std::int64_t length : lengths) count += heads * length * length;
  const velo_ints list{lengths.data(), static_cast<std::int64_t>(lengths.size())};
  array<T> x({2, count}), y({2, count}), dy({2, count}), dx({2, count});
  x.fill(1, 5), dy.fill(2);
  std::vector<double> truth, dtruth;
  velo_unpad_softmax_args f = VELO_UNPAD_SOFTMAX_ARGS_INIT;
  f.x = x.tensor(), f.y = y.tensor(), f.seq_len = &list, f.head_num = heads;
  VELO_RUN(velo_unpad_softmax(s.stream(), &f));
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const std::int64_t length : lengths) {
      for (std::int64_t row = 0; row < heads * length; ++row) {
        const std::size_t at = truth.size(), end = at + static_cast<std::size_t>(length);
        double sum = 0, dot = 0;
        for (std::size_t i = at; i < end; ++i) sum += std::exp(x.at(i)), dot += dy.at(i) * y.at(i);
        for (std::size_t i = at; i < end; ++i) {
          truth.push_back(std::exp(x.at(i)) / sum);
          dtruth.push_back(y.at(i) * (dy.at(i) - dot));
        }
      }
    }
  }
  require_close(y, truth, rounding<T>() + 3e-6, 1e-20);
  velo_unpad_softmax_backward_args b = VELO_UNPAD_SOFTMAX_BACKWARD_ARGS_INIT;
  b.dy = dy.tensor(), b.y = y.tensor(), b.dx = dx.tensor(), b.seq_len = &list, b.head_num = heads;
  VELO_RUN(velo_unpad_softmax_backward(s.stream(), &b));
  require_close(dx, dtruth, rounding<T>(), 3e-6);
}

}  // namespace

TEST_CASE("unpad_softmax and its gradient agree with the formula for every kernel and dtype") {
  for (const char* op : {"unpad_softmax", "unpad_softmax_backward"}) {
    for_each_kernel(
        op,
        [](session& s) {
          check<float>(s, {3, 0, 7, 1}, 3);
          check<bf16>(s, {100, 0, 299}, 8);
          check<f16>(s, {100, 180}, 8);
          check<float>(s, {}, 2);
          check<float>(s, {0, 0}, 2);
        },
        2);
  }
}

TEST_CASE("unpad_softmax refuses what does not fit, by name") {
  session s;
  array<float> x({26}), y({26}), other({25});
  const std::vector<std::int64_t> fits = {2, 3}, negative = {-2, 3};
  const velo_ints a{fits.data(), 2}, b{negative.data(), 2};
  using args = velo_unpad_softmax_args;
  args valid = VELO_UNPAD_SOFTMAX_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor(), valid.seq_len = &a, valid.head_num = 2;
  check_refusals(s, velo_unpad_softmax, valid, y,
                 {{[&](args& f) { f.seq_len = &b; }, VELO_ERR_ARGUMENT, "args.seq_len"},
                  {[&](args& f) { f.head_num = 0; }, VELO_ERR_ARGUMENT, "args.head_num"},
                  {[&](args& f) { f.head_num = 1; }, VELO_ERR_SHAPE, "args.x.shape"},
                  {[&](args& f) { f.y = other.tensor(); }, VELO_ERR_SHAPE, "args.y.shape"}});
}
