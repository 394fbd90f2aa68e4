// Passes that are not part of training: a dry run, a warm-up, and measurements of recompute.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "examples/decoder/model/model.hpp"
#include "examples/decoder/model/splits/split_tensors.hpp"

namespace decoder {
namespace {

// While it lives, the documents of a batch have rows, as many as there can be.
class filled_documents {
 public:
  explicit filled_documents(activations& of) : of_(of) {
    if (!of.documents) return;
    if (of.split == nullptr)
      of.documents->fill(of.largest().tokens());
    else
      of.documents->fill(*of.split, of.largest().sequences);
  }
  ~filled_documents() {
    if (of_.documents) of_.documents->fill(0);
  }
  filled_documents(const filled_documents&) = delete;
  filled_documents& operator=(const filled_documents&) = delete;

 private:
  activations& of_;
};

}  // namespace

std::vector<recompute_cost> model::measure(const velo::stream_ref& stream, activations& of,
                                           bool keeps_middle) {
  of.clear();
  const filled_documents filled(of);
  of.sequences = of.largest().sequences;
  const pass now = begin(stream, of);
  of.residual[0] = make_stream(now);
  if (begins_)
    embed(now, of);
  else
    std::memset(of.residual[0].data(), 0, static_cast<std::size_t>(of.residual[0].bytes()));
  zero_keys(now, of);
  const auto restore = [&] { layers_[0].restore(now, of.residual[0], of.layers[0]); };
  const auto kept = [&] {
    std::int64_t bytes = 0;
    of.each_kept(0, [&](const buffer& each) { bytes += each ? each.bytes() : 0; });
    return bytes;
  };
  std::vector<recompute_cost> costs;
  for (const velo_recompute_kind kind : measured_kinds) {
    of.layers[0] = {};
    if (of.keys != nullptr) of.layers[0].of_sequence = &of.keys->front();
    decoder_layer::recompute(of.layers[0], {kind, 0, keeps_middle});
    restore();
    recompute_cost cost = {kind, kept(), std::numeric_limits<double>::infinity()};
    for (int i = 0; i < 3; ++i) {
      of.layers[0].each_kept([](buffer& each) { each.release(); });
      if (i == 0) cost.bytes -= kept();
      const auto before = std::chrono::steady_clock::now();
      restore();
      const auto after = std::chrono::steady_clock::now();
      cost.seconds = std::min(cost.seconds, std::chrono::duration<double>(after - before).count());
    }
    costs.push_back(cost);
  }
  of.clear();
  if (of.keys != nullptr) of.keys->front() = {};
  return costs;
}

std::vector<lifetime> model::dry_run(const velo::stream_ref& stream, activations& of, bool scores) {
  memory_.begin_dry_run();
  forward(stream, of, 0, scores);
  loss(stream, of, scores ? velo::reduction::sum : velo::reduction::mean);
  if (scores)
    of.clear();
  else
    backward(stream, of, 1);
  return memory_.end_dry_run();
}

// Nothing is recomputed, so that the memory that scratch takes does not depend on the settings.
void model::warm_up(const velo::stream_ref& stream, activations& of) {
  const std::size_t all = std::exchange(depth_, std::min<std::size_t>(depth_, 1));
  const auto asked = std::exchange(recompute_, std::vector<layer_recompute>(recompute_.size()));
  of.sequences = of.largest().sequences;
  const filled_documents filled(of);
  const std::int64_t row = width() * (type_.bits / 8);
  const buffer zeros = memory_.keep(begin(stream, of).room_of_rows() * row, VELO_PURPOSE_WORKSPACE);
  const auto message = [&](bool given) {
    return given ? buffer::borrowed(zeros.data(), zeros.bytes()) : buffer();
  };
  zero_keys(begin(stream, of), of);
  forward_stage(stream, of, of.largest().sequences, message(!begins_));
  if (ends_) loss(stream, of, velo::reduction::mean);
  backward_stage(stream, of, 1, message(!ends_), false);
  of.clear();
  if (of.keys != nullptr && depth_ > 0) of.keys->front() = {};
  recompute_ = asked;
  depth_ = all;
}

// The split that warms up reads keys of earlier splits, which have not run: gives it zeros, which
// `keep` writes. Other bits could be NaN, and slow its products.
void model::zero_keys(const pass& now, activations& of) {
  if (of.keys == nullptr || depth_ == 0) return;
  const std::int64_t row = split_tensors(now, part_, type_).keys() * (type_.bits / 8);
  of.keys->front() = {
      memory_.keep(of.largest().sequences * of.split->sequence() * row, VELO_PURPOSE_WORKSPACE),
      {}};
}

}  // namespace decoder
