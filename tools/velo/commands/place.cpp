// velo place: addresses for buffers of known lifetimes.
#include <cstdint>
#include <cstdio>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/text_file.hpp"

namespace command {

const char* const place_help =
    "usage: velo place FILE.csv [--capacity N] [--time S] [--threads N] [-o OUT.csv]\n"
    "                  [--svg PICTURE.svg]\n\n"
    "Gives every buffer of the file an address, so that buffers alive at one time lie apart and\n"
    "none reaches beyond N bytes; without N, or with 0, as low as is found. Rows are\n"
    "id,lower,upper,size: alive in [lower, upper). They come out in their order with a column\n"
    "offset, to OUT.csv or the standard output. Search ends when it fits, without N at the lower\n"
    "bound, or after S seconds (10); several threads (1 to 64; 1) search in different ways.\n\n"
    "Reading, writing and a first placement, of buffers in the order of time, come on top.\n\n"
    "--svg draws the placement found, time to the right, addresses upwards: one that does not "
    "fit,\n"
    "too, to show where. Rows come out only when they fit; else OUT.csv stays as it was.\n\n"
    "Exit codes: 0 fits; 2 does not, with height, lower_bound and capacity as JSON on the "
    "standard\n"
    "error; 1 bad input, named with line and column.\n";

int place(const arguments& given) {
  if (given.words.size() != 1) throw input_error("place wants one FILE.csv; velo help place");
  const velo::plan plan = velo::plan::create(given.capacity);
  read_into(plan, VELO_PLAN_CSV, given.words[0]);
  plan.solve(given.seconds < 0 ? 10 : given.seconds, 1, static_cast<std::int32_t>(given.threads));
  const velo_plan_stats found = plan.stats();
  if (!given.picture.empty()) write_file(given.picture, plan.write<std::string>(VELO_PLAN_SVG));
  if (given.capacity != 0 && found.height > given.capacity) {
    std::fprintf(stderr, "{\"height\": %llu, \"lower_bound\": %llu, \"capacity\": %llu}\n",
                 static_cast<unsigned long long>(found.height),
                 static_cast<unsigned long long>(found.lower_bound),
                 static_cast<unsigned long long>(found.capacity));
    return no_solution;
  }
  const std::string rows = plan.write<std::string>(VELO_PLAN_CSV);
  if (given.output.empty()) {
    std::fputs(rows.c_str(), stdout);
  } else {
    write_file(given.output, rows);
    std::printf("%llu buffers, height %llu, lower bound %llu\n",
                static_cast<unsigned long long>(found.buffers),
                static_cast<unsigned long long>(found.height),
                static_cast<unsigned long long>(found.lower_bound));
  }
  return done;
}

}  // namespace command
