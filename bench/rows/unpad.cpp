// The unpad family on a batch of 4 sequences of 4096 hidden units, half of whose positions are
// padding, and 8 heads of scores.
#include <cmath>

#include "bench/rows/families.hpp"

namespace velo::bench {
namespace {

constexpr std::int64_t longest = 2048, hidden = 4096, heads = 8;
constexpr std::int64_t lengths[] = {2048, 512, 1024, 512}, tokens = 4096;
const velo_ints list = {lengths, 4};

void fill_pad(experiment& e, dtype type) {
  tensor& x = e.random(type, {tokens, hidden});
  tensor& y = e.zeros(type, {4, longest, hidden});
  e.velo("pad_seqlen",
         {{"x", x.view()}, {"y", y.view()}, {"seq_len", list}, {"max_seq_len", longest}});
  e.check([&x, &y] {
    return sampled_error(
        longest * hidden, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) { return x.at(i); });
  });
}

void fill_unpad(experiment& e, dtype type) {
  tensor& x = e.random(type, {4, longest, hidden});
  tensor& y = e.zeros(type, {tokens, hidden});
  e.velo("unpad_seqlen", {{"x", x.view()}, {"y", y.view()}, {"seq_len", list}});
  e.check([&x, &y] {
    return sampled_error(
        longest * hidden, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) { return x.at(i); });
  });
}

void fill_softmax(experiment& e, dtype type, std::int64_t count) {
  tensor& x = e.random(type, {count}, 4.0);
  tensor& y = e.zeros(type, {count});
  e.velo("unpad_softmax",
         {{"x", x.view()}, {"y", y.view()}, {"seq_len", list}, {"head_num", heads}});
  e.check([&x, &y] {
    return sampled_error(
        longest, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          double sum = 0;
          for (std::int64_t k = 0; k < longest; ++k) sum += std::exp(x.at(k));
          return std::exp(x.at(i)) / sum;
        });
  });
}

row of(const char* op, dtype type, double elements, std::function<void(experiment&)> fill) {
  row made = streaming_row(op, type, {tokens, hidden, "dram"}, 2, std::move(fill));
  made.work = elements * static_cast<double>(bytes_of(type));
  return made;
}

}  // namespace

void list_unpad(std::vector<row>& rows) {
  double scores = 0;
  for (const std::int64_t s : lengths) scores += static_cast<double>(heads * s * s);
  const auto count = static_cast<std::int64_t>(scores);
  for (dtype type : operator_types) {
    rows.push_back(of("pad_seqlen", type, (tokens + 4.0 * longest) * hidden,
                      [type](experiment& e) { fill_pad(e, type); }));
    rows.push_back(of("unpad_seqlen", type, 2.0 * tokens * hidden,
                      [type](experiment& e) { fill_unpad(e, type); }));
    rows.push_back(of("unpad_softmax", type, 2 * scores,
                      [type, count](experiment& e) { fill_softmax(e, type, count); }));
  }
}

}  // namespace velo::bench
