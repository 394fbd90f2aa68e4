// A timeline as a picture: a row for each rank, time to the right, a rectangle for each action with
// its micro-batch, one shade for each chunk. An FB is cut in two, its F above its B. Communication
// that takes time is a strip below the rank's actions. Waits are hatched, densely between the
// rank's first and last action, lightly outside. The critical path is outlined; a line marks where
// it crosses to another rank. Beside each row stand the maximum of activations held, or the maximum
// of memory by category if sizes are given, with the maximum on the host as a hollow bar behind it,
// and the share of time spent waiting.
//
// Three of four actions are wide enough for their number, shorter ones only while the picture fits
// a screen. Pictures of many actions are wider than that, but never wider than `most_width`: in a
// measured run one action, or one wait, may take a thousand times as long as another. Numbers are
// drawn where they fit; rectangles narrower than `least` are not drawn.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/svg.hpp"
#include "sched/render/text.hpp"
#include "sched/simulate/critical_path.hpp"
#include "sched/simulate/memory_use.hpp"

namespace velo::sched {

using core::append;

namespace {

constexpr double left = 64, top = 62;        // space for names of ranks, for title and headings
constexpr double row_height = 30, bar = 24;  // the rest of a row is a gap, and communication
constexpr double strip_height = 4;
constexpr double digit = 5.7, margin = 3;  // of a number, at font size 10
constexpr double beside = 210, peak_width = 80;
constexpr double least_width = 640, screen_width = 1280 - left - beside, most_width = 12000;
constexpr double least = 0.2;
constexpr std::uint32_t category_colors[on_device] = {0x8cd17d, 0xd37295, 0xfabfd2, 0xb0c4d8,
                                                      0xbab0ac};
constexpr double letter = 6.4, capital = 8.6;  // widths at font size 12
constexpr double legend_line = 22;             // between lines
constexpr const char* hollow = "#fff\" stroke=\"#555";

// The color of a chunk: the first one's is unchanged, later ones are paler.
std::uint32_t shade(std::uint32_t color, std::int32_t chunk, std::size_t chunks) {
  if (chunks < 2) return color;
  const double pale = 0.62 * chunk / static_cast<double>(chunks - 1);
  std::uint32_t mixed = 0;
  for (const int shift : {16, 8, 0}) {
    const double part = static_cast<double>(color >> shift & 0xff);
    mixed |= static_cast<std::uint32_t>(std::lround(part + (255 - part) * pale)) << shift;
  }
  return mixed;
}
bool is_pale(std::uint32_t color) {
  return 0.3 * (color >> 16) + 0.59 * (color >> 8 & 0xff) + 0.11 * (color & 0xff) > 150;
}

double width_of(const std::string& text) {
  double all = 0;
  for (const char c : text) all += c >= 'A' && c <= 'Z' ? capital : letter;
  return all;
}

class picture {
 public:
  explicit picture(const timeline& of)
      : of_(of),
        schedule_(*of.of),
        shape_(schedule_.sizes()),
        chunk_of_(chunks_of(schedule_)),
        spans_(spans_of(of)),
        path_(critical_path(of, *spans_)),
        critical_(spans_->size()) {
    for (std::size_t rank = 0; rank < critical_.size(); ++rank)
      critical_[rank].resize((*spans_)[rank].size());
    for (const path_step& step : path_) critical_[core::at(step.rank)][core::at(step.index)] = true;
    const std::int64_t makespan = of_.times.makespan();
    width_ = wanted_width(static_cast<double>(makespan));
    per_tick_ = makespan == 0 ? 0 : width_ / static_cast<double>(makespan);
    arrange_legend();
  }

  std::string draw() {
    begin();
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) draw_row(rank);
    draw_crossings();
    if (has_sizes(of_))
      draw_memory();
    else
      draw_peaks();
    draw_axis();
    draw_legend();
    return std::move(out_ += "</svg>\n");
  }

 private:
  double x(std::int64_t ticks) const { return left + static_cast<double>(ticks) * per_tick_; }
  double y(std::int32_t rank) const { return top + row_height * rank; }
  double bottom() const { return y(shape_.ranks); }

  // The width that fits the longest number into the actions that are to show it.
  double wanted_width(double makespan) {
    std::vector<double> took;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      std::size_t index = 0;
      for (row_reader row(schedule_, rank); !row.done(); row.pass(), ++index) {
        const span& when = spans_of_rank(rank)[index];
        const action& a = row.next();
        offloads_ = offloads_ || a.kind == VELO_ACTION_OFFLOAD;
        if (when.end == when.begin) continue;
        seen_[a.kind] = true;
        if (computes(a.kind)) took.push_back(static_cast<double>(when.end - when.begin));
      }
    }
    if (took.empty()) return least_width;
    const auto quarter = took.begin() + static_cast<std::ptrdiff_t>(took.size() / 4);
    std::nth_element(took.begin(), quarter, took.end());
    const double shortest = *std::min_element(took.begin(), quarter + 1);
    const std::string longest = unit_text(shape_, std::max(shape_.units() - 1, 0));
    const double number = digit * static_cast<double>(longest.size()) + margin;
    const double most = 2 * number * static_cast<double>(took.size());
    return std::clamp(std::max(std::min(makespan / shortest * number, screen_width),
                               makespan / *quarter * number),
                      least_width, std::clamp(most, screen_width, most_width));
  }
  const std::vector<span>& spans_of_rank(std::int32_t rank) const {
    return (*spans_)[core::at(rank)];
  }

  void begin() {
    const double wide = left + width_ + beside;
    const double high = bottom() + 88 + legend_line * (legend_lines_ - 1);
    append(out_,
           "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
           "viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"12\">\n",
           wide, high, wide, high);
    out_ +=
        "<defs><pattern id=\"wait\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><path d=\"M0 0V6\" stroke=\"#999\" "
        "stroke-width=\"2\"/></pattern>\n"
        "<pattern id=\"outside\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
        "patternTransform=\"rotate(45)\"><path d=\"M0 0V6\" stroke=\"#ccc\"/></pattern></defs>\n"
        "<style>.n{font-size:10px;text-anchor:middle;pointer-events:none}.w{fill:#fff}"
        ".h{font-size:9px}.c{fill:none;stroke:#111;stroke-width:1.4;pointer-events:none}</"
        "style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n";
    append(out_, "<text x=\"%.0f\" y=\"24\" font-size=\"16\">", left);
    out_ += core::svg::escaped(title_of(of_));
    out_ += "</text>\n";
    append(out_, "<text x=\"%.1f\" y=\"%.0f\">%s</text>\n", left + width_ + 10, top - 8,
           has_sizes(of_) ? "most memory" : "peak activations");
    append(out_, "<text x=\"%.1f\" y=\"%.0f\">waits</text>\n", left + width_ + beside - 60,
           top - 8);
  }

  void rect(double from, double to, double upper, double height, const char* fill) {
    append(out_, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"/>\n", from,
           upper, to - from, height, fill);
  }

  void draw_row(std::int32_t rank) {
    const rank_times& times = of_.times.ranks[core::at(rank)];
    append(out_, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">rank %d</text>\n", left - 8,
           y(rank) + 16, rank);
    rect(x(0), x(of_.times.makespan()), y(rank), bar, "url(#outside)");
    rect(x(times.first), x(times.last), y(rank), bar, "url(#wait)");
    std::size_t index = 0;
    for (row_reader row(schedule_, rank); !row.done(); row.pass(), ++index)
      draw_action(rank, row.next(), spans_of_rank(rank)[index], critical_[core::at(rank)][index]);
    append(out_, "<text x=\"%.1f\" y=\"%.1f\">%.1f %%</text>\n", left + width_ + beside - 60,
           y(rank) + 16, idle_percent(of_, rank));
  }

  void draw_action(std::int32_t rank, const action& a, const span& when, bool critical) {
    if ((static_cast<double>(when.end - when.begin)) * per_tick_ < least) return;
    out_ += "<g><title>";
    sched::append(out_, a);
    out_ += ": ";
    append_number(out_, shown(of_, when.begin));
    out_ += " to ";
    append_number(out_, shown(of_, when.end));
    out_ += "</title>";
    if (!computes(a.kind)) {
      draw_box(a, when, y(rank) + bar, strip_height);
    } else if (a.kind == VELO_ACTION_FB) {
      draw_box(make_action(VELO_ACTION_F, a.stage, a.microbatch), when, y(rank), bar / 2);
      draw_box(make_action(VELO_ACTION_B, a.other_stage, a.other_microbatch), when,
               y(rank) + bar / 2, bar / 2);
    } else {
      draw_box(a, when, y(rank), bar);
    }
    if (critical && computes(a.kind)) draw_outline(rank, when);
    out_ += "</g>\n";
  }

  void draw_outline(std::int32_t rank, const span& when) {
    const double wide = (static_cast<double>(when.end - when.begin)) * per_tick_ - 1.4;
    append(out_, "<path class=\"c\" d=\"M%.2f %.1fh%.2fv%.1fh%.2fz\"/>", x(when.begin) + 0.7,
           y(rank) + 0.7, std::max(wide, 0.1), bar - 1.4, -std::max(wide, 0.1));
  }

  // Draws a rectangle, with its micro-batch if there is room.
  void draw_box(const action& a, const span& when, double upper, double height) {
    const auto stage = static_cast<std::size_t>(a.stage);
    const std::size_t chunks = schedule_.stages_of(schedule_.rank_of(a.stage)).size();
    const std::uint32_t color = shade(look_of(a.kind).color, chunk_of_[stage], chunks);
    const double from = x(when.begin), to = x(when.end);
    append(out_, "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"#%06x\"%s/>",
           from, upper, to - from, height, color,
           to - from > 4 ? " stroke=\"#fff\" stroke-width=\"0.6\"" : "");
    const std::string number = unit_text(shape_, a.microbatch);
    if (height < 10 || digit * static_cast<double>(number.size()) > to - from) return;
    append(out_, "<text class=\"n%s%s\" x=\"%.2f\" y=\"%.1f\">%s</text>",
           is_pale(color) ? "" : " w", height < bar ? " h" : "", (from + to) / 2,
           upper + height / 2 + 3.5, number.c_str());
  }

  // Draws a line from the end of a step of the critical path to the begin of the next, if that is
  // on another rank.
  void draw_crossings() {
    for (std::size_t i = 1; i < path_.size(); ++i) {
      const path_step &from = path_[i - 1], &to = path_[i];
      if (from.rank == to.rank) continue;
      const bool down = from.rank < to.rank;
      append(out_, "<path class=\"c\" d=\"M%.2f %.1fL%.2f %.1f\"/>\n", x(from.when.end),
             y(from.rank) + (down ? bar : 0), x(to.when.begin), y(to.rank) + (down ? 0 : bar));
    }
  }

  void draw_peaks() {
    std::int64_t most = 1;
    for (const rank_times& one : of_.times.ranks) most = std::max(most, one.peak);
    const double from = left + width_ + 10;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      const std::int64_t peak = of_.times.ranks[core::at(rank)].peak;
      const double wide = peak_width * static_cast<double>(peak) / static_cast<double>(most);
      rect(from, from + wide, y(rank) + 4, bar - 8, "#b0c4d8");
      draw_amount(rank, of_.in_microbatches(peak), "");
    }
  }
  void draw_amount(std::int32_t rank, double amount, const char* look) {
    append(out_, "<text x=\"%.1f\" y=\"%.1f\"%s>", left + width_ + 14, y(rank) + 16, look);
    append_number(out_, amount);
    out_ += "</text>\n";
  }

  // Draws the categories side by side at the rank's peak. Offloaded memory is shown by its own
  // maximum.
  void draw_memory() {
    memory_use use(of_, *spans_);
    std::vector<memory_amounts> peaks;
    double most = 0;
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      peaks.push_back(use.peak(rank));
      most = std::max(most, peaks.back().total() + peaks.back().of[offloaded]);
    }
    char fill[16];
    for (std::int32_t rank = 0; rank < shape_.ranks; ++rank) {
      const memory_amounts& of_rank = peaks[core::at(rank)];
      double from = left + width_ + 10;
      for (std::size_t c = 0; c < categories && most > 0; ++c) {
        if (c == offloaded && of_rank.of[c] == 0) continue;
        const double to = from + peak_width * of_rank.of[c] / most;
        if (c < on_device) std::snprintf(fill, sizeof fill, "#%06x", category_colors[c]);
        out_ += "<g><title>" + std::string(category_names[c]) + ": ";
        append_number(out_, of_rank.of[c]);
        out_ += "</title>";
        rect(from, to, y(rank) + 4, bar - 8, c < on_device ? fill : hollow);
        out_ += "</g>\n";
        from = to;
      }
      draw_amount(rank, of_rank.total(),
                  " paint-order=\"stroke\" stroke=\"#fff\" stroke-width=\"3\"");
    }
  }

  // Draws a mark at every 1, 2 or 5 times a power of ten, some 80 pixels apart.
  void draw_axis() {
    const double all = shown(of_, of_.times.makespan());
    append(out_, "<path d=\"M%.2f %.1fH%.2f\" stroke=\"#000\"/>\n", left, bottom() + 2,
           left + width_);
    if (!(all > 0)) return;
    const double raw = all / (width_ / 80), power = std::pow(10, std::floor(std::log10(raw)));
    const double step = power * (raw <= power       ? 1
                                 : raw <= 2 * power ? 2
                                 : raw <= 5 * power ? 5
                                                    : 10);
    double unit_at = left + width_ + 10;
    for (std::int64_t i = 0; static_cast<double>(i) * step <= all; ++i) {
      const double at = left + width_ * (static_cast<double>(i) * step / all);
      const core::text number("%.6g", static_cast<double>(i) * step);
      append(out_, "<path d=\"M%.2f %.1fv5\" stroke=\"#000\"/>", at, bottom() + 2);
      append(out_, "<text x=\"%.2f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n", at,
             bottom() + 20, number.buffer);
      unit_at = std::max(unit_at, at + letter * (static_cast<double>(std::strlen(number)) / 2 + 1));
    }
    append(out_, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", unit_at, bottom() + 20,
           of_.measured != nullptr ? "ms" : "in the unit of the costs");
  }

  // Lays the legend out: a swatch and a word for each, in lines no wider than the picture.
  void arrange_legend() {
    double at = left;
    const auto add = [&](std::uint32_t color, std::string label, bool filled = true) {
      const double wide = 28 + width_of(label);
      if (at > left && at + wide > left + width_ + beside) {
        at = left;
        ++legend_lines_;
      }
      legend_.push_back({at, legend_lines_ - 1, color, std::move(label), filled});
      at += wide + 18;
    };
    for (velo_action_kind kind = 0; kind <= last_kind; ++kind) {
      const bool part_of_fused =
          seen_[VELO_ACTION_FB] && (kind == VELO_ACTION_F || kind == VELO_ACTION_B);
      if (kind == VELO_ACTION_FB || (!seen_[kind] && !part_of_fused)) continue;
      add(look_of(kind).color, std::string(look_of(kind).name) + ", " + look_of(kind).meaning);
    }
    add(0x111111, "outlined: the critical path");
    if (!has_sizes(of_)) return;
    at = left;
    ++legend_lines_;
    for (std::size_t c = 0; c < on_device; ++c) add(category_colors[c], category_names[c]);
    if (offloads_) add(0, category_names[offloaded], false);
  }
  void draw_legend() {
    char fill[16];
    for (const legend_entry& entry : legend_) {
      const double upper = bottom() + 34 + legend_line * entry.line;
      std::snprintf(fill, sizeof fill, "#%06x", entry.color);
      rect(entry.at, entry.at + 22, upper, 14, entry.filled ? fill : hollow);
      append(out_, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", entry.at + 28, upper + 11,
             entry.label.c_str());
    }
    draw_second_legend(bottom() + 34 + legend_line * legend_lines_);
  }
  void draw_second_legend(double upper) {
    double at = left;
    if (shape_.stages > shape_.ranks)
      append(out_, "<text x=\"%.1f\" y=\"%.1f\">paler: later stages of the rank</text>\n",
             left + 2 * 310, upper + 11);
    for (const auto& [fill, label] :
         {std::pair("url(#wait)", "waits between its own first and last action"),
          std::pair("url(#outside)", "before and behind them")}) {
      rect(at, at + 22, upper, 14, fill);
      append(out_, "<text x=\"%.1f\" y=\"%.1f\">%s</text>\n", at + 28, upper + 11, label);
      at += 310;
    }
  }

  struct legend_entry {
    double at;
    std::int32_t line;
    std::uint32_t color;
    std::string label;
    bool filled;
  };

  const timeline& of_;
  const schedule& schedule_;
  const shape& shape_;
  const std::vector<std::int32_t> chunk_of_;
  const std::shared_ptr<const spans> spans_;
  const std::vector<path_step> path_;
  std::vector<std::vector<bool>> critical_;  // by rank and action
  bool seen_[last_kind + 1] = {};            // kinds that take time
  bool offloads_ = false;
  double width_ = 0, per_tick_ = 0;
  std::vector<legend_entry> legend_;
  std::int32_t legend_lines_ = 1;
  std::string out_;
};

}  // namespace

std::string draw_svg(const timeline& of) {
  require_drawable(of);
  return picture(of).draw();
}

}  // namespace velo::sched
