// pad_seqlen, unpad_seqlen, their gradients and unpad_gen_attention_mask against plain loops: every
// kernel and dtype, there and back, large outputs, refusals.
#include "tests/ops/operator_testing.hpp"

using namespace velo::testing;
using velo::simd::bf16;
using velo::simd::f16;

namespace {

velo_ints ints_of(const std::vector<std::int64_t>& list) {
  return {list.data(), static_cast<std::int64_t>(list.size())};
}

template <class T>
void check(session& s, const std::vector<std::int64_t>& lengths, std::int64_t most,
           std::int64_t h) {
  INFO("sequences " << lengths.size() << ", rows " << most << ", H " << h << ", bytes "
                    << sizeof(T));
  std::int64_t total = 0;
  for (const std::int64_t length : lengths) total += length;
  const auto count = static_cast<std::int64_t>(lengths.size());
  const velo_ints list = ints_of(lengths);
  array<T> flat({total, h}), batch({count, most, h}), back({total, h});
  array<T> gradient({total, h}), spread({count, most, h});
  flat.fill(1);
  velo_pad_seqlen_args pad = VELO_PAD_SEQLEN_ARGS_INIT;
  pad.x = flat.tensor(), pad.y = batch.tensor(), pad.seq_len = &list, pad.max_seq_len = most;
  VELO_RUN(velo_pad_seqlen(s.stream(), &pad));
  std::vector<double> truth(batch.size());
  std::size_t at = 0;
  const auto row = static_cast<std::size_t>(h);
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[i]) * row; ++j)
      truth[i * static_cast<std::size_t>(most) * row + j] = flat.at(at++);
  require_close(batch, truth, 0, 0);
  velo_unpad_seqlen_backward_args spreading = VELO_UNPAD_SEQLEN_BACKWARD_ARGS_INIT;
  spreading.dy = flat.tensor(), spreading.dx = spread.tensor(), spreading.seq_len = &list;
  spreading.max_seq_len = most;
  VELO_RUN(velo_unpad_seqlen_backward(s.stream(), &spreading));
  CHECK(spread.bytes() == batch.bytes());
  velo_unpad_seqlen_args unpad = VELO_UNPAD_SEQLEN_ARGS_INIT;
  unpad.x = batch.tensor(), unpad.y = back.tensor(), unpad.seq_len = &list;
  VELO_RUN(velo_unpad_seqlen(s.stream(), &unpad));
  CHECK(back.bytes() == flat.bytes());
  velo_pad_seqlen_backward_args gather = VELO_PAD_SEQLEN_BACKWARD_ARGS_INIT;
  gather.dy = batch.tensor(), gather.dx = gradient.tensor(), gather.seq_len = &list;
  VELO_RUN(velo_pad_seqlen_backward(s.stream(), &gather));
  CHECK(gradient.bytes() == flat.bytes());
  CHECK((back.intact() && gradient.intact() && spread.intact()));
}

template <class T>
void check_mask(session& s, const std::vector<std::int64_t>& lengths, std::int64_t size,
                std::int64_t heads) {
  const velo_ints list = ints_of(lengths);
  constexpr std::size_t masks = 2;
  array<T> mask({static_cast<std::int64_t>(lengths.size()), masks, size, size});
  mask.fill(1);
  std::vector<double> truth;
  const auto n = static_cast<std::size_t>(size);
  for (std::size_t i = 0; i < masks * lengths.size(); ++i)
    for (std::int64_t head = 0; head < heads; ++head)
      for (std::size_t j = 0; j < static_cast<std::size_t>(lengths[i / masks]); ++j)
        for (std::size_t k = 0; k < static_cast<std::size_t>(lengths[i / masks]); ++k)
          truth.push_back(mask.at((i * n + j) * n + k));
  array<T> y({static_cast<std::int64_t>(truth.size())});
  velo_unpad_gen_attention_mask_args args = VELO_UNPAD_GEN_ATTENTION_MASK_ARGS_INIT;
  args.mask = mask.tensor(), args.y = y.tensor(), args.seq_len = &list, args.head_num = heads;
  VELO_RUN(velo_unpad_gen_attention_mask(s.stream(), &args));
  require_close(y, truth, 0, 0);
}

}  // namespace

TEST_CASE("sequences are padded and unpadded for every kernel, length and dtype") {
  for (const char* op :
       {"pad_seqlen", "pad_seqlen_backward", "unpad_seqlen", "unpad_seqlen_backward"}) {
    for_each_kernel(op, [](session& s) {
      check<float>(s, {3, 0, 7, 1}, 7, 33);
      check<bf16>(s, {100, 299, 180}, 300, 24);
      check<f16>(s, {100, 299, 180}, 300, 64);
      check<float>(s, {}, 5, 8);
      check<float>(s, {0, 0}, 0, 8);
      check<float>(s, {2, 1}, 3, 0);
    });
  }
}

TEST_CASE("padding writes large outputs around the cache with the same result") {
  for_each_kernel("pad_seqlen", [](session& s) { check<float>(s, {900, 2000, 77}, 2048, 4096); });
}

TEST_CASE("attention masks are cut out and repeated for every kernel and dtype") {
  for_each_kernel("unpad_gen_attention_mask", [](session& s) {
    check_mask<float>(s, {3, 0, 8}, 8, 3);
    check_mask<f16>(s, {100, 33}, 120, 8);
    check_mask<bf16>(s, {5}, 5, 1);
  });
}

TEST_CASE("pad_seqlen and its kin refuse lengths that do not fit, by name") {
  session s;
  array<float> x({5, 4}), y({2, 3, 4}), mask({2, 1, 4, 4}), flat({50});
  const std::vector<std::int64_t> fits = {2, 3}, negative = {-1, 6}, longer = {1, 4}, more = {3, 3};
  const velo_ints a = ints_of(fits), b = ints_of(negative), c = ints_of(longer), d = ints_of(more);
  using args = velo_pad_seqlen_args;
  args valid = VELO_PAD_SEQLEN_ARGS_INIT;
  valid.x = x.tensor(), valid.y = y.tensor(), valid.seq_len = &a, valid.max_seq_len = 3;
  check_refusals(s, velo_pad_seqlen, valid, y,
                 {{[&](args& f) { f.seq_len = &b; }, VELO_ERR_ARGUMENT, "args.seq_len"},
                  {[&](args& f) { f.seq_len = &c; }, VELO_ERR_ARGUMENT, "args.seq_len"},
                  {[&](args& f) { f.seq_len = &d; }, VELO_ERR_SHAPE, "args.x.shape"},
                  {[&](args& f) { f.seq_len = nullptr; }, VELO_ERR_NULL, "args.seq_len"},
                  {[&](args& f) { f.max_seq_len = 4; }, VELO_ERR_SHAPE, "args.y.shape"},
                  {[&](args& f) { f.x = y.tensor(); }, VELO_ERR_RANK, "args.x.ndim"}});
  const std::vector<std::int64_t> three = {1, 1, 1};
  const velo_ints e = ints_of(three);
  velo_unpad_seqlen_args u = VELO_UNPAD_SEQLEN_ARGS_INIT;
  u.x = y.tensor(), u.y = x.tensor(), u.seq_len = &e;
  CHECK_REFUSED(velo_unpad_seqlen(s.stream(), &u), VELO_ERR_ARGUMENT, "args.seq_len");
  velo_unpad_gen_attention_mask_args m = VELO_UNPAD_GEN_ATTENTION_MASK_ARGS_INIT;
  m.mask = mask.tensor(), m.y = flat.tensor(), m.seq_len = &e;
  CHECK_REFUSED(velo_unpad_gen_attention_mask(s.stream(), &m), VELO_ERR_SHAPE, "args.mask.shape");
  const std::vector<std::int64_t> beyond = {5, 1};
  const velo_ints g = ints_of(beyond);
  m.seq_len = &g;
  CHECK_REFUSED(velo_unpad_gen_attention_mask(s.stream(), &m), VELO_ERR_ARGUMENT, "args.seq_len");
}
