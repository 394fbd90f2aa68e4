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

// Scores of 8 heads of 128 columns.
void fill_products(experiment& e, dtype type, std::int64_t count) {
  constexpr std::int64_t dim = 128, columns = heads * dim;
  tensor& q = e.random(type, {tokens * columns});
  tensor& k = e.random(type, {tokens * columns});
  tensor& y = e.zeros(type, {count});
  e.velo("unpad_strided_batch_matmul", {{"a", q.view()},
                                        {"b", k.view()},
                                        {"c", y.view()},
                                        {"seq_len", list},
                                        {"head_num", heads},
                                        {"head_dim", dim},
                                        {"preset", VELO_STRIDED_MATMUL_PRESET_BMM1}});
  e.check([&q, &k, &y] {
    return sampled_error(
        longest * longest, [&](std::int64_t i) { return y.at(i); },
        [&](std::int64_t i) {
          double sum = 0;
          for (std::int64_t d = 0; d < dim; ++d)
            sum += q.at(i / longest * columns + d) * k.at(i % longest * columns + d);
          return sum;
        });
  });
}

}  // namespace

void list_unpad(const machine& m, std::vector<row>& rows) {
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
    const std::string op = "unpad_strided_batch_matmul";
    rows.push_back({op, type, "4096x1024 bmm1", "dram", "GF/s", 2 * 128 * scores,
                    product_limit(m, type), op, "",
                    [type, count](experiment& e) { fill_products(e, type, count); }});
  }
}

}  // namespace velo::bench
