// The collectives of tensor ranks that a recomputed layer repeats, by level (F45): a layer has one
// product whose result is summed over the ranks behind attention, and one at its end.
#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

struct measured {
  std::uint64_t of_tensor = 0, along_y = 0;  // collectives of the last step, on the first rank
  std::uint64_t kept = 0;                    // most bytes of activations
  outcome made;
};

measured train_with(settings s, const char* recompute, int level) {
  s.memory.recompute = recompute, s.memory.recompute_level = level;
  measured all;
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    take_steps(rank, one, 1, all.made);
    const auto called = [](const decoder::member::part& of) {
      return of.ranks > 1 ? of.group.info().called : 0;
    };
    const std::uint64_t x = called(rank.tensor_ranks_x()), y = called(rank.tensor_ranks_y());
    take_steps(rank, one, 1, all.made);
    if (!rank.leads()) return;
    all.of_tensor = called(rank.tensor_ranks_x()) - x;
    all.along_y = called(rank.tensor_ranks_y()) - y;
    all.kept = rank.memory().stats().purpose_peak[VELO_PURPOSE_ACTIVATION];
  });
  return all;
}

std::uint64_t layers_of_step(const settings& s) {
  return static_cast<std::uint64_t>(s.model.layers * s.data.accumulation);
}

}  // namespace

TEST_CASE("a recomputed layer repeats no sum over tensor ranks at level 2, and attention's at 1") {
  settings s = small_model();
  s.parallel.tp = 2, s.run.ranks = 2;
  s.parallel.sequence_parallel = GENERATE(false, true);
  const char* const kind = GENERATE("full", "block", "uniform");
  CAPTURE(s.parallel.sequence_parallel, kind);
  const measured saved = train_with(s, "none", 1);
  const measured one = train_with(s, kind, 1), two = train_with(s, kind, 2);
  const std::uint64_t layers = layers_of_step(s);
  // With rows cut, those of both blocks' inputs are gathered anew at either level.
  const std::uint64_t gathers = s.parallel.sequence_parallel ? 2 * layers : 0;
  CHECK(one.of_tensor == saved.of_tensor + gathers + layers);
  CHECK(two.of_tensor == saved.of_tensor + gathers);
  CHECK(one.made == saved.made);
  CHECK(two.made == saved.made);
}

TEST_CASE("level 2 saves one tensor of rows more of each layer") {
  settings s = small_model();
  s.parallel.tp = 2, s.run.ranks = 2;
  const measured one = train_with(s, "full", 1), two = train_with(s, "full", 2);
  const std::int64_t rows = s.data.batch * s.data.sequence * s.model.hidden * 4;
  const auto more = static_cast<std::uint64_t>((s.model.layers - 1) * rows);
  CHECK(two.kept >= one.kept + more * 9 / 10);
  CHECK(two.kept - one.kept <= more * 11 / 10);
}

TEST_CASE("in two dimensions level 2 repeats attention's collectives along neither") {
  settings s = small_model();
  s.parallel.tp = 4, s.parallel.tp_x = 2, s.run.ranks = 4;
  const measured one = train_with(s, "full", 1), two = train_with(s, "full", 2);
  CHECK(one.of_tensor - two.of_tensor == layers_of_step(s));
  CHECK(one.along_y - two.along_y == layers_of_step(s));
  CHECK(one.made == two.made);
}

TEST_CASE("stages keep attention's sum, too") {
  settings s = small_model();
  s.parallel.tp = 2, s.run.ranks = 4;
  s.parallel.pp = 2, s.parallel.pipeline = GENERATE("1f1b", "zbh1", "ripipe");
  CAPTURE(s.parallel.pipeline);
  const measured saved = train_with(s, "none", 1), two = train_with(s, "full", 2);
  CHECK(train_with(s, "full", 1).of_tensor > two.of_tensor);
  CHECK(two.made == saved.made);
}
