// Columns as steps come, and the picture.
#include "examples/decoder/report/expert_picture.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "examples/decoder/report/svg_text.hpp"

namespace decoder {
namespace {

constexpr double left = 70, top = 70, width = 720, bottom = 50, right = 30;

// White at none, the ground of the scale at the mean, dark at four times the mean.
std::string color_of(double share) {
  const double dark = std::min(std::max(share, 0.0) / 4, 1.0);
  const auto level = [&](double to) {
    return static_cast<int>(std::lround(255 - (255 - to) * std::sqrt(dark)));
  };
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", static_cast<unsigned>(level(8)),
                static_cast<unsigned>(level(48)), static_cast<unsigned>(level(107)));
  return text;
}

double row_height(std::size_t rows) {
  return std::clamp(480.0 / static_cast<double>(rows), 2.0, 16.0);
}

void add_scale(svg_text& to, double y) {
  to.label(left, y, "#555555", "start", "choices, the mean of the layer as 1:");
  double x = left + 220;
  for (const double share : {0.0, 0.5, 1.0, 2.0, 4.0}) {
    char text[16];
    std::snprintf(text, sizeof text, share == 4 ? "%g or more" : "%g", share);
    to.rectangle(x, y - 11, 24, 13, color_of(share).c_str());
    to.label(x + 30, y, "#555555", "start", text);
    x += 70;
  }
}

}  // namespace

expert_picture::expert_picture(std::size_t layers, std::size_t experts)
    : layers_(layers), experts_(experts) {
  while (layers_ * rows_of_layer() > rows && each_ < experts_) each_ *= 2;
}

void expert_picture::join_columns() {
  steps_of_column_ *= 2;
  std::vector<column> joined;
  for (column& each : cells_) {
    if (joined.empty() || joined.back().steps + each.steps > steps_of_column_) {
      joined.push_back(std::move(each));
      continue;
    }
    column& before = joined.back();
    before.steps += each.steps;
    for (std::size_t i = 0; i < before.sums.size(); ++i) before.sums[i] += each.sums[i];
  }
  cells_ = std::move(joined);
}

void expert_picture::add(std::int64_t step, const std::vector<float>& shares) {
  if (cells_.empty() || cells_.back().steps == steps_of_column_) {
    if (cells_.size() == columns) join_columns();
    if (cells_.empty() || cells_.back().steps == steps_of_column_)
      cells_.push_back({step, 0, std::vector<float>(layers_ * rows_of_layer())});
  }
  column& last = cells_.back();
  ++last.steps;
  for (std::size_t layer = 0; layer < layers_; ++layer)
    for (std::size_t first = 0; first < experts_; first += each_) {
      const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(layer * experts_ + first);
      const std::size_t count = std::min(each_, experts_ - first);
      last.sums[layer * rows_of_layer() + first / each_] +=
          *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(count));
    }
}

std::string expert_picture::svg(const std::string& title) const {
  const std::size_t all = layers_ * rows_of_layer();
  const double each = row_height(all), gap = 4;
  const double height = each * static_cast<double>(all) + gap * static_cast<double>(layers_ - 1);
  svg_text to(left + width + right, top + height + bottom);
  to.label(left, 28, "#111111", "start", title, "font-size=\"17\" font-weight=\"600\"");
  add_scale(to, 52);
  const double wide = width / static_cast<double>(std::max<std::size_t>(cells_.size(), 1));
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    const double begin =
        top + static_cast<double>(layer) * (each * static_cast<double>(rows_of_layer()) + gap);
    to.label(left - 8, begin + 11, "#555555", "end", "layer " + std::to_string(layer));
    for (std::size_t row = 0; row < rows_of_layer(); ++row)
      for (std::size_t i = 0; i < cells_.size(); ++i) {
        const column& of = cells_[i];
        const double share = static_cast<double>(of.sums[layer * rows_of_layer() + row]) /
                             static_cast<double>(of.steps);
        to.rectangle(left + wide * static_cast<double>(i), begin + each * static_cast<double>(row),
                     wide + 0.05, each, color_of(share).c_str());
      }
  }
  if (!cells_.empty()) {
    const std::int64_t last = cells_.back().first + cells_.back().steps - 1;
    to.label(left, top + height + 22, "#555555", "start",
             "step " + std::to_string(cells_.front().first));
    to.label(left + width, top + height + 22, "#555555", "end", "step " + std::to_string(last));
  }
  return to.end();
}

}  // namespace decoder
