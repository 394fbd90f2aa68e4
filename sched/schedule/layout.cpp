// Unfolds a text to its symbols, each with its offset in the text, then divides them into stages.
#include "sched/schedule/layout.hpp"

#include <algorithm>
#include <charconv>

#include "core/failure.hpp"
#include "core/index.hpp"

namespace velo::sched {
namespace {

using core::fail;
using core::text;

constexpr int most_depth = 16;

[[noreturn]] void refuse(const std::string& argument, std::size_t offset, const char* expected,
                         std::string_view got) {
  const int length = static_cast<int>(std::min<std::size_t>(got.size(), 40));
  const text shown("%.*s", length, got.data());
  fail(VELO_ERR_ARGUMENT, text("%s, character %zu", argument.c_str(), offset + 1), expected,
       got.empty() ? "its end" : static_cast<const char*>(shown));
}

struct symbol {
  char letter;
  std::size_t offset;
};

// Unfolds texts, inner parentheses first.
class unfolding {
 public:
  unfolding(std::string_view text, const std::string& argument)
      : text_(text), argument_(argument) {}

  std::vector<symbol> run() {
    std::vector<symbol> all;
    sequence(all, 0);
    if (at_ < text_.size()) here("E, t, m, L, |, ( or a comma");
    return all;
  }

 private:
  [[noreturn]] void here(const char* expected) const {
    refuse(argument_, at_, expected, text_.substr(at_, 1));
  }

  void sequence(std::vector<symbol>& to, int depth) {
    for (; at_ < text_.size() && text_[at_] != ')';) {
      const std::size_t begin = at_, kept = to.size();
      if (text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (text_[at_] == '(') {
        if (depth == most_depth) here("parentheses less deep");
        ++at_;
        sequence(to, depth + 1);
        if (at_ == text_.size()) here(")");
        ++at_;
      } else if (std::string_view("EtmL|").find(text_[at_]) != std::string_view::npos) {
        to.push_back({text_[at_], at_});
        ++at_;
      } else {
        here("E, t, m, L, |, ( or a comma");
      }
      repeat(to, kept, begin);
    }
  }

  // Repeats the symbols after `kept` as often as the number after a * says.
  void repeat(std::vector<symbol>& to, std::size_t kept, std::size_t begin) {
    std::int32_t times = 1;
    if (at_ < text_.size() && text_[at_] == '*') {
      const char* end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + ++at_, end, times);
      if (error != std::errc() || times < 1) here("a number from 1");
      at_ = static_cast<std::size_t>(stop - text_.data());
    }
    const std::size_t once = to.size() - kept;
    if (kept + once * static_cast<std::size_t>(times) > static_cast<std::size_t>(most_symbols))
      refuse(argument_, begin, text("at most %d symbols, unfolded", most_symbols),
             text_.substr(begin));
    to.reserve(kept + once * static_cast<std::size_t>(times));
    for (std::int32_t i = 1; i < times; ++i)
      for (std::size_t k = 0; k < once; ++k) to.push_back(to[kept + k]);
  }

  const std::string_view text_;
  const std::string& argument_;
  std::size_t at_ = 0;
};

// Numbers the layers in the order of stages.
void number(layout& of) {
  std::int32_t next = 0;
  for (stage_content& stage : of.stages) {
    stage.first_layer = next;
    next += stage.layers;
  }
}

}  // namespace

std::int32_t layout::layers() const {
  return stages.empty() ? 0 : stages.back().first_layer + stages.back().layers;
}

layout parse_layout(std::string_view text, const std::string& argument) {
  layout result;
  result.stages.emplace_back();
  char last = 0;  // symbol, bars aside
  const std::vector<symbol> all = unfolding(text, argument).run();
  for (const symbol& s : all) {
    const auto wrong = [&](const char* expected) {
      refuse(argument, s.offset, expected, text.substr(s.offset, 1));
    };
    if (s.letter == '|') {
      result.stages.emplace_back();
      continue;
    }
    stage_content& stage = result.stages.back();
    if (last == 0 && s.letter != 'E') wrong("E first");
    if (last != 0 && s.letter == 'E') wrong("one E alone");
    if (last == 'L') wrong("nothing behind L");
    if (last == 'm' && s.letter == 't') wrong("all t before m");
    last = s.letter;
    if (s.letter == 'E') stage.embedding = true;
    if (s.letter == 't') ++stage.layers;
    if (s.letter == 'm') ++stage.predictors;
    if (s.letter == 'L') stage.loss = true;
  }
  if (last != 'L') refuse(argument, text.size(), last == 0 ? "E first" : "L last", "");
  number(result);
  return result;
}

void require_fits(const layout& of, std::string_view text, const std::string& argument,
                  std::int32_t ranks, std::int32_t stages, bool v) {
  const auto held = static_cast<std::int32_t>(of.stages.size());
  const auto wrong = [&](const char* expected, const char* got) {
    fail(VELO_ERR_ARGUMENT, core::text("%s, character %zu", argument.c_str(), text.size() + 1),
         expected, got);
  };
  if (held != stages) wrong(core::text("%d stages", stages), core::text("%d", held));
  for (std::int32_t stage = 0; stage < held; ++stage) {
    if (of.stages[core::at(stage)].predictors == 0) continue;
    if (stage < stages - ranks)
      wrong(core::text("m in the last %d stages", ranks), core::text("one in stage %d", stage));
    if (!v && ranks > 1 && stage % ranks == 0)
      wrong("m on another rank than that of stage 0", core::text("one in stage %d", stage));
  }
}

layout even_layout(std::int32_t layers, std::int32_t stages, const std::string& argument) {
  if (layers % stages != 0)
    fail(VELO_ERR_ARGUMENT, argument.c_str(), text("a multiple of %d, the stages", stages),
         text("%d", layers));
  layout result;
  result.stages.resize(static_cast<std::size_t>(stages));
  for (stage_content& stage : result.stages) stage.layers = layers / stages;
  result.stages.front().embedding = result.stages.back().loss = true;
  number(result);
  return result;
}

void add_noops(layout& of, std::vector<std::int32_t> layers, const std::string& argument) {
  std::sort(layers.begin(), layers.end());
  auto stage = of.stages.begin();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (layers[i] < 0 || layers[i] >= of.layers())
      fail(VELO_ERR_ARGUMENT, argument.c_str(), text("numbers of %d layers", of.layers()),
           text("%d", layers[i]));
    if (i > 0 && layers[i] == layers[i - 1])
      fail(VELO_ERR_ARGUMENT, argument.c_str(), "each layer once", text("%d twice", layers[i]));
    while (layers[i] >= stage->first_layer + stage->layers) ++stage;
    ++stage->noops;
  }
  of.noops = std::move(layers);
}

std::string text_of(const layout& of) {
  std::string all;
  for (const stage_content& stage : of.stages) {
    if (&stage != of.stages.data()) all += '|';
    if (stage.embedding) all += 'E';
    all.append(static_cast<std::size_t>(stage.layers), 't');
    all.append(static_cast<std::size_t>(stage.predictors), 'm');
    if (stage.loss) all += 'L';
  }
  return all;
}

}  // namespace velo::sched
