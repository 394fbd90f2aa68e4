// Logits exist once, in the model's dtype: a step with more symbols needs at its peak a logit more
// for each of them and each row, beside what the weights of a symbol take. Where matrices are cut
// both ways, a product has the rows of all ranks along y, which it gathers for the gradient.
#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

// Logits are most of the activations.
settings many_symbols(const char* dtype, std::int64_t vocab) {
  settings s = small_model();
  s.model.dtype = dtype;
  s.model.hidden = 48, s.model.inner = 64, s.model.layers = 2, s.model.vocab = vocab;
  s.data.sequence = 64, s.data.accumulation = 2;
  return s;
}

struct peak {
  double all, activations;  // bytes at a time
  double weights;           // with gradients, optimizer and packs
};

std::vector<peak> peaks_of(const settings& s) {
  std::vector<peak> all(static_cast<std::size_t>(s.run.ranks));
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    one.step();
    const velo_pool_stats before = rank.memory().stats();
    one.step();
    const velo_pool_stats now = rank.memory().stats();
    all[static_cast<std::size_t>(rank.rank())] = {
        static_cast<double>(now.bytes_peak),
        static_cast<double>(now.purpose_peak[VELO_PURPOSE_ACTIVATION]),
        static_cast<double>(before.bytes_live)};
  });
  return all;
}

}  // namespace

// The pool rounds sizes up, by a sixteenth at most.
TEST_CASE("logits exist once, in the model's dtype") {
  const struct {
    const char* name;
    std::int64_t tp, tp_x, cp;
    double most;  // logits at a time, of those that a rank has
  } cuts[] = {{"one rank", 1, 0, 1, 1},
              {"tp 2", 2, 0, 1, 1},
              {"cp 2", 1, 0, 2, 1},
              {"tp 2 by 2", 4, 2, 1, 1 + 2}};
  constexpr std::int64_t few = 4096, many = 8192;
  for (const char* dtype : {"bf16", "f32"})
    for (const auto& cut : cuts) {
      const auto found = [&](std::int64_t vocab) {
        settings s = many_symbols(dtype, vocab);
        s.parallel.tp = cut.tp, s.parallel.tp_x = cut.tp_x, s.parallel.cp = cut.cp;
        s.run.ranks = cut.tp * cut.cp;
        return peaks_of(s);
      };
      const settings s = many_symbols(dtype, few);
      const std::vector<peak> less = found(few), more = found(many);
      // Rows of a rank times its part of the symbols.
      const std::int64_t logits = s.data.batch * s.data.sequence * (many - few) / (cut.tp * cut.cp);
      const auto bytes = static_cast<double>(logits * (s.model.dtype == "f32" ? 4 : 2));
      for (std::size_t rank = 0; rank < less.size(); ++rank) {
        INFO(dtype << ", " << cut.name << ", rank " << rank << ", one copy " << bytes);
        const peak &a = less[rank], &b = more[rank];
        CHECK(b.activations - a.activations == Approx(bytes).epsilon(0.07));
        CHECK(b.all - a.all - (b.weights - a.weights) <= 1.07 * cut.most * bytes);
      }
    }
}
