// Readers of texts under damaged texts: each is refused by name, or read as a schedule that can be
// queried, written, and read again. VELO_SCHEDULES_LONG: a hundred times as many.
#include <cstdlib>

#include "sched/schedule/csv.hpp"
#include "sched/schedule/json.hpp"
#include "tests/random.hpp"
#include "tests/sched/schedules.hpp"

using namespace velo;
using namespace velo::testing;

namespace {

int cases() {
  return std::getenv("VELO_SCHEDULES_LONG") != nullptr ? 300000 : 3000;
}

// A text with changes: bytes, numbers, pieces removed, doubled or moved.
std::string changed(std::string text, const std::vector<std::string>& pieces,
                    random_source32& random) {
  for (auto changes = random.below(4); changes-- > 0 && !text.empty();) {
    const std::size_t at = random.below(text.size());
    const std::size_t count = std::min<std::size_t>(random.below(12), text.size() - at);
    switch (random.below(5)) {
      case 0:
        text[at] = static_cast<char>(random.below(256));
        break;
      case 1:
        text.erase(at, count);
        break;
      case 2:
        text.insert(random.below(text.size()), text.substr(at, count));
        break;
      case 3:
        text.insert(at, pieces[random.below(pieces.size())]);
        break;
      default:
        text.replace(at, count, pieces[random.below(pieces.size())]);
    }
  }
  return text;
}

// Reads changed texts and queries those that are accepted. Returns their number.
template <class Read, class Write>
int read_changed(const std::vector<std::string>& texts, const std::vector<std::string>& pieces,
                 Read&& read, Write&& write) {
  random_source32 random(17);
  int taken = 0;
  for (int i = 0; i < cases(); ++i) {
    const std::string text = changed(texts[random.below(texts.size())], pieces, random);
    try {
      const auto value = read(text);
      ++taken;
      const std::string once = write(value);
      if (write(read(once)) != once) FAIL(text << "\nis read again as another:\n" << once);
    } catch (const core::failure& refused) {
      if ((refused.code != VELO_ERR_ARGUMENT && refused.code != VELO_ERR_PARSE) ||
          refused.argument[0] == 0)
        FAIL(text << "\n" << refused.code << " " << refused.argument);
    }
  }
  return taken;
}

// Queries everything of a schedule.
void ask(const sched::schedule& order) {
  const bool sound = sched::check(order).empty();
  try {
    const sched::timeline times = timed(order);
    sched::draw_grid(times);
    sched::draw_svg(times);
    sched::write_trace(times);
  } catch (const core::failure& refused) {
    if (sound || refused.code != VELO_ERR_STATE) FAIL(refused.argument << refused.got);
  }
}

const std::vector<std::string> pieces = {"0F0",
                                         ",",
                                         "\n",
                                         "0RECOMPUTE0",
                                         "1OFFLOAD0",
                                         "1RELOAD0",
                                         "0UNSHARD",
                                         "0RESHARD",
                                         "1SEND_F0",
                                         "2RECV_F0",
                                         "0OPTIMIZER",
                                         "0REDUCE_GRAD",
                                         "(0F1;1B0)OVERLAP_F_B",
                                         "16777215",
                                         "99999999999",
                                         "-1",
                                         "\"",
                                         "[",
                                         "{",
                                         "}",
                                         "]",
                                         ":",
                                         "1e400",
                                         "null",
                                         R"("kind")",
                                         R"("chains": 2,)",
                                         R"("splits": 3,)",
                                         "\\u0000",
                                         "*9999",
                                         "(",
                                         ")*3",
                                         "|",
                                         "m",
                                         "t",
                                         "L"};

std::vector<sched::schedule> schedules() {
  velo_schedule_desc uneven = desc_of(VELO_SCHEDULE_INTERLEAVED, {2, 2});
  uneven.layout = "Et*2|t||t*3mL";
  return {made(VELO_SCHEDULE_1F1B, {2, 3}),
          made(VELO_SCHEDULE_DUALPIPE, {2, 4}),
          made(VELO_SCHEDULE_NANOPIPE, {2, 2, 2, 0, VELO_SCHEDULE_SWAP}),
          made(VELO_SCHEDULE_RIPIPE, {2, 2, 2, 0, VELO_SCHEDULE_IN_ADVANCE}),
          made(VELO_SCHEDULE_SEQ1F1B, {2, 2, 0, 0, 0, 2}),
          generate(uneven, {}),
          sched::read_csv("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0OPTIMIZER\n"
                          "1RECV_F0,1F0,1I0,1SEND_B0,1W0\n")};
}

}  // namespace

TEST_CASE("rows that nobody would write are refused by their place or read") {
  std::vector<std::string> texts;
  for (const sched::schedule& order : schedules()) texts.push_back(sched::write_csv(order));
  const int taken = read_changed(
      texts, pieces,
      [](const std::string& text) {
        sched::schedule order = sched::read_csv(text);
        ask(order);
        return order;
      },
      [](const sched::schedule& order) { return sched::write_csv(order); });
  CHECK(taken > cases() / 4);
  CHECK(taken < cases());
}

TEST_CASE("JSON that nobody would write is refused by its member or read") {
  std::vector<std::string> texts;
  for (const sched::schedule& order : schedules()) texts.push_back(sched::write_json(order));
  const int taken = read_changed(
      texts, pieces,
      [](const std::string& text) {
        sched::schedule order = sched::read_json(text);
        ask(order);
        return order;
      },
      [](const sched::schedule& order) { return sched::write_json(order); });
  CHECK(taken > cases() / 4);
  CHECK(taken < cases());
}

TEST_CASE("layouts that nobody would write are refused by their character or read") {
  const int taken = read_changed(
      {"Et*3|(tt|)*4tmL", "E,t,|,(t|(tt,)*2|)*2,L", "E|||L", "Ett|tt|tt|ttL"}, pieces,
      [](const std::string& text) { return sched::parse_layout(text, "layout"); },
      [](const sched::layout& of) { return sched::text_of(of); });
  CHECK(taken > cases() / 4);
  CHECK(taken < cases());
}
