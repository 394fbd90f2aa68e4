// Files of masks at random, most of them changed in some bytes: each is refused by its line, as a
// reading of this test's own says, or gives the mask that this reading gives, whose plan is proven
// and computes each visible cell once. VELO_DESCRIPTIONS: how many.
#include "tools/velo/mask_file.hpp"

#include <optional>
#include <sstream>

#include "tests/descriptions/hostile.hpp"
#include "tests/sched/parallel/context/visible_cells.hpp"
#include "tests/temporary_folder.hpp"
#include "tools/velo/commands.hpp"

using namespace velo::testing;

namespace {

std::string some_text(std::int64_t rows, random_source& random) {
  static const char* const ends[] = {"\n", "\n", "\r\n", " \n", "\n\n"};
  const std::string end = random.pick(ends);
  const std::uint64_t hidden = random.below(5);  // of 4
  std::string text;
  for (std::int64_t q = 0; q < rows; ++q) {
    for (std::int64_t k = 0; k < rows; ++k) {
      text += random.below(4) < hidden ? '1' : '0';
      if (random.one_in(200)) text += ' ';
    }
    text += end;
  }
  return text;
}

void make_hostile(std::string& text, random_source& random) {
  static const std::string pieces[] = {
      "0",  "1",  "2",           "\n", "\r", " ", "\t", ",", "[", "\xff", std::string(1, '\0'),
      "00", "-1", "\xef\xbb\xbf"};
  change_somewhere(text, pieces, random);
}

// The mask of a text, whose lines count that have more than spaces; nothing if it has none.
std::optional<std::vector<std::uint8_t>> reading_of(const std::string& text, std::int64_t rows) {
  std::istringstream lines(text);
  std::vector<std::uint8_t> mask;
  for (std::string line; std::getline(lines, line);) {
    line.erase(
        std::remove_if(line.begin(), line.end(), [](char c) { return c == ' ' || c == '\r'; }),
        line.end());
    if (line.find_first_not_of("01") != std::string::npos) return std::nullopt;
    if (!line.empty() && static_cast<std::int64_t>(line.size()) != rows) return std::nullopt;
    for (const char c : line) mask.push_back(c == '1');
  }
  if (static_cast<std::int64_t>(mask.size()) != rows * rows) return std::nullopt;
  return mask;
}

std::string wrong_in_plan(const std::vector<std::uint8_t>& mask, std::int64_t rows,
                          random_source& random) {
  static const velo_sequence_kind kinds[] = {VELO_SEQUENCE_RING, VELO_SEQUENCE_ALL_GATHER,
                                             VELO_SEQUENCE_ADAPTIVE, VELO_SEQUENCE_ULYSSES};
  velo_sequence_desc d = VELO_SEQUENCE_DESC_INIT;
  d.kind = random.pick(kinds), d.cp = 1 + static_cast<std::int64_t>(random.below(4));
  d.sequence = rows, d.heads = 4, d.mask = mask.data();
  const described_plan plan(d);
  if (velo_sequence_plan_check(plan) != VELO_OK) return "not proven";
  const std::vector<std::uint8_t> visible = visible_cells(d);
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT})
    if (!compute_each_once(plan.tasks(pass), d.heads - 1, visible, rows)) return "the cells";
  return "";
}

// Returns what is wrong with the answer to a file; counts the files that are masks.
std::string wrong_in_file(const std::string& file, const std::string& text, std::int64_t rows,
                          int& accepted, random_source& random) {
  const auto truth = reading_of(text, rows);
  try {
    const std::vector<std::uint8_t> mask = command::mask_of(file, rows);
    ++accepted;
    if (!truth) return "accepted";
    if (mask != *truth) return "another mask";
    return rows > 0 ? wrong_in_plan(mask, rows, random) : "";
  } catch (const command::input_error& refusal) {
    const std::string words = refusal.what();
    if (truth) return "refused: " + words;
    return words.compare(0, file.size() + 1, file + ":") == 0 &&
                   words.find("expected ") != std::string::npos
               ? ""
               : words;
  }
}

}  // namespace

TEST_CASE("any file of a mask is refused by its line, or its plan computes what it lets see") {
  random_source random(31);
  const temporary_folder folder;
  bounds taken;
  int accepted = 0;
  for (int i = 0; i < descriptions(); ++i) {
    std::int64_t rows = static_cast<std::int64_t>(random.below(random.one_in(16) ? 40 : 12));
    std::string text = some_text(rows, random);
    for (std::uint64_t changes = random.one_in(2) ? 1 + random.below(3) : 0; changes > 0; --changes)
      make_hostile(text, random);
    if (random.one_in(16)) rows = static_cast<std::int64_t>(random.below(14));
    const std::string file = folder.put("mask.txt", text);
    taken.begin();
    const std::string wrong = wrong_in_file(file, text, rows, accepted, random);
    taken.end(i);
    if (!wrong.empty()) FAIL_CHECK("file " << i << " of " << rows << " rows: " << wrong);
  }
  taken.check();
  CHECK(accepted > descriptions() / 4);
  CHECK(accepted < descriptions() * 3 / 4);
}
