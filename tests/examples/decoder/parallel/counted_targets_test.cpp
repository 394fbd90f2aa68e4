// A loss is the sum over all ranks divided by the count of all ranks, however few targets a rank
// has: known sums and counts, and windows of documents whose padding leaves a rank without any.
#include <cmath>

#include "tests/examples/decoder/parallel/shared_model.hpp"

namespace {

constexpr std::int64_t ranks = 4, each_rank = 4;  // ranks, and rows of each
constexpr std::int64_t counts[] = {3, 0, 1, 4};
constexpr double sums[] = {6, 0, 5, 1};

settings cut_in_four(bool by_context) {
  settings s = small_model();
  s.data.sequence = by_context ? ranks * each_rank : each_rank;
  s.data.batch = by_context ? 1 : ranks;
  s.parallel.cp = by_context ? ranks : 1;
  s.parallel.cp_algorithm = "all_gather";
  s.run.ranks = ranks;
  return s;
}

// Gives this rank its targets, and logits whose losses add up to its sum.
void set_losses(decoder::activations& of, std::int64_t vocab, int rank) {
  const std::int64_t counted = counts[rank];
  const double loss = counted > 0 ? sums[rank] / static_cast<double>(counted) : 0;
  for (std::int64_t t = 0; t < each_rank; ++t) {
    const bool counts_here = t < counted;
    of.targets()[t] = counts_here ? static_cast<std::int32_t>(7 * t + 1) : -100;
    float* const row = of.logits.floats() + t * vocab;
    std::fill_n(row, vocab, -1e4F);
    // Two classes, of which the target has probability e^-loss.
    row[0] = 0;
    if (counts_here) row[7 * t + 1] = static_cast<float>(-std::log(std::expm1(loss)));
  }
}

double loss_of_known_sums(bool by_context) {
  const settings s = cut_in_four(by_context);
  std::vector<double> own(ranks), all(ranks);
  on_trainers(s, [&](decoder::member& rank, decoder::trainer& one) {
    one.start();
    one.model().forward(rank.stream(), one.activations(), 1);
    set_losses(one.activations(), s.model.vocab, rank.rank());
    one.activations().counted = 8.0 / rank.copies();  // as the trainer does
    const auto at = static_cast<std::size_t>(rank.rank());
    own[at] = one.model().loss(rank.stream(), one.activations(), velo::reduction::mean);
    all[at] = rank.sum(own[at]) / rank.copies();
  });
  CHECK(own[1] == 0);
  for (const double each : all) CHECK(each == all[0]);
  return all[0];
}

// Documents of 5 rows, two of which are more than a window, and some of a whole window.
constexpr std::int64_t window_rows = 9;
decoder::corpus some_documents() {
  std::string whole;
  std::vector<std::size_t> ends;
  for (unsigned i = 0; i < 40; ++i) {
    whole += some_text(i % 5 == 0 ? 8 : 4, i);  // and an end
    ends.push_back(whole.size());
  }
  return decoder::split_documents(whole, ends, 1 << 20);
}

// A micro-batch a step, so that the targets of each are seen after it.
settings in_documents() {
  settings s = small_model();
  s.data.documents = "lines";
  s.data.sequence = window_rows, s.data.batch = 2, s.data.accumulation = 1;
  s.model.heads = 8, s.model.kv_heads = 4;
  s.schedule.steps = 6;
  return s;
}

bool has_targets(const decoder::activations& of) {
  const std::int32_t* const first = of.targets();
  return std::any_of(first, first + of.batch().tokens(), [](std::int32_t t) { return t >= 0; });
}

// The outcome, and of how many steps and ranks no target counted.
outcome train_on_documents(settings s, double& without) {
  const temporary folder;
  s.run.gradients = folder / "gradients.safetensors";
  const decoder::corpus text = some_documents();
  outcome made;
  decoder::on_all_ranks(s, {}, [&](decoder::member& rank) {
    decoder::split(rank, s);
    decoder::trainer one(rank, s, text);
    one.start();
    for (std::int64_t i = 0; i < s.schedule.steps; ++i) {
      take_steps(rank, one, 1, made);
      const double found = rank.sum(has_targets(one.activations()) ? 0 : 1);
      if (rank.leads()) without += found;
    }
    return 0;
  });
  made.gradients = gradients_in(s.run.gradients, s);
  return made;
}

}  // namespace

TEST_CASE("sums of 6 0 5 1 over counts of 3 0 1 4 are a loss of 1.5, not the mean of means") {
  for (const bool by_context : {false, true}) {
    INFO((by_context ? "context ranks" : "copies"));
    CHECK(loss_of_known_sums(by_context) == Approx(1.5).epsilon(1e-6));
  }
}

TEST_CASE("a rank whose rows are all padding adds nothing to loss and gradient") {
  const settings base = in_documents();
  double without = 0;
  const outcome whole = train_on_documents(base, without);
  CHECK(without == 0);
  const struct { std::int64_t tp, cp, ranks; } cuts[] = {{1, 4, 8}, {1, 5, 5}, {2, 4, 8}};
  for (const auto& [tp, cp, ranks_of_job] : cuts) {
    INFO("tp " << tp << ", cp " << cp << " of " << ranks_of_job << " ranks");
    settings s = base;
    s.parallel.tp = tp, s.parallel.cp = cp, s.parallel.cp_algorithm = "ulysses";
    s.run.ranks = ranks_of_job;
    without = 0;
    compare(whole, train_on_documents(s, without));
    CHECK(without > 0);
  }
}
