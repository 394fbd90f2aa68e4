// The contents of each stage of a model, and their text in the form of Megatron and MindSpeed:
// "Et*3|(tt|)*4tmL".
//
// E is the embedding, t a layer, m a layer that predicts later tokens, L the loss; a stage ends at
// `|` and may be empty. E comes first and L last. m comes after all t, in the last stage of a rank,
// and not on the rank of stage 0 unless there is no other rank. Repeated texts unfold to at most
// `most_symbols`, which bounds the cost of a text. No-op layers are counted like others and cost
// nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace velo::sched {

struct stage_content {
  std::int32_t first_layer = 0;
  std::int32_t layers = 0;  // including no-ops
  std::int32_t noops = 0;
  std::int32_t predictors = 0;
  bool embedding = false, loss = false;
};

struct layout {
  std::vector<stage_content> stages;  // of one chain
  std::vector<std::int32_t> noops;    // no-op layers, ascending
  std::int32_t layers() const;
};

inline constexpr std::int32_t most_symbols = 1 << 20;

// Throws ARGUMENT naming the invalid character, counted from 1.
layout parse_layout(std::string_view text, const std::string& argument);

// Checks that a layout fits the ranks: it has as many stages as they hold, and m only where m is
// allowed. v: stages go down the ranks and up again. Throws ARGUMENT naming the character.
void require_fits(const layout& of, std::string_view text, const std::string& argument,
                  std::int32_t ranks, std::int32_t stages, bool v);

// Puts the same number of layers in each stage; throws ARGUMENT if stages do not divide the layers.
layout even_layout(std::int32_t layers, std::int32_t stages, const std::string& argument);

// Makes layers no-ops; throws ARGUMENT if there is no such layer, or if one is named twice.
void add_noops(layout& of, std::vector<std::int32_t> layers, const std::string& argument);

std::string text_of(const layout& of);

}  // namespace velo::sched
