// Every rank measures, and all ranks decide alike.
#include "examples/decoder/optimizer/post_validation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "examples/decoder/optimizer/finished_gradients.hpp"
#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {

post_validation::post_validation(member& rank, weights& all, optimizer& with,
                                 const model_parallel& parallel, const data_parallel* shared,
                                 bool sharded)
    : rank_(rank),
      weights_(all),
      optimizer_(with),
      parallel_(parallel),
      shared_(shared),
      sharded_(sharded),
      counted_(counted_ranges(all, shared)) {
  if (rank.stage() == rank.stages() - 1) return;  // the last stage knows all when it steps
  for (const buffer* each : all.updated())
    copies_.push_back(rank.memory().keep(each->bytes(), VELO_PURPOSE_OPTIMIZER));
}

void post_validation::clear_gradients() {
  if (!std::exchange(cleared_, true)) weights_.clear_gradients();
}

// A state covers the ranks of a stage in all copies: the states, one after the other, are
// those of all ranks in rank order.
std::uint64_t post_validation::state_size() const {
  return static_cast<std::uint64_t>(rank_.ranks_of_stage()) * sizeof(measured);
}

void post_validation::measure(double loss, void* state) {
  before_ = std::exchange(last_, std::nullopt);
  of_ = next_;
  cleared_ = false;
  finish_gradients(rank_.stream(), parallel_, weights_, shared_);
  std::vector<measured> all(static_cast<std::size_t>(rank_.ranks()));
  all[static_cast<std::size_t>(rank_.rank())] = {
      optimizer_.sum_of_squares(rank_, weights_, counted_), loss, static_cast<double>(interrupt())};
  rank_.sum_stage(&all[0].sum_of_squares, static_cast<std::int64_t>(all.size()) * 3);
  const int first = rank_.stage() * rank_.ranks_of_stage();
  std::memcpy(state, &all[static_cast<std::size_t>(first)], state_size());
}

double post_validation::decide(const void* states, std::int32_t known, std::int32_t ranks) {
  double sum = 0, loss = 0, signal = 0;
  const auto ranks_of_stage = static_cast<std::size_t>(rank_.ranks_of_stage());
  std::vector<measured> all(static_cast<std::size_t>(known) * ranks_of_stage);
  std::memcpy(all.data(), states, all.size() * sizeof(measured));
  for (const measured& each : all) {
    sum += each.sum_of_squares;
    loss += each.loss;
    signal = std::max(signal, each.interrupt);
  }
  const optimizer::clipping made = optimizer_.clip(rank_, sum);
  const bool finite = std::isfinite(made.norm);
  if (known < ranks)
    return finite && made.factor == 1 ? 1 : std::numeric_limits<double>::quiet_NaN();
  last_ =
      result{of_, loss / rank_.copies(), static_cast<double>(made.norm), static_cast<int>(signal)};
  return finite ? static_cast<double>(made.factor) : 0;
}

void post_validation::update(double factor, bool final) {
  const std::vector<buffer*> all = weights_.updated();
  for (std::size_t i = 0; !final && i < all.size(); ++i)
    std::memcpy(copies_[i].data(), all[i]->data(), static_cast<std::size_t>(all[i]->bytes()));
  optimizer_.update(rank_, weights_, nullptr, of_.number, of_.learning_rate,
                    static_cast<float>(factor));
  if (sharded_) shared_->gather(weights_);
}

void post_validation::roll_back() {
  const std::vector<buffer*> all = weights_.updated();
  for (std::size_t i = 0; i < all.size(); ++i)
    std::memcpy(all[i]->data(), copies_[i].data(), static_cast<std::size_t>(all[i]->bytes()));
}

}  // namespace decoder
