// A sharding as JSON and as a picture. Time and size are proportional to the ranks shown times
// their pieces.
#include <algorithm>
#include <cctype>
#include <map>

#include "comm/sharding/sharding.hpp"
#include "core/index.hpp"
#include "core/round_up.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/print.hpp"
#include "core/text/svg.hpp"

namespace velo::comm {

using core::append;

namespace {

// Segments that follow each other as one.
std::vector<span> runs_of(const std::vector<segment>& segments) {
  std::vector<span> runs;
  for (const segment& s : segments) {
    if (!runs.empty() && runs.back().end == s.whole.begin)
      runs.back().end = s.whole.end;
    else
      runs.push_back(s.whole);
  }
  return runs;
}

void write_span(core::json_writer& to, const span& s) {
  to.array().value(s.begin).value(s.end).end();
}

// [begin, end) of each dimension, or a list of them where it has several runs.
void write_part(core::json_writer& to, const part& own) {
  to.key("part").array();
  for (const std::vector<segment>& dimension : own.segments) {
    const std::vector<span> runs = runs_of(dimension);
    if (runs.size() == 1) {
      write_span(to, runs.front());
      continue;
    }
    to.array();
    for (const span& s : runs) write_span(to, s);
    to.end();
  }
  to.end();
}

// A number, or a list of boxes with their own where it differs.
void write_copies(core::json_writer& to, const part& own) {
  to.key("copies");
  if (const std::int64_t all = own.common_copies(); all != 0) {
    to.value(all);
    return;
  }
  to.array();
  for (std::int64_t i = 0; i < own.pieces(); ++i) {
    const piece one = own.at(i);
    to.object().key("part").array();
    for (const span& s : one.whole) write_span(to, s);
    to.end().member("copies", one.copies).end();
  }
  to.end();
}

void write_parameter(core::json_writer& to, const parameter& of, std::int64_t rank, span range) {
  const part own = of.part_of(rank);
  if (own.elements() == 0) return;
  to.next_line("  ").key(of.name().c_str()).object();
  write_part(to, own);
  to.key("sum").array();
  for (const char* name : of.sums(own)) to.value(name);
  to.end();
  write_copies(to, own);
  to.key("range");
  write_span(to, range);
  to.end();
}

// ---- the picture: a rectangle for each parameter, rows of the first dimension downwards ----

constexpr std::int64_t most_ranks = 64, most_shown = 60;
constexpr std::size_t most_drawn = 2048;  // pieces of a parameter
constexpr double width = 220, height = 150, gap = 46, heading = 60;
constexpr std::size_t beside = 5;

// Layers of one model look alike: parameters whose names differ in numbers alone are one.
std::string without_numbers(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit)
      out += c;
    else if (out.empty() || out.back() != '#')
      out += '#';
  }
  return out;
}

struct held_piece {
  piece box;
  std::vector<std::int64_t> ranks;
};

std::vector<held_piece> pieces_of(const parameter& of, std::int64_t first, std::int64_t end) {
  std::map<std::vector<std::int64_t>, held_piece> all;
  for (std::int64_t rank = first; rank < end; ++rank) {
    const part own = of.part_of(rank);
    for (std::int64_t i = 0; i < own.pieces(); ++i) {
      piece one = own.at(i);
      std::vector<std::int64_t> key;
      for (const span& s : one.whole) key.push_back(s.begin);
      held_piece& held = all[key];
      held.box = std::move(one);
      held.ranks.push_back(rank);
    }
  }
  std::vector<held_piece> list;
  for (auto& [key, held] : all) list.push_back(std::move(held));
  return list;
}

std::string ranks_text(const std::vector<std::int64_t>& ranks, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size() && i < most; ++i)
    append(text, "%s%lld", i > 0 ? " " : "", static_cast<long long>(ranks[i]));
  return ranks.size() > most ? text + " .." : text;
}

// The dimensions drawn downwards and across: the cut ones where two are.
struct drawn {
  std::size_t down, across;
};

drawn drawn_of(const parameter& of, const std::vector<held_piece>& pieces) {
  std::vector<std::size_t> cut;
  const std::vector<std::int64_t>& shape = of.shape();
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (std::any_of(pieces.begin(), pieces.end(),
                    [&](const held_piece& p) { return p.box.whole[d].size() < shape[d]; }))
      cut.push_back(d);
  for (std::size_t d = 0; d < shape.size() && cut.size() < 2; ++d)
    if (std::find(cut.begin(), cut.end(), d) == cut.end()) cut.push_back(d);
  std::sort(cut.begin(), cut.end());
  return {cut.empty() ? 0 : cut.front(), cut.empty() ? 0 : cut.back()};
}

// The place of a range of a dimension on a side of the rectangle.
struct stretch {
  double begin, size;
};
stretch stretch_of(const parameter& of, const piece& box, std::size_t d, double side, bool drawn) {
  if (!drawn) return {0, side};
  const auto whole = static_cast<double>(of.shape()[d]);
  return {side * static_cast<double>(box.whole[d].begin) / whole,
          side * static_cast<double>(box.whole[d].size()) / whole};
}

void draw(std::string& out, const parameter& of, const std::vector<held_piece>& pieces, double x,
          double y) {
  const std::size_t ndim = of.shape().size();
  const drawn at = drawn_of(of, pieces);
  for (std::size_t i = 0; i < pieces.size() && i < most_drawn; ++i) {
    const held_piece& one = pieces[i];
    const stretch down = stretch_of(of, one.box, at.down, height, ndim > 0),
                  across = stretch_of(of, one.box, at.across, width, ndim > 1);
    append(out,
           "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" "
           "stroke=\"#fff\"><title>",
           x + across.begin, y + down.begin, across.size, down.size,
           core::svg::fill(static_cast<std::uint64_t>(i)).c_str());
    for (const span& s : one.box.whole)
      append(out, "[%lld, %lld) ", static_cast<long long>(s.begin), static_cast<long long>(s.end));
    out += "ranks " + ranks_text(one.ranks, 64) + "</title></rect>";
    if (down.size >= 12)
      append(out, "<text class=\"n\" x=\"%.1f\" y=\"%.1f\">%s</text>\n",
             x + across.begin + across.size / 2, y + down.begin + down.size / 2 + 4,
             ranks_text(one.ranks, static_cast<std::size_t>(across.size / 20)).c_str());
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string text = "[";
  for (std::size_t d = 0; d < shape.size(); ++d)
    append(text, "%s%lld", d > 0 ? ", " : "", static_cast<long long>(shape[d]));
  return text + "]";
}

}  // namespace

std::string sharding::json(std::int64_t rank) const {
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  const std::int64_t first = rank < 0 ? 0 : rank, end = rank < 0 ? job_.ranks() : rank + 1;
  to.object();
  for (std::int64_t r = first; r < end; ++r) {
    to.next_line(" ").key(core::number(r)).object();
    const std::vector<span> updated = ranges(r);
    for (std::size_t i = 0; i < parameters_.size(); ++i)
      write_parameter(to, parameters_[i], r, updated[i]);
    to.end();
  }
  to.end();
  return out;
}

std::string sharding::picture(std::int64_t rank) const {
  const std::int64_t first = rank < 0 ? 0 : rank;
  const std::int64_t end = rank < 0 ? std::min(job_.ranks(), most_ranks) : rank + 1;
  struct row {
    const parameter* of;
    std::int64_t count;
    std::vector<held_piece> pieces;
  };
  std::vector<row> rows;
  std::map<std::string, std::size_t> seen;
  std::int64_t left_out = 0;
  for (const parameter& of : parameters_) {
    std::vector<held_piece> pieces = pieces_of(of, first, end);
    if (pieces.empty()) continue;
    const auto [known, fresh] =
        seen.emplace(without_numbers(of.name()) + of.likeness(), rows.size());
    if (!fresh)
      ++rows[known->second].count;
    else if (static_cast<std::int64_t>(rows.size()) < most_shown)
      rows.push_back({&of, 1, std::move(pieces)});
    else
      seen.erase(known), ++left_out;
  }
  const double down = height + gap, across = width + gap;
  const std::size_t lines = core::ceil_div(rows.size(), beside);
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n<style>.n{font-size:10px;"
         "text-anchor:middle;pointer-events:none}</style>\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text x=\"%.0f\" y=\"26\" "
         "font-size=\"16\">Parts of parameters by rank, ranks %lld to %lld of %lld%s</text>\n",
         gap + across * static_cast<double>(beside), heading + down * static_cast<double>(lines),
         gap, static_cast<long long>(first), static_cast<long long>(end - 1),
         static_cast<long long>(job_.ranks()),
         left_out == 0
             ? ""
             : core::concat("; ", left_out, " parameters of further kinds are not drawn").buffer);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t column = i % beside, line = i / beside;
    const double x = gap + across * static_cast<double>(column),
                 y = heading + down * static_cast<double>(line);
    append(out, "<text x=\"%.0f\" y=\"%.0f\">", x, y - 18);
    out += core::svg::escaped(rows[i].of->name());
    append(out, "</text><text x=\"%.0f\" y=\"%.0f\">%s", x, y - 5,
           shape_text(rows[i].of->shape()).c_str());
    if (rows[i].count > 1) append(out, ", %lld alike", static_cast<long long>(rows[i].count));
    out += "</text>\n";
    draw(out, *rows[i].of, rows[i].pieces, x, y);
  }
  return out + "</svg>\n";
}

}  // namespace velo::comm
