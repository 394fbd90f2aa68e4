// The load of experts as an SVG: a row for each expert, under its layer's number, and a column for
// each step. The darker a cell, the more choices: its load as a multiple of the mean of the layer.
//
// A long run has several steps in a column, of which it shows the mean; a model with more experts
// than rows shows the busiest of several neighbors in a row. Invariant: as many cells at most as
// rows times columns, whatever the run. Cost: that of the cells; adding a step is linear in the
// experts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace decoder {

class expert_picture {
 public:
  static constexpr std::size_t columns = 128, rows = 256;

  expert_picture(std::size_t layers, std::size_t experts);

  // shares: [layers, experts], multiples of the mean, of the next step.
  void add(std::int64_t step, const std::vector<float>& shares);
  bool is_empty() const { return cells_.empty(); }
  std::string svg(const std::string& title) const;

 private:
  struct column {
    std::int64_t first, steps;
    std::vector<float> sums;  // by row
  };
  std::size_t rows_of_layer() const { return (experts_ + each_ - 1) / each_; }
  void join_columns();

  const std::size_t layers_, experts_;
  std::size_t each_ = 1;  // experts of a row
  std::int64_t steps_of_column_ = 1;
  std::vector<column> cells_;
};

}  // namespace decoder
