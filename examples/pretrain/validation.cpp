// Windows over blocks, gathered into batches.
#include "validation.hpp"

#include <algorithm>
#include <cmath>

#include "corpus.hpp"
#include "interrupt.hpp"
#include "vocabulary.hpp"
#include "windows.hpp"

namespace pretrain {
namespace {

constexpr std::int32_t not_counted = -100;

class gatherer {
 public:
  gatherer(const velo::stream_ref& stream, model& model, activations& batch)
      : stream_(stream),
        model_(model),
        batch_(batch),
        length_(static_cast<std::size_t>(batch.largest().length)) {}

  // Predicts bytes [first_counted, bytes.size()) of one window.
  void add(std::string_view bytes, std::size_t first_counted) {
    const std::size_t at = static_cast<std::size_t>(filled_) * length_;
    std::int32_t *inputs = batch_.inputs() + at, *targets = batch_.targets() + at;
    write_sequence(bytes, inputs, targets);
    std::fill(inputs + bytes.size(), inputs + length_, pad);
    std::fill(targets + bytes.size(), targets + length_, not_counted);
    std::fill(targets, targets + first_counted, not_counted);
    if (++filled_ == batch_.largest().sequences) flush();
  }

  double nats() {
    flush();
    return nats_;
  }

 private:
  void flush() {
    if (filled_ == 0) return;
    model_.forward(stream_, batch_, filled_, true);
    nats_ += model_.loss(stream_, batch_, velo::reduction::sum);
    filled_ = 0;
  }

  const velo::stream_ref& stream_;
  model& model_;
  activations& batch_;
  std::size_t length_;
  std::int64_t filled_ = 0;
  double nats_ = 0;
};

}  // namespace

std::optional<double> validation_bits_per_byte(const member& rank, model& model, activations& batch,
                                               std::string_view text) {
  const auto ranks = static_cast<std::size_t>(rank.ranks());
  const auto length = static_cast<std::size_t>(batch.largest().length);
  const std::size_t stride = length / 2;
  const velo::stream_ref stream = rank.stream();
  gatherer windows(stream, model, batch);
  for (std::size_t block = static_cast<std::size_t>(rank.rank()) * block_bytes; block < text.size();
       block += ranks * block_bytes) {
    if (interrupted()) break;
    const std::string_view bytes = text.substr(block, block_bytes);
    std::size_t counted = 0;
    for (std::size_t begin = 0; counted < bytes.size(); begin += stride) {
      const std::string_view window = bytes.substr(begin, length);
      windows.add(window, counted - begin);
      counted = begin + window.size();
    }
  }
  if (rank.most(interrupt()) != 0) return std::nullopt;
  return rank.sum(windows.nats()) / std::log(2.0) / static_cast<double>(text.size());
}

}  // namespace pretrain
