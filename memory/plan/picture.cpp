// The picture is written from the back to the front: live bytes, rectangles, lines, words.
#include "memory/plan/picture.hpp"

#include <algorithm>
#include <utility>

#include "core/text/svg.hpp"
#include "core/text/text.hpp"
#include "memory/plan/solver/greedy.hpp"

namespace velo::memory {

using core::append;
using core::svg::bytes;
using core::svg::escaped;
using core::svg::fill;

namespace {

constexpr double width = 1200, height = 640;  // of the plane of time and addresses
constexpr double left = 110, top = 40;        // room for the scale, for the title
constexpr double smallest = 0.15;             // no rectangle below this many pixels is drawn

// From times and addresses to pixels.
struct plane {
  double begin = 0, per_time = 0, per_byte = 0;
  double x(std::int64_t time) const {
    return left + (static_cast<double>(time) - begin) * per_time;
  }
  double y(std::int64_t address) const {
    return top + height - static_cast<double>(address) * per_byte;
  }
};

plane plane_of(const std::vector<lifetime>& buffers, std::int64_t highest) {
  plane p;
  if (buffers.empty() || highest == 0) return p;
  double end = static_cast<double>(buffers.front().upper);
  p.begin = static_cast<double>(buffers.front().lower);
  for (const lifetime& b : buffers) {
    p.begin = std::min(p.begin, static_cast<double>(b.lower));
    end = std::max(end, static_cast<double>(b.upper));
  }
  p.per_time = width / std::max(end - p.begin, 1.0);  // far from 0 neighbors are one number
  p.per_byte = height / static_cast<double>(highest);
  return p;
}

void draw_line(std::string& out, const plane& p, std::int64_t address, const char* color,
               const char* what) {
  const double y = p.y(address);
  append(out, "<path d=\"M%.1f %.2fH%.1f\" stroke=\"%s\" stroke-dasharray=\"6 4\"/>\n", left, y,
         left + width, color);
  append(out, "<text x=\"%.1f\" y=\"%.2f\" fill=\"%s\">%s %s</text>\n", left + width + 6, y + 4,
         color, what, bytes(address).c_str());
}

// The bytes alive at each time, as an area under the rectangles.
void draw_live(std::string& out, const plane& p, const std::vector<lifetime>& buffers) {
  std::vector<std::pair<std::int64_t, std::int64_t>> changes;
  for (const lifetime& b : buffers) {
    changes.emplace_back(b.lower, b.size);
    changes.emplace_back(b.upper, -b.size);
  }
  std::sort(changes.begin(), changes.end());
  append(out, "<path fill=\"#ddd\" d=\"M%.2f %.2f", left, top + height);
  std::int64_t live = 0;
  double shown = -1;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    live += changes[i].second;
    if (i + 1 < changes.size() && changes[i + 1].first == changes[i].first) continue;
    const double x = p.x(changes[i].first);
    if (x - shown < 0.25 && i + 1 < changes.size()) continue;  // less than anyone can see
    append(out, "H%.2fV%.2f", x, p.y(live));
    shown = x;
  }
  out += "Z\"/>\n";
}

void draw_buffers(std::string& out, const plane& p, const plan_table& table,
                  const std::vector<std::int64_t>& offsets) {
  for (std::size_t i = 0; i < table.buffers.size(); ++i) {
    const lifetime& b = table.buffers[i];
    const double w = p.x(b.upper) - p.x(b.lower);
    const double h = static_cast<double>(b.size) * p.per_byte;
    if (w < smallest || h < smallest) continue;
    append(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\"><title>",
           p.x(b.lower), p.y(offsets[i] + b.size), w, h, fill(i).c_str());
    out += escaped(table.names[i]);
    out += core::concat(": ", b.size, " bytes at ", offsets[i], ", alive [", b.lower, ", ", b.upper,
                        ")</title></rect>\n");
  }
}

}  // namespace

std::string draw_placement(const plan_table& table, const std::vector<std::int64_t>& offsets,
                           std::int64_t capacity) {
  const std::int64_t reached = height_of(table.buffers, offsets);
  const std::int64_t bound = largest_live(table.buffers);
  const plane p = plane_of(table.buffers, std::max(reached, capacity));
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" "
         "fill=\"#fff\"/>\n",
         left + width + 190, top + height + 40);
  append(out, "<text x=\"%.0f\" y=\"24\" font-size=\"16\">%zu buffers, height %s", left,
         table.buffers.size(), bytes(reached).c_str());
  if (bound > 0)
    append(out, ", %.3f %% above the lower bound",
           100 * static_cast<double>(reached - bound) / static_cast<double>(bound));
  out += "</text>\n";
  if (!table.buffers.empty()) {
    draw_live(out, p, table.buffers);
    out += "<g stroke=\"#fff\" stroke-width=\"0.4\" fill-opacity=\"0.85\">\n";
    draw_buffers(out, p, table, offsets);
    out += "</g>\n<g fill=\"none\">\n";
    draw_line(out, p, bound, "#2a2", "alive");
    if (reached != bound) draw_line(out, p, reached, "#000", "height");
    if (capacity != 0 && capacity != reached) draw_line(out, p, capacity, "#c00", "capacity");
    out += "</g>\n";
  }
  append(out, "<text x=\"%.0f\" y=\"%.0f\">time; grey: the bytes alive</text>\n", left,
         top + height + 24);
  append(out, "<text x=\"8\" y=\"%.0f\">address</text>\n</svg>\n", top + 4);
  return out;
}

}  // namespace velo::memory
