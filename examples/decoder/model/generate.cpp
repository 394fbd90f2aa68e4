// The sampling loop.
#include "examples/decoder/model/generate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <numeric>

#include "examples/decoder/data/vocabulary.hpp"
#include "examples/decoder/data/window_writer.hpp"
#include "examples/decoder/failure.hpp"
#include "examples/decoder/random.hpp"
#include "examples/decoder/ranks/interrupt.hpp"

namespace decoder {
namespace {

constexpr int bytes = 256;

double value_at(const velo::tensor_view& of, std::int64_t i) {
  if (of.type().bits == 32) return static_cast<double>(of.data<float>()[i]);
  return static_cast<double>(static_cast<float>(of.data<velo::bfloat16>()[i]));
}

// The logits at one position; no other special symbol is ever drawn, nor the end if it is none.
std::array<double, drawn_symbols> drawn_logits(const velo::tensor_view& logits,
                                               std::int64_t position, bool ends) {
  std::array<double, drawn_symbols> result;
  const std::int64_t row = position * logits.size(1);
  for (int i = 0; i < bytes; ++i) result[static_cast<std::size_t>(i)] = value_at(logits, row + i);
  result.back() = ends ? value_at(logits, row + eos) : -std::numeric_limits<double>::infinity();
  return result;
}

bool are_numbers(const std::array<double, drawn_symbols>& logits) {
  return !std::isnan(logits.back()) && std::all_of(logits.begin(), logits.end() - 1,
                                                   [](double each) { return std::isfinite(each); });
}

// The length of the UTF-8 character at this place; 0 without one, or for one that terminals take
// for a control sequence (U+0080 to U+009F).
std::size_t character_at(const std::string& text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xc2   ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
  if (at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(at + i) & 0xc0u) != 0x80u) return 0;
  const unsigned char second = length > 1 ? byte(at + 1) : 0;
  const bool control = first == 0xc2 && second < 0xa0;
  const bool too_long = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_scalar = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return control || too_long || no_scalar ? 0 : length;
}

}  // namespace

int draw(const double* logits, double temperature, std::int64_t top_k, double uniform) {
  std::array<int, drawn_symbols> order;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  if (temperature == 0) return order[0];
  const std::size_t kept =
      top_k == 0 ? drawn_symbols
                 : static_cast<std::size_t>(std::min<std::int64_t>(top_k, drawn_symbols));
  std::array<double, drawn_symbols> weight{};
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    weight[i] = std::exp((logits[order[i]] - logits[order[0]]) / temperature);
    total += weight[i];
  }
  double rest = uniform * total;
  for (std::size_t i = 0; i < kept; ++i) {
    rest -= weight[i];
    if (rest < 0) return order[i];
  }
  return order[0];
}

std::string generate(const velo::stream_ref& stream, model& model, activations& batch,
                     const std::string& prompt, const settings& values) {
  const run_settings& run = values.run;
  const auto window = static_cast<std::size_t>(batch.largest().length);
  const random_stream random(run.seed, purpose::sampling);
  std::string text = prompt;
  std::size_t begin = 0;
  batch.documents.reset();  // what follows is one
  for (std::int64_t i = 0; i < run.sample_bytes && !interrupted(); ++i) {
    while (text.size() - begin > window - 1) begin += (window + 1) / 2;
    // The whole window is computed each time; attention is causal, so the symbols after the last
    // byte do not matter.
    const std::string_view known = std::string_view(text).substr(begin);
    write_piece({known}, batch.inputs(), batch.targets());
    std::int32_t* inputs = batch.inputs();
    inputs[known.size()] = known.empty() ? bos : batch.targets()[known.size() - 1];
    std::fill(inputs + known.size() + 1, inputs + window, pad);
    const auto logits =
        drawn_logits(model.forward(stream, batch, 1, true), static_cast<std::int64_t>(known.size()),
                     values.data.has_documents());
    if (!are_numbers(logits))
      fail("the model's predictions are no numbers: its weights are damaged, or training diverged");
    const double uniform = random.uniform(static_cast<std::uint64_t>(i));
    const int drawn = draw(logits.data(), run.temperature, run.top_k, uniform);
    if (drawn == bytes) break;  // eos
    text += static_cast<char>(drawn);
  }
  return text.substr(prompt.size());
}

std::string printable(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = character_at(text, i);
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = (byte < 32 && byte != '\n' && byte != '\t') || byte == 127;
    if (length == 0 || control) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02x", byte);
      result += escape;
    } else {
      result.append(text, i, length);
    }
    i += std::max<std::size_t>(1, length);
  }
  return result;
}

}  // namespace decoder
