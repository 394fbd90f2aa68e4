// Text from the model, byte after byte, each drawn from the likeliest few.
//
// Every byte costs one forward pass over a window; when the window is full, its older half is
// dropped. There is no cache of keys and values: this shows the result of training and is no
// server.
#pragma once

#include <string>

#include "examples/decoder/model/model.hpp"
#include "examples/decoder/settings.hpp"

namespace decoder {

// Returns the bytes that follow `prompt`: as many as the settings say, fewer after an interrupt,
// and where the model was trained on documents at most up to the end of one. Windows are as long
// as the batch's sequences.
std::string generate(const velo::stream_ref& stream, model& model, activations& batch,
                     const std::string& prompt, const settings& values);

// The symbols that can be drawn: the bytes, and behind them `eos`.
constexpr int drawn_symbols = 257;

// Draws a position from so many logits: by `uniform` in [0, 1), among the `top_k` likeliest (0:
// all), at a temperature; temperature 0 takes the likeliest.
int draw(const double* logits, double temperature, std::int64_t top_k, double uniform);

// Escapes control characters other than line ends and tabs, and bytes that are no UTF-8, for a
// terminal.
std::string printable(const std::string& bytes);

}  // namespace decoder
