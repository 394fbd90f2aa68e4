// A plan as JSON and as a picture. Time and size are proportional to rows, tasks and messages; the
// picture has at most 20000 outlines.
#include <algorithm>

#include "core/index.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/print.hpp"
#include "core/text/svg.hpp"
#include "sched/parallel/context/planned_sequence.hpp"

namespace velo::sched {

using core::append;

namespace {

const char* name_of(content what) {
  constexpr const char* names[] = {"q", "k", "v", "out", "dout", "dq", "dk", "dv"};
  return names[static_cast<int>(what)];
}
const char* name_of(cells visible) {
  constexpr const char* names[] = {"all", "causal", "masked"};
  return names[static_cast<int>(visible)];
}

void write_spans(core::json_writer& to, const char* key, const rows& of) {
  to.key(key).array();
  for (const span& s : of) to.array().value(s.begin).value(s.end).end();
  to.end();
}
void write_heads(core::json_writer& to, span heads) {
  to.key("heads").array().value(heads.begin).value(heads.end).end();
}

void write_task(core::json_writer& to, const attention_task& of) {
  to.object();
  write_spans(to, "queries", of.queries);
  write_spans(to, "keys", of.keys);
  write_heads(to, of.heads);
  to.member("cells", name_of(of.visible)).end();
}

void write_message(core::json_writer& to, const block_message& of, bool sent, std::int64_t bytes) {
  to.object();
  sent ? to.member("to", of.to) : to.member("from", of.from);
  to.member("what", name_of(of.what));
  write_spans(to, "rows", of.of);
  write_heads(to, of.heads);
  if (of.statistics > 0) to.member("statistics", of.statistics);
  if (sent) to.member("needed", of.needed);
  to.member("bytes", bytes).end();
}

constexpr int most_paths = 20000;

// The outline of the cells of a range of queries and one of keys, below the diagonal where causal.
std::string outline(span q, span k, bool causal, double unit) {
  const auto place = [&](std::int64_t row) { return static_cast<double>(row) * unit; };
  std::string d;
  if (!causal || q.begin >= k.end) {
    append(d, "M%.2f %.2fH%.2fV%.2fH%.2fZ", place(k.begin), place(q.begin), place(k.end),
           place(q.end), place(k.begin));
    return d;
  }
  const std::int64_t first = std::max(q.begin, k.begin), last = std::min(k.end, q.end);
  append(d, "M%.2f %.2fH%.2fL%.2f %.2fV%.2fH%.2fZ", place(k.begin), place(first), place(first),
         place(last), place(last), place(q.end), place(k.begin));
  return d;
}

}  // namespace

std::string planned_sequence::json() const {
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  to.object().key("rows").array();
  for (const rows& own : plan_.held) {
    to.next_line(" ").array();
    for (const span& s : own)
      for (std::int64_t row = s.begin; row < s.end; ++row) to.value(row);
    to.end();
  }
  to.end();
  const auto write_pass = [&](velo_sequence_pass which) {
    const std::int64_t steps = pass(which).steps;
    const auto numbers = [&](const char* key, std::int64_t velo_sequence_step::*field) {
      to.line(" ").key(key).array();
      for (std::int64_t r = 0; r < ranks(); ++r) {
        to.array();
        for (std::int64_t s = 0; s <= steps; ++s) {
          if (s == steps && field != &velo_sequence_step::bytes_received) break;
          velo_sequence_step found;
          price(which, r, s, found);
          to.value(found.*field);
        }
        to.end();
      }
      to.end();
    };
    numbers("cells", &velo_sequence_step::cells);
    numbers("bytes", &velo_sequence_step::bytes_received);
    to.line(" ").key("steps").array();
    for (std::int64_t r = 0; r < ranks(); ++r) {
      to.next_line("  ").array();
      for (std::int64_t s = 0; s <= steps; ++s) {
        to.next_line("   ").object().key("tasks").array();
        if (s < steps)
          for (const attention_task* one : tasks(which, r, s)) write_task(to, *one);
        to.end().key("sends").array();
        for (const block_message* m : sent(which, r, s)) write_message(to, *m, true, bytes_of(*m));
        to.end().key("receives").array();
        for (const block_message* m : received(which, r, s))
          write_message(to, *m, false, bytes_of(*m));
        to.end().end();
      }
      to.end();
    }
    to.end();
  };
  write_pass(VELO_SEQUENCE_FORWARD);
  if (plan_.adaptive)
    to.line(" ")
        .member("rounds", plan_.adaptive->rounds)
        .member("rule_rounds", plan_.adaptive->by_rule);
  if (cache_.keeps()) {
    const char* const names[] = {"none", "half", "full"};
    to.line(" ").key("kv_cache").object().member("kept", names[cache_.kept]);
    to.member("interval", cache_.interval).key("layers").array();
    for (std::int64_t i = 0; i < cache_.count(); ++i) to.value(i * (cache_.interval + 1));
    to.end().key("bytes").array();
    for (std::int64_t r = 0; r < ranks(); ++r) {
      velo_sequence_step found;
      price(VELO_SEQUENCE_GRADIENT, r, 0, found);
      to.value(found.bytes_kept);
    }
    to.end().end();
  }
  if (keys_ != VELO_SEQUENCE_KEYS_OWN)
    to.line(" ").member("keys", keys_ == VELO_SEQUENCE_KEYS_SHARED ? "shared" : "given");
  to.line(" ").key("gradient").object();
  write_pass(VELO_SEQUENCE_GRADIENT);
  to.end().end();
  return out + "\n";
}

// Queries downwards, keys to the right; cells have the color of the rank that computes them, paler
// where a mask hides some; the first rank's where ranks share them by heads.
std::string planned_sequence::picture() const {
  constexpr double side = 640, left = 60, top = 60;
  const double unit = side / static_cast<double>(std::max<std::int64_t>(sequence(), 1));
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"13\">\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
         "<text x=\"%.0f\" y=\"26\" font-size=\"16\">Queries (down) and keys (right) of %lld rows "
         "by rank; numbers are steps</text>\n<g transform=\"translate(%.0f %.0f)\">\n"
         "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#eee\"/>\n",
         left + side + 160, top + side + 20, left, static_cast<long long>(sequence()), left, top,
         side, side);
  int paths = 0;
  for (std::int64_t r = 0; r < ranks(); ++r)
    for (const attention_task& task : plan_.forward.tasks[core::at(r)]) {
      if (task.heads.begin != 0) continue;
      for (const span& q : task.queries)
        for (const span& k : task.keys) {
          const bool causal = task.visible == cells::causal;
          if ((causal && k.begin >= q.end) || ++paths > most_paths) continue;
          append(out,
                 "<path fill=\"%s\" fill-opacity=\"%s\" stroke=\"#fff\" stroke-width=\"0.5\" "
                 "d=\"%s\"><title>rank %lld, step %lld</title></path>\n",
                 core::svg::fill(static_cast<std::uint64_t>(r)).c_str(),
                 task.visible == cells::masked ? "0.5" : "1", outline(q, k, causal, unit).c_str(),
                 static_cast<long long>(r), static_cast<long long>(task.step));
          const double down = static_cast<double>(q.size()) * unit,
                       across = static_cast<double>(k.size()) * unit;
          const bool triangle = causal && q == k;
          if (std::min(down, across) > 14)
            append(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%lld</text>\n",
                   static_cast<double>(k.begin) * unit + across * (triangle ? 0.33 : 0.5),
                   static_cast<double>(q.begin) * unit + down * (triangle ? 0.72 : 0.5) + 4,
                   static_cast<long long>(task.step));
        }
    }
  out += "</g>\n";
  for (std::int64_t r = 0; r < std::min<std::int64_t>(ranks(), 32); ++r) {
    const double y = top + 20 * static_cast<double>(r);
    append(out,
           "<rect x=\"%.0f\" y=\"%.0f\" width=\"14\" height=\"14\" fill=\"%s\"/><text x=\"%.0f\" "
           "y=\"%.0f\">rank %lld</text>\n",
           left + side + 20, y, core::svg::fill(static_cast<std::uint64_t>(r)).c_str(),
           left + side + 40, y + 12, static_cast<long long>(r));
  }
  return out + "</svg>\n";
}

}  // namespace velo::sched
