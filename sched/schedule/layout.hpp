// What each stage of a model holds, and its text, Megatron's and MindSpeed's: "Et*3|(tt|)*4tmL".
//
// E is the embedding, t a layer, m a layer that predicts tokens further on, L the loss; a stage
// ends at `|` and may be empty. E comes first and L last, m behind all t, in the last stage of a
// rank, and not on the rank that has stage 0 unless there is no other. Repeated texts unfold to at
// most `most_symbols`, so a text costs no more than these. Layers that do nothing are counted like
// others and cost nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace velo::sched {

struct stage_content {
  std::int32_t first_layer = 0;
  std::int32_t layers = 0;  // with those that do nothing
  std::int32_t noops = 0;
  std::int32_t predictors = 0;
  bool embedding = false, loss = false;
};

struct layout {
  std::vector<stage_content> stages;  // of one chain
  std::vector<std::int32_t> noops;    // layers that do nothing, ascending
  std::int32_t layers() const;
};

inline constexpr std::int32_t most_symbols = 1 << 20;

// Throws ARGUMENT naming the character, counted from 1, where the text is none.
layout parse_layout(std::string_view text, const std::string& argument);

// What ranks ask of a layout: as many stages as they hold, m where they may be. v: stages go down
// the ranks and up again. Throws ARGUMENT naming the character behind the text.
void require_fits(const layout& of, std::string_view text, const std::string& argument,
                  std::int32_t ranks, std::int32_t stages, bool v);

// As many layers in each stage; throws ARGUMENT where they do not divide.
layout even_layout(std::int32_t layers, std::int32_t stages, const std::string& argument);

// Makes layers do nothing; throws ARGUMENT where there is no such layer, or one is named twice.
void add_noops(layout& of, std::vector<std::int32_t> layers, const std::string& argument);

std::string text_of(const layout& of);

}  // namespace velo::sched
