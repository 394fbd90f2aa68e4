// The timeline of a pool as an SVG picture: time to the right, bytes upwards. The bytes in use are
// stacked areas, one for each purpose; the bytes reserved are a line above, and the host's texts
// and refused requests are marks.
//
// Each column is a pixel wide and shows the moment with the most bytes in use within it, so that no
// peak is lost; the size of the picture does not grow with the history.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/text/svg.hpp"
#include "memory/history/snapshot.hpp"

namespace velo::memory {

using core::append;
using core::svg::bytes;
using core::svg::escaped;
using core::svg::fills;

namespace {

constexpr int width = 1200;  // columns
constexpr double height = 480;
constexpr double left = 110, top = 56;  // room for the scale; for the title and annotations

struct mark {
  double seconds;
  const event* what;
};

// The data of the picture, over time in seconds since the recording began.
struct course {
  std::vector<memory_levels> columns;
  std::vector<mark> notes, refused;
  memory_levels peaks;  // each purpose's own, at whatever time
  std::int64_t peak_live = 0;
  double begin = 0, end = 0;

  double x(double seconds) const { return left + (seconds - begin) / (end - begin) * width; }
  int column(double seconds) const {
    return std::clamp(static_cast<int>((seconds - begin) / (end - begin) * width), 0, width - 1);
  }
};

void raise(memory_levels& peaks, const memory_levels& now) {
  for (int p = 0; p < purposes; ++p) peaks.live[p] = std::max(peaks.live[p], now.live[p]);
  peaks.reserved = std::max(peaks.reserved, now.reserved);
}

course course_of(const snapshot& what) {
  course c;
  const std::int64_t origin = what.events.begin.ns;
  const core::tick_scale times = what.times();
  const auto seconds = [&](std::uint64_t ticks) {
    return static_cast<double>(times.at(ticks) - origin) / 1e9;
  };
  const std::size_t count = what.events.order.size();
  if (count == 0) return c;
  c.begin = what.events.dropped > 0 ? seconds(what.events.order.front().ticks) : 0;
  c.end = std::max(seconds(what.events.order.back().ticks), c.begin + 1e-6);
  c.columns.resize(width);
  memory_levels now = what.events.before;
  c.peak_live = now.all();
  c.peaks = now;
  std::int64_t highest = now.all();  // in this column
  int at = 0;
  c.columns[0] = now;
  for (std::size_t i = 0; i < count; ++i) {
    const event& e = what.events.at(i);
    const double when = seconds(e.ticks);
    for (const int column = c.column(when); at < column;) {
      c.columns[++at] = now;
      highest = now.all();
    }
    now.follow(e);
    if (now.all() >= highest) {
      highest = now.all();
      c.columns[at] = now;
    }
    c.peak_live = std::max(c.peak_live, highest);
    raise(c.peaks, now);
    if (e.kind == event_kind::annotated && e.address == 0) c.notes.push_back({when, &e});
    if (e.kind == event_kind::refused) c.refused.push_back({when, &e});
  }
  for (++at; at < width; ++at) c.columns[at] = now;
  return c;
}

class picture {
 public:
  picture(const course& c, std::uint64_t limit) : c_(c) {
    highest_ =
        static_cast<double>(std::max<std::int64_t>(1, std::max(c.peak_live, c.peaks.reserved)));
    if (limit != 0 && static_cast<double>(limit) < 1.5 * highest_) {
      limit_ = static_cast<std::int64_t>(limit);
      highest_ = std::max(highest_, static_cast<double>(limit));
    }
  }

  void draw(std::string& out) {
    draw_scale(out);
    draw_live(out);
    draw_line(out, c_.peak_live, "#2a2", "live");
    draw_reserved(out);
    if (c_.peaks.reserved != c_.peak_live) draw_line(out, c_.peaks.reserved, "#000", "reserved");
    if (limit_ != 0) draw_line(out, limit_, "#c00", "limit");
    draw_notes(out);
    draw_refused(out);
  }

 private:
  double y(std::int64_t count) const {
    return top + height - static_cast<double>(count) / highest_ * height;
  }

  void draw_scale(std::string& out) const {
    double step = 1024;  // powers of two, three to six lines
    while (highest_ / step > 6) step *= 2;
    out += "<g stroke=\"#eee\" font-size=\"11\">\n";
    for (double at = 0; at <= highest_; at += step) {
      const double where = y(static_cast<std::int64_t>(at));
      append(out, "<path d=\"M%.0f %.1fh%d\"/>", left, where, width);
      append(out, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\" stroke=\"none\">%s</text>\n",
             left - 6, where + 4, bytes(static_cast<std::int64_t>(at)).c_str());
    }
    const double length = c_.end - c_.begin;
    const double unit = length < 1e-3 ? 1e6 : length < 1 ? 1e3 : 1;
    const char* name = length < 1e-3 ? "us" : length < 1 ? "ms" : "s";
    step = std::pow(10, std::floor(std::log10(length * unit)));  // four to ten, round
    if (length * unit / step < 4) step /= length * unit / step < 2 ? 5 : 2;
    for (double at = std::ceil(c_.begin * unit / step) * step; at <= c_.end * unit; at += step)
      append(out,
             "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\" stroke=\"none\">%.10g %s</text>\n",
             c_.x(at / unit), top + height + 16, at, name);
    out += "</g>\n";
  }

  // From the bottom upwards, an area for each purpose that has bytes at any time.
  void draw_live(std::string& out) {
    std::vector<std::int64_t> below(width, 0);
    int shown = 0;
    for (int p = 0; p < purposes; ++p) {
      const std::int64_t most = c_.peaks.live[p];
      if (most == 0) continue;
      append(out, "<path fill=\"%s\" d=\"", fills[p]);
      std::vector<std::int64_t> above(below);
      for (int i = 0; i < width; ++i) above[i] += c_.columns[i].live[p];
      trace(out, above, true);
      trace(out, below, false);
      append(out, "Z\"><title>%s: at most %s</title></path>\n", purpose_names[p],
             bytes(most).c_str());
      below.swap(above);
      const double at = top + height - 18.0 * shown++;
      append(out, "<rect x=\"%.0f\" y=\"%.1f\" width=\"10\" height=\"10\" fill=\"%s\"/>",
             left + width + 12, at - 10, fills[p]);
      append(out, "<text x=\"%.0f\" y=\"%.1f\">%s, at most %s</text>\n", left + width + 27, at,
             purpose_names[p], bytes(most).c_str());
    }
  }

  // The steps of a value for each column, to the right or back.
  void trace(std::string& out, const std::vector<std::int64_t>& values, bool forth) const {
    append(out, "%c%.1f %.2f", forth ? 'M' : 'L', forth ? left : left + width,
           y(forth ? values.front() : values.back()));
    for (int i = 1; i < width; ++i) {
      const int at = forth ? i : width - i;
      if (values[at] == values[at - 1]) continue;
      append(out, "H%.0fV%.2f", left + at, y(values[forth ? at : at - 1]));
    }
    append(out, "H%.0f", forth ? left + width : left);
  }

  void draw_reserved(std::string& out) const {
    std::vector<std::int64_t> reserved;
    for (const memory_levels& l : c_.columns) reserved.push_back(l.reserved);
    out += "<path fill=\"none\" stroke=\"#000\" d=\"";
    trace(out, reserved, true);
    out += "\"><title>reserved</title></path>\n";
  }

  void draw_line(std::string& out, std::int64_t count, const char* color, const char* what) {
    append(out, "<path d=\"M%.1f %.2fh%d\" stroke=\"%s\" stroke-dasharray=\"6 4\"/>\n", left,
           y(count), width, color);
    words_ = std::min(y(count) + 4, words_ - 13);  // lines come from the lowest up
    append(out, "<text x=\"%.1f\" y=\"%.2f\" fill=\"%s\">%s %s</text>\n", left + width + 6, words_,
           color, what, bytes(count).c_str());
  }

  // Words where there is room for them, the whole text under the pointer.
  void draw_notes(std::string& out) const {
    double free_from = 0;
    for (const mark& m : c_.notes) {
      const double at = c_.x(m.seconds);
      const std::string text = escaped(past::text(*m.what));
      append(out, "<path d=\"M%.1f %.0fv%.0f\" stroke=\"#888\" stroke-dasharray=\"2 3\"><title>",
             at, top, height);
      out += text + "</title></path>\n";
      const double length = 6.0 * static_cast<double>(text.size()) + 8;
      if (at < free_from || at + length > left + width) continue;
      append(out, "<text x=\"%.1f\" y=\"%.0f\" font-size=\"10\" fill=\"#555\">", at, top - 6);
      out += text + "</text>\n";
      free_from = at + length;
    }
  }

  void draw_refused(std::string& out) const {
    for (const mark& m : c_.refused) {
      append(out, "<path d=\"M%.1f %.0fl-5 -9h10z\" fill=\"#c00\"><title>", c_.x(m.seconds),
             top + height);
      append(out, "refused: %s, largest hole %s</title></path>\n",
             bytes(static_cast<std::int64_t>(m.what->requested)).c_str(),
             bytes(static_cast<std::int64_t>(m.what->size)).c_str());
    }
  }

  const course& c_;
  double highest_ = 1;
  double words_ = top + height + 100;  // where the last line's words are
  std::int64_t limit_ = 0;
};

}  // namespace

std::string draw_timeline(const snapshot& what) {
  const course c = course_of(what);
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
         "fill=\"#fff\"/>\n",
         left + width + 220, top + height + 48);
  append(out, "<text x=\"%.0f\" y=\"24\" font-size=\"16\">%zu events", left,
         what.events.order.size());
  if (what.events.dropped > 0)
    append(out, " after %llu earlier ones", static_cast<unsigned long long>(what.events.dropped));
  append(out, ", at most %s live and %s reserved</text>\n", bytes(c.peak_live).c_str(),
         bytes(c.peaks.reserved).c_str());
  if (!c.columns.empty()) picture(c, what.limit).draw(out);
  append(out, "<text x=\"%.0f\" y=\"%.0f\">time; areas: the bytes live, by purpose; ", left,
         top + height + 36);
  out += "line: the bytes reserved; below it in red: requests refused</text>\n</svg>\n";
  return out;
}

}  // namespace velo::memory
