// Layout: a title block, a plot with a light grid, and a margin at the right where
// the labels stand.
#include "examples/decoder/report/loss_curve.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "examples/decoder/report/svg_text.hpp"

namespace decoder {
namespace {

constexpr double width = 960, height = 540;
constexpr double left = 72, right = 800, top = 112, bottom = 476;
constexpr const char* ink = "#1f2933";
constexpr const char* faint = "#7b8794";
constexpr const char* grid = "#e4e7eb";
constexpr const char* blue = "#2563eb";
constexpr const char* orange = "#d9480f";

class drawing {
 public:
  explicit drawing(const loss_curve& curve) : curve_(curve) { scale(); }

  std::string draw() {
    to_.label(left, 42, ink, "start", curve_.title, "font-size=\"20\" font-weight=\"600\"");
    to_.label(left, 66, faint, "start", curve_.subtitle);
    axes();
    baseline();
    training();
    validation();
    end_labels();
    return to_.end();
  }

 private:
  void scale() {
    double low = 8, high = 0;
    const auto include = [&](double bits) {
      if (!std::isfinite(bits)) return;
      low = std::min(low, bits);
      high = std::max(high, bits);
    };
    for (const double bits : curve_.training) include(bits);
    for (const loss_point& point : curve_.validation) include(point.bits);
    if (curve_.zlib > 0) include(curve_.zlib);
    if (low > high) {
      low = 0;
      high = 8;
    }
    y_step_ = tick_step(std::max(high - low, 0.1), 6);
    // The lowest point stays off the axis, so that it is not taken for it.
    low_ = std::max(0.0, std::floor((low - 0.15 * y_step_) / y_step_) * y_step_);
    high_ = std::max(std::ceil(high / y_step_) * y_step_, low_ + y_step_);
    steps_ = std::max<double>(1, static_cast<double>(curve_.training.size()));
    for (const loss_point& point : curve_.validation) {
      steps_ = std::max(steps_, static_cast<double>(point.step));
    }
  }

  double x(double step) const { return left + (right - left) * step / steps_; }
  double y(double bits) const { return bottom - (bottom - top) * (bits - low_) / (high_ - low_); }

  static std::string number(double value, double step) {
    char buffer[32];
    const int digits = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
    std::snprintf(buffer, sizeof buffer, "%.*f", digits, value);
    return buffer;
  }

  void axes() {
    for (double bits = low_; bits < high_ + y_step_ / 2; bits += y_step_) {
      to_.put("<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>", left, right,
              y(bits), y(bits), grid);
      to_.label(left - 10, y(bits) + 4.5, faint, "end", number(bits, y_step_));
    }
    const double x_step = std::max(1.0, tick_step(steps_, 8));
    for (double step = 0; step <= steps_; step += x_step) {
      to_.put("<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\" stroke=\"%s\"/>", x(step), x(step),
              bottom, bottom + 5, faint);
      to_.label(x(step), bottom + 22, faint, "middle", number(step, x_step));
    }
    to_.put("<line x1=\"%g\" x2=\"%g\" y1=\"%g\" y2=\"%g\" stroke=\"%s\"/>", left, right, bottom,
            bottom, faint);
    to_.label((left + right) / 2, bottom + 46, ink, "middle", "step");
    to_.label(left, top - 14, ink, "start", "bits/byte");
  }

  void baseline() {
    if (curve_.zlib <= 0) return;
    to_.put(
        "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" stroke-width=\"1.5\" "
        "stroke-dasharray=\"6 5\"/>",
        left, right, y(curve_.zlib), y(curve_.zlib), faint);
  }

  template <class Value>
  void line(const char* style, Value value) {
    to_.put("<polyline fill=\"none\" %s points=\"", style);
    // More points than pixels would only make the file heavy.
    const std::size_t stride = 1 + curve_.training.size() / 2000;
    for (std::size_t i = 0; i < curve_.training.size(); ++i) {
      const double bits = value(i);
      if (i % stride == 0 && std::isfinite(bits))
        to_.put("%.1f,%.1f ", x(static_cast<double>(i + 1)), y(bits));
    }
    to_.put("\"/>");
  }

  // Each step's loss is drawn pale, and over it the mean of the surrounding fortieth of the run.
  void training() {
    const auto mean = [&](std::size_t i) {
      const std::size_t reach = curve_.training.size() / 80;
      double sum = 0, count = 0;
      for (std::size_t k = i - std::min(i, reach); k <= i + reach && k < curve_.training.size();
           ++k) {
        if (std::isfinite(curve_.training[k])) {
          sum += curve_.training[k];
          ++count;
        }
      }
      return count > 0 ? last_ = sum / count : last_;
    };
    line("stroke=\"#bfd3fb\" stroke-width=\"1\"",
         [&](std::size_t i) { return curve_.training[i]; });
    line("stroke=\"#2563eb\" stroke-width=\"2.25\" stroke-linejoin=\"round\"", mean);
  }

  void validation() {
    for (const loss_point& point : curve_.validation) {
      if (!std::isfinite(point.bits)) continue;
      to_.put(
          "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" fill=\"%s\" stroke=\"#ffffff\" "
          "stroke-width=\"1.5\"/>",
          x(static_cast<double>(point.step)), y(point.bits), orange);
    }
  }

  // The labels at the right stand at their lines' heights, moved apart where they would touch.
  void end_labels() {
    struct entry {
      double height;
      const char* color;
      std::string words;
    };
    std::vector<entry> entries;
    const auto add = [&](double bits, const char* color, const char* name) {
      if (std::isfinite(bits))
        entries.push_back({y(bits), color, std::string(name) + " " + number(bits, 0.01)});
    };
    if (curve_.zlib > 0) add(curve_.zlib, faint, "zlib -9");
    if (last_ > 0) add(last_, blue, "training");
    if (!curve_.validation.empty()) add(curve_.validation.back().bits, orange, "validation");
    std::sort(entries.begin(), entries.end(),
              [](const entry& a, const entry& b) { return a.height < b.height; });
    double lowest = top;
    for (const entry& each : entries) {
      lowest = std::max(each.height, lowest);
      to_.label(right + 12, lowest + 4.5, each.color, "start", each.words, "font-weight=\"600\"");
      lowest += 18;
    }
  }

  const loss_curve& curve_;
  svg_text to_{width, height};
  double low_ = 0, high_ = 8, y_step_ = 1, steps_ = 1, last_ = 0;
};

}  // namespace

std::string svg(const loss_curve& curve) {
  return drawing(curve).draw();
}

}  // namespace decoder
