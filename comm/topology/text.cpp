// A topology as JSON and as a picture. Time and size are proportional to the ranks of the families
// shown.
#include <algorithm>

#include "comm/topology/topology.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/svg.hpp"

namespace velo::comm {

namespace {

using core::append;

void write_groups(core::json_writer& to, const family& of) {
  const std::int64_t groups = of.groups();
  to.array();
  for (std::int64_t g = 0; g < groups; ++g) {
    to.array();
    of.each(g, [&](std::int64_t rank) { to.value(rank); });
    to.end();
  }
  to.end();
}

// The picture has one panel for each family. A row of ranks spans the layout's first axes.
constexpr std::int64_t most_shown = 1024;
constexpr std::int64_t widest = 32;
constexpr double side = 20, gap = 36, heading = 40, page = 1400;

std::int64_t columns_of(const layout& dense) {
  std::int64_t columns = 1;
  for (const char* name : {"tp", "gtp", "cp", "dp", "pp"}) {
    const digit axis = dense.of(name);
    const std::int64_t through = axis.stride * axis.extent;
    if (through <= widest && through < dense.ranks()) columns = std::max(columns, through);
  }
  return columns == 1 ? std::min(widest, dense.ranks()) : columns;
}

void draw_panel(std::string& out, const family& of, const char* name, std::int64_t ranks,
                std::int64_t columns, double x, double y) {
  append(out, "<g transform=\"translate(%.0f %.0f)\">\n<text x=\"0\" y=\"-8\">", x, y);
  out += core::svg::escaped(name);
  out += core::concat(": ", of.groups(), " of ", of.size(), "</text>\n");
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const membership at = of.find(rank);
    const std::int64_t row = rank / columns;
    const double left = side * static_cast<double>(rank % columns);
    const double top = side * static_cast<double>(row);
    const std::string fill =
        at.group < 0 ? "#ccc" : core::svg::fill(static_cast<std::uint64_t>(at.group));
    append(out, "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%.0f\" fill=\"%s\"><title>",
           left, top, side - 1, side - 1, fill.c_str());
    if (at.group < 0)
      out += core::concat("rank ", rank, ": in no group");
    else
      out += core::concat("rank ", rank, ": group ", at.group, ", position ", at.position);
    append(out, "</title></rect><text class=\"n\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
           left + (side - 1) / 2, top + side * 0.62, core::number(rank).buffer);
  }
  out += "</g>\n";
}

}  // namespace

std::string topology::json(const family* one) const {
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  if (one != nullptr) {
    write_groups(to, *one);
    return out;
  }
  to.object();
  for (const family& of : families_) {
    to.next_line(" ").key(of.name.c_str());
    write_groups(to, of);
  }
  to.end();
  return out;
}

std::string topology::picture(const family* one, const char* name) const {
  const std::int64_t shown = std::min(ranks(), most_shown), columns = columns_of(dense_);
  const std::int64_t rows = core::ceil_div(shown, columns);
  const double across = std::max(side * static_cast<double>(columns), 160.0) + gap;
  const double down = side * static_cast<double>(rows) + gap;
  const auto panels = one != nullptr ? 1 : static_cast<std::int64_t>(families_.size());
  const std::int64_t beside =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(page / across), 1, panels);
  const auto below = [&](std::int64_t panel) {  // rows of the panels above it
    const std::int64_t above = panel / beside;
    return static_cast<double>(above);
  };
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"13\">\n<style>.n{font-size:8px;fill:#fff;"
         "stroke:#000;stroke-width:2px;paint-order:stroke;"
         "text-anchor:middle;pointer-events:none}</style>\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
         gap + across * static_cast<double>(beside),
         heading + gap + down * below(panels - 1 + beside));
  append(out,
         "<text x=\"%.0f\" y=\"26\" font-size=\"16\">%s ranks%s: families, their groups and "
         "the ranks of each</text>\n",
         gap, core::number(ranks()).buffer, shown < ranks() ? ", the first 1024 shown" : "");
  for (std::int64_t i = 0; i < panels; ++i) {
    const family& of = one != nullptr ? *one : families_[core::at(i)];
    draw_panel(out, of, one != nullptr ? name : of.name.c_str(), shown, columns,
               gap + across * static_cast<double>(i % beside), heading + gap + down * below(i));
  }
  return out + "</svg>\n";
}

}  // namespace velo::comm
