// A plan of sublayers as JSON and as a picture.
#include <algorithm>

#include "core/failure.hpp"
#include "core/index.hpp"
#include "core/text/json_writer.hpp"
#include "core/text/svg.hpp"
#include "sched/sublayers/sublayer_plan.hpp"

namespace velo::sched {

using core::append;
using core::at;

const char* sublayer_name(velo_sublayer_kind kind) {
  static constexpr const char* names[sublayer_kinds] = {
      "none",        "attention_f", "dispatch_f",  "experts_f",  "combine_f",
      "shared_f",    "combine_b",   "experts_b",   "dispatch_b", "shared_b",
      "attention_b", "experts_w",   "attention_w", "send_b"};
  return names[kind];
}

std::string sublayer_plan::json(const velo_sublayer_span* spans) const {
  static constexpr const char* slicings[] = {"whole", "by_expert", "by_rows", "by_sequence"};
  const std::vector<time_span> times = times_of(spans);
  const velo_sublayers_info sums = sum_up(steps_, times);
  std::string out;
  core::json_writer to(out, core::json_writer::spacing::wide);
  to.object().member("forward_layers", layout_.layers(true));
  to.member("backward_layers", layout_.layers(false));
  to.member("slicing", slicings[layout_.slicing]).member("slices", layout_.slices);
  to.member("makespan", sums.makespan).member("computing", sums.computing);
  to.member("communicating", sums.communicating).member("exposed", sums.exposed);
  to.line(" ").key("steps").array();
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const velo_sublayer_step& step = steps_[i];
    to.line("  ").object().member("step", sublayer_name(step.kind)).member("layer", step.layer);
    to.member("slice", step.slice).member("stream", step.message != 0 ? "messages" : "compute");
    to.member("begin", times[i].begin).member("end", times[i].end).key("needs").array();
    for (const std::int64_t need : needs_of(static_cast<std::int64_t>(i))) to.value(need);
    to.end().end();
  }
  to.end().end();
  return out + "\n";
}

// The stream that computes is above, that of messages below.
std::string sublayer_plan::picture(const velo_sublayer_span* spans) const {
  constexpr double width = 960, left = 90, top = 50, tall = 60;
  if (static_cast<std::int64_t>(steps_.size()) > most_drawn)
    core::fail(VELO_ERR_ARGUMENT, "format", core::concat("at most ", most_drawn, " steps to draw"),
               core::number(steps_.size()));
  const std::vector<time_span> times = times_of(spans);
  const velo_sublayers_info sums = sum_up(steps_, times);
  const double unit = sums.makespan > 0 ? width / sums.makespan : 0;
  std::string out;
  append(out,
         "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
         "font-family=\"sans-serif\" font-size=\"12\">\n"
         "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
         "<text x=\"%.0f\" y=\"26\" font-size=\"15\">%g in all, computing %g, messages %g, "
         "nothing computed %g</text>\n",
         left + width + 20, top + 2 * tall + 30, left, sums.makespan, sums.computing,
         sums.communicating, sums.exposed);
  for (const char* name : {"compute", "messages"})
    append(out, "<text x=\"10\" y=\"%.0f\">%s</text>\n", top + (*name == 'm' ? tall : 0) + tall / 2,
           name);
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const velo_sublayer_step& step = steps_[i];
    const time_span& time = times[i];
    if (time.begin < 0) continue;
    const double x = left + unit * time.begin, wide = unit * (time.end - time.begin),
                 y = top + tall * step.message;
    append(out,
           "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%.0f\" fill=\"%s\" "
           "stroke=\"#fff\" stroke-width=\"0.5\"><title>%s, layer %d, slice %d: %g to "
           "%g</title></rect>\n",
           x, y, wide, tall - 4, core::svg::fill(at(step.kind)).c_str(), sublayer_name(step.kind),
           step.layer, step.slice, time.begin, time.end);
    if (wide > 70)
      append(out, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%s</text>\n", x + wide / 2,
             y + tall / 2, sublayer_name(step.kind));
  }
  return out + "</svg>\n";
}

}  // namespace velo::sched
