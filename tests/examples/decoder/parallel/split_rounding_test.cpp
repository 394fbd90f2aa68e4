// Splits of windows round the gradients of keys and values as often as whole windows: once.
#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

// The difference of a matrix's gradient from another run's, relative to it.
double difference(const outcome& of, const outcome& from, const std::string& name) {
  const std::vector<float>& whole = from.gradients.at(name);
  return norm_of(of.gradients.at(name), whole) / norm_of(whole, std::vector<float>(whole.size()));
}

settings two_stages() {
  settings s = small_model();
  s.model.dtype = "bf16";
  s.data.sequence = 96;
  s.parallel.pp = 2, s.run.ranks = 2;
  return s;
}

}  // namespace

TEST_CASE("in bf16 splits add keys' gradients without rounding them between") {
  settings s = two_stages();
  const outcome whole = train_for(1, s);
  s.parallel.pipeline = "seq1f1b", s.parallel.sequence_splits = 24;
  if (const char* const algorithm = GENERATE("", "all_gather", "ulysses"); *algorithm != '\0') {
    s.parallel.cp = 2, s.parallel.cp_algorithm = algorithm, s.run.ranks = 4;
  }
  CAPTURE(s.parallel.cp_algorithm);
  const outcome split = train_for(1, s);
  // Of the last layer: what is behind it has the same bits but for attention's output. Rounding to
  // bf16 between splits would make a difference of some 1e-3.
  for (const char* matrix : {"q_proj", "k_proj", "v_proj"}) {
    CAPTURE(matrix);
    CHECK(difference(split, whole, std::string("model.layers.3.self_attn.") + matrix + ".weight") <=
          1e-5);
  }
}
