// Slices are ordered by rank, thread and begin, an outer one before those inside it: a stack of
// open slices then tells how deep each lies, and which operators hold collectives.
#include "examples/decoder/report/profile_picture.hpp"

#include <jansson.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "examples/decoder/failure.hpp"
#include "examples/decoder/files/json_memory.hpp"
#include "examples/decoder/report/svg_text.hpp"

namespace decoder {
namespace {

using kind = profile_slice::kind;

constexpr double left = 72, width = 1200, right = left + width, beside = 210;
constexpr double top = 64, row_height = 58;
constexpr double least = 0.5;  // width that is drawn
constexpr double letter = 7;   // width at font size 13
constexpr const char* ink = "#1f2933";
constexpr const char* faint = "#7b8794";
constexpr const char* pass_colors[] = {"#bfd3fb", "#d7e3fc"};  // by turns
constexpr const char* operator_color = "#2563eb";
constexpr const char* waiting_color = "#e4e7eb";
constexpr const char* group_colors[] = {"#d9480f", "#2b8a3e", "#862e9c", "#e67700",
                                        "#0b7285", "#c2255c", "#5c940d", "#495057"};

// The color of a group. Those behind the listed ones have hues one golden angle apart, so that no
// two are the same.
std::string color_of(int group) {
  constexpr int listed = static_cast<int>(std::size(group_colors));
  if (group < listed) return group_colors[group];
  char color[40];
  std::snprintf(color, sizeof color, "hsl(%.1f,65%%,42%%)",
                std::fmod(137.508 * (group - listed), 360.0));
  return color;
}

const char* text_of(const json_t* object, const char* key) {
  const char* text = json_string_value(json_object_get(object, key));
  return text != nullptr ? text : "";
}

double number_of(const json_t* object, const char* key) {
  return json_number_value(json_object_get(object, key));
}

// A slice with its place among the others.
struct placed {
  const profile_slice* of;
  int depth = 0;       // ranges around it
  bool waits = false;  // an operator with collectives inside
};

std::vector<placed> placed_of(const std::vector<profile_slice>& profile) {
  std::vector<placed> all;
  for (const profile_slice& each : profile) all.push_back({&each});
  std::stable_sort(all.begin(), all.end(), [](const placed& a, const placed& b) {
    return std::tuple(a.of->rank, a.of->thread, a.of->begin, -a.of->end) <
           std::tuple(b.of->rank, b.of->thread, b.of->begin, -b.of->end);
  });
  std::vector<placed*> open;
  for (placed& each : all) {
    const auto holds = [&](const placed* outer) {
      return outer->of->rank == each.of->rank && outer->of->thread == each.of->thread &&
             outer->of->end > each.of->begin;
    };
    while (!open.empty() && !holds(open.back())) open.pop_back();
    for (placed* outer : open) {
      each.depth += outer->of->what == kind::range ? 1 : 0;
      outer->waits = outer->waits || each.of->what == kind::collective;
    }
    open.push_back(&each);
  }
  return all;
}

// The length of the union of spans.
double covered(std::vector<std::pair<double, double>> spans) {
  std::sort(spans.begin(), spans.end());
  double sum = 0, end = spans.empty() ? 0 : spans.front().first;
  for (const auto& [from, to] : spans) {
    sum += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return sum;
}

class drawing {
 public:
  explicit drawing(const std::vector<profile_slice>& profile) : slices_(placed_of(profile)) {
    if (!slices_.empty()) begin_ = end_ = slices_.front().of->begin;
    for (const placed& each : slices_) {
      rows_.emplace(each.of->rank, 0);
      if (each.of->what == kind::collective) groups_.emplace(each.of->group, "");
      begin_ = std::min(begin_, each.of->begin);
      end_ = std::max(end_, each.of->end);
    }
    int next = 0;
    for (auto& [rank, row] : rows_) row = next++;
    next = 0;
    for (auto& [group, color] : groups_) color = color_of(next++);
    per_us_ = end_ > begin_ ? width / (end_ - begin_) : 0;
  }

  std::string draw() {
    to_ = svg_text(right + beside, bottom() + 76);
    to_.label(left, 24, ink, "start", "passes, operators and collectives of each rank",
              R"(font-size="16" font-weight="600")");
    for (const auto& [rank, row] : rows_) draw_rank(rank, row);
    draw_steps();
    draw_axis();
    draw_legend();
    return to_.end();
  }

 private:
  double x(double us) const { return left + (us - begin_) * per_us_; }
  double y(int row) const { return top + row_height * row; }
  double bottom() const { return y(static_cast<int>(rows_.size())); }

  // A strip of slices that do not overlap but for rounding.
  struct strip {
    double at, height;
    double drawn = 0;  // up to here
  };
  bool draw(strip& on, const profile_slice& slice, const char* color) {
    const double from = std::max(x(slice.begin), on.drawn), to = x(slice.end);
    if (to - from < least) return false;
    on.drawn = to;
    char title[160];
    std::snprintf(title, sizeof title, "%s%s%s, %.1f us", slice.name.c_str(),
                  slice.group.empty() ? "" : " of ", slice.group.c_str(), slice.end - slice.begin);
    to_.rectangle(from, on.at, to - from, on.height, color, to - from >= 2 ? title : "");
    return true;
  }

  void draw_rank(std::int64_t rank, int row) {
    to_.label(left - 10, y(row) + 28, ink, "end", "rank " + std::to_string(rank));
    strip passes{y(row) + 2, 18}, operators{y(row) + 22, 14}, waiting{y(row) + 38, 14},
        collectives{y(row) + 38, 14};
    std::vector<std::pair<double, double>> working, moving;
    int turn = 0;
    for (const placed& each : slices_of_rank(rank)) {
      const profile_slice& slice = *each.of;
      if (slice.what == kind::range) {
        if (each.depth == 1 && draw(passes, slice, pass_colors[turn++ % 2]))
          name_pass(passes, slice);
      } else if (slice.what == kind::collective) {
        moving.emplace_back(slice.begin, slice.end);
        draw(collectives, slice, groups_.at(slice.group).c_str());
      } else if (each.waits) {
        draw(waiting, slice, waiting_color);
      } else {
        working.emplace_back(slice.begin, slice.end);
        draw(operators, slice, operator_color);
      }
    }
    draw_share(y(row) + 34, "operators", covered(working));
    draw_share(y(row) + 50, "collectives", covered(moving));
  }

  // By begin, over all threads.
  std::vector<placed> slices_of_rank(std::int64_t rank) const {
    std::vector<placed> mine;
    std::copy_if(slices_.begin(), slices_.end(), std::back_inserter(mine),
                 [&](const placed& each) { return each.of->rank == rank; });
    std::stable_sort(mine.begin(), mine.end(),
                     [](const placed& a, const placed& b) { return a.of->begin < b.of->begin; });
    return mine;
  }

  void name_pass(const strip& on, const profile_slice& slice) {
    const double from = x(slice.begin), to = x(slice.end);
    if (letter * static_cast<double>(slice.name.size()) + 4 < to - from)
      to_.label((from + to) / 2, on.at + 13.5, ink, "middle", slice.name);
  }

  void draw_share(double at, const char* name, double us) {
    char words[64];
    const double whole = end_ - begin_;
    std::snprintf(words, sizeof words, "%s %.0f %%", name, whole > 0 ? 100 * us / whole : 0);
    to_.label(right + 12, at, faint, "start", words);
  }

  // Ranges of the first rank that no other holds.
  void draw_steps() {
    for (const placed& each : slices_) {
      if (each.of->rank != rows_.begin()->first) break;
      if (each.of->what != kind::range || each.depth > 0) continue;
      const double at = x(each.of->begin);
      to_.put(R"(<line x1="%.1f" x2="%.1f" y1="%g" y2="%g" stroke="%s"/>)", at, at, top - 16,
              bottom(), faint);
      if (letter * static_cast<double>(each.of->name.size()) + 8 < x(each.of->end) - at)
        to_.label(at + 4, top - 6, ink, "start", each.of->name);
    }
  }

  void draw_axis() {
    const double whole = (end_ - begin_) / 1e3;  // ms
    const double step = whole > 0 ? tick_step(whole, 10) : 1;
    for (int i = 0; i * step <= whole; ++i) {
      const double at = x(begin_ + 1e3 * i * step);
      char words[32];
      std::snprintf(words, sizeof words, "%g", i * step);
      to_.put(R"(<line x1="%.1f" x2="%.1f" y1="%g" y2="%g" stroke="%s"/>)", at, at, bottom(),
              bottom() + 5, faint);
      to_.label(at, bottom() + 20, faint, "middle", words);
    }
    to_.label(right + 12, bottom() + 20, faint, "start", "ms");
  }

  void draw_legend() {
    double at = left;
    const auto add = [&](const char* color, const std::string& words) {
      to_.rectangle(at, bottom() + 44, 14, 14, color);
      to_.label(at + 20, bottom() + 56, ink, "start", words);
      at += 36 + letter * static_cast<double>(words.size());
    };
    add(operator_color, "operator");
    add(waiting_color, "operator that waits");
    for (const auto& [group, color] : groups_) add(color.c_str(), "collective of " + group);
  }

  const std::vector<placed> slices_;
  std::map<std::int64_t, int> rows_;           // by rank
  std::map<std::string, std::string> groups_;  // colors
  double begin_ = 0, end_ = 0, per_us_ = 0;
  svg_text to_{0, 0};
};

}  // namespace

std::vector<profile_slice> slices_of(const std::string& events) {
  const std::string list = "[" + events + "]";
  json_error_t error;
  const std::unique_ptr<json_t, void (*)(json_t*)> all(
      json_loadb(list.data(), list.size(), 0, &error), [](json_t* each) { json_decref(each); });
  require_json_memory();
  if (all == nullptr) fail("events of a profile: %s at byte %d", error.text, error.position);
  std::vector<profile_slice> slices;
  for (std::size_t i = 0; i < json_array_size(all.get()); ++i) {
    const json_t* each = json_array_get(all.get(), i);
    const std::string category = text_of(each, "cat");
    if (text_of(each, "ph") != std::string("X") || category == "wait") continue;
    const kind what = category == "range"      ? kind::range
                      : category == "operator" ? kind::operation
                                               : kind::collective;
    const double begin = number_of(each, "ts");
    slices.push_back({json_integer_value(json_object_get(each, "pid")),
                      json_integer_value(json_object_get(each, "tid")), what, begin,
                      begin + number_of(each, "dur"), text_of(each, "name"),
                      text_of(json_object_get(each, "args"), "group")});
  }
  return slices;
}

std::string svg(const std::vector<profile_slice>& profile) {
  return drawing(profile).draw();
}

}  // namespace decoder
