// Descriptions of sequence plans at random: each is refused by the name of a field, and leaves the
// caller's memory as it was, or its plan is proven, has as many cells as the sequence, and can be
// written. Of plans of few cells a list of all shows that each visible one is computed once.
// VELO_DESCRIPTIONS: how many.
#include "velo/sequence_plan.h"

#include "tests/descriptions/hostile.hpp"
#include "tests/sched/parallel/context/visible_cells.hpp"

using namespace velo::testing;

namespace {

// A description that owns what it points at.
struct described {
  velo_sequence_desc desc = VELO_SEQUENCE_DESC_INIT;
  std::vector<std::int64_t> ends;
  std::vector<std::uint8_t> mask;

  void point() {
    desc.document_ends = ends.empty() ? nullptr : ends.data();
    desc.document_count = static_cast<std::int64_t>(ends.size());
    desc.mask = mask.empty() ? nullptr : mask.data();
  }
};

void put_documents(described& of, random_source& random) {
  std::int64_t last = 0;
  while (of.ends.size() < 8 && random.one_in(2)) {
    last += static_cast<std::int64_t>(
        random.below(1 + static_cast<std::uint64_t>(of.desc.sequence - last)));
    of.ends.push_back(last);
  }
  if (!of.ends.empty()) of.ends.push_back(of.desc.sequence);
}

void put_mask(described& of, random_source& random) {
  const std::int64_t rows = of.desc.sequence;
  const std::uint64_t density = random.below(5);  // 0: nothing is hidden, 4: everything
  for (std::int64_t i = 0; i < rows * rows; ++i)
    of.mask.push_back(random.below(4) < density ? static_cast<std::uint8_t>(1 + random.below(255))
                                                : 0);
}

// A description that makes sense, mostly.
described sensible(random_source& random) {
  described made;
  velo_sequence_desc& d = made.desc;
  const auto from_1_to = [&](std::uint64_t most) {
    return 1 + static_cast<std::int64_t>(random.below(most));
  };
  d.kind = static_cast<velo_sequence_kind>(random.below(6));
  const bool hybrid = d.kind == VELO_SEQUENCE_HYBRID || d.kind == VELO_SEQUENCE_HYBRID_ADAPTIVE;
  const std::int64_t ring = from_1_to(random.one_in(8) ? 6 : 3);
  d.ulysses = hybrid ? from_1_to(3) : 1;
  d.cp = ring * d.ulysses;
  const bool has_ring = d.kind == VELO_SEQUENCE_RING || d.kind == VELO_SEQUENCE_HYBRID;
  if (has_ring && ring > 1 && random.one_in(2))
    for (d.window = ring - 1; ring % d.window != 0;) --d.window;
  d.sequence = static_cast<std::int64_t>(random.below(random.one_in(16) ? 200 : 30));
  const std::int64_t exchange = d.kind == VELO_SEQUENCE_ULYSSES ? d.cp : d.ulysses;
  d.kv_heads = from_1_to(3);
  d.heads = d.kv_heads * from_1_to(3);
  while (d.heads < exchange) d.heads += d.kv_heads;
  if (random.one_in(4)) d.kv_heads = 0;
  d.head_dim = from_1_to(128), d.element_bytes = random.one_in(2) ? 2 : 4;
  d.causal = static_cast<std::int32_t>(random.below(2));
  if ((has_ring || d.kind == VELO_SEQUENCE_ULYSSES) && random.one_in(3)) {
    d.kv_cache = static_cast<velo_sequence_cache>(random.below(3));
    d.layers = from_1_to(9), d.layer = from_1_to(static_cast<std::uint64_t>(d.layers)) - 1;
    if (d.kv_cache != 0) d.kv_interval = from_1_to(static_cast<std::uint64_t>(d.layers)) - 1;
  }
  if (exchange > 1) d.kv_gather = static_cast<std::int64_t>(random.below(2));
  d.keys = static_cast<velo_sequence_keys>(random.below(3));
  if (random.one_in(3)) put_documents(made, random);
  if (made.ends.empty() && d.sequence <= 64 && random.one_in(3)) put_mask(made, random);
  made.point();
  return made;
}

// One field becomes hostile. A count that is larger than its list is refused before the list is
// read, or would be the caller's mistake: it is not tried.
void make_hostile(described& of, random_source& random) {
  velo_sequence_desc& d = of.desc;
  std::int64_t* const numbers[] = {
      &d.cp,     &d.ulysses, &d.window,        &d.heads,       &d.kv_heads, &d.head_dim,
      &d.layers, &d.layer,   &d.element_bytes, &d.kv_interval, &d.kv_gather};
  std::int32_t* const words[] = {&d.kind, &d.causal, &d.kv_cache, &d.keys};
  switch (random.below(8)) {
    case 0:
      *words[random.below(std::size(words))] = hostile_word(random);
      break;
    case 1: {
      const std::int64_t rows = hostile_number(random);
      if (of.mask.empty() || rows > 65536 || rows < 0 ||
          static_cast<std::size_t>(rows * rows) <= of.mask.size())
        d.sequence = rows;
      break;
    }
    case 2:
      if (!of.ends.empty()) of.ends[random.below(of.ends.size())] = hostile_number(random);
      break;
    case 3:
      if (!of.ends.empty()) std::swap(of.ends.front(), of.ends[random.below(of.ends.size())]);
      break;
    case 4: {
      const std::int64_t count = hostile_number(random);
      if (count <= static_cast<std::int64_t>(of.ends.size()) || count > 1 << 24)
        d.document_count = count;
      break;
    }
    case 5:
      if (random.one_in(4)) d.document_ends = nullptr;
      break;
    default:
      *numbers[random.below(std::size(numbers))] = hostile_number(random);
  }
}

// What is allowed, and large: it takes time and memory in proportion to pairs of ranks, documents
// and heads, or to the square of the rows.
bool is_large(const velo_sequence_desc& d) {
  const bool adaptive = d.kind >= VELO_SEQUENCE_ADAPTIVE;
  return (d.cp > 64 && d.cp <= 4096) || (adaptive && d.sequence > 512 && d.sequence <= 65536);
}
// A plan is made and asked, but neither proven nor written.
bool is_long(const velo_sequence_desc& d) {
  return d.cp > 24 || d.heads > 64 || d.sequence > 512;
}

std::int64_t count_visible(const velo_sequence_desc& d) {
  std::int64_t cells = 0;
  if (d.mask != nullptr && d.sequence > 0)
    return std::count(d.mask, d.mask + d.sequence * d.sequence, 0) * d.heads;
  const std::int64_t whole = d.sequence;
  const std::int64_t* const ends = d.document_count > 0 ? d.document_ends : &whole;
  const std::int64_t count = std::max<std::int64_t>(1, d.document_count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t rows = ends[i] - (i > 0 ? ends[i - 1] : 0);
    cells += d.causal != 0 ? rows * (rows + 1) / 2 : rows * rows;
  }
  return cells * d.heads;
}

// A question is answered, or refused with its result (-7) as it was.
std::string wrong_in_answer(velo_status status, const std::string& function, std::int64_t result) {
  if (status == VELO_OK) return result >= 0 ? "" : function + " wrote nothing";
  return result != -7 ? function + " wrote a result" : wrong_in_refusal(status, function, "");
}

// Each row is one rank's.
std::string wrong_in_rows(velo_sequence_plan plan, const velo_sequence_desc& d) {
  std::vector<int> owners(static_cast<std::size_t>(d.sequence), 0);
  for (std::int64_t rank = 0; rank < d.cp; ++rank) {
    std::int64_t count = 0;
    if (velo_sequence_plan_get_rows(plan, rank, nullptr, 0, &count) != VELO_OK) return "no rows";
    std::vector<std::int64_t> spans(static_cast<std::size_t>(2 * count));
    if (velo_sequence_plan_get_rows(plan, rank, spans.data(), count, nullptr) != VELO_OK)
      return "no rows";
    for (std::size_t i = 0; i < spans.size(); i += 2)
      for (std::int64_t row = spans[i]; row < spans[i + 1]; ++row)
        if (row < 0 || row >= d.sequence || ++owners[static_cast<std::size_t>(row)] > 1)
          return "row " + std::to_string(row) + " of rank " + std::to_string(rank);
  }
  return std::count(owners.begin(), owners.end(), 1) == d.sequence ? "" : "a row without a rank";
}

std::string wrong_in_steps(velo_sequence_plan plan, const velo_sequence_desc& d,
                           const velo_sequence_info& info) {
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
    std::int64_t cells = 0, sent = 0, received = 0;
    const std::int64_t steps =
        pass == VELO_SEQUENCE_FORWARD ? info.forward_steps : info.gradient_steps;
    for (std::int64_t rank = 0; rank < d.cp; ++rank)
      for (std::int64_t step = 0; step <= steps; ++step) {
        velo_sequence_step price = VELO_SEQUENCE_STEP_INIT;
        if (velo_sequence_plan_get_step(plan, pass, rank, step, &price) != VELO_OK)
          return "no step " + std::to_string(step);
        cells += price.cells, sent += price.bytes_sent, received += price.bytes_received;
      }
    if (cells != count_visible(d) || sent != received || sent < 0)
      return std::to_string(cells) + " cells of " + std::to_string(count_visible(d)) + ", " +
             std::to_string(sent) + " bytes sent, " + std::to_string(received) + " received";
  }
  return "";
}

// Cells of all heads that are listed one by one.
constexpr std::int64_t most_listed = 4096;

// Each visible cell of each head is computed once.
std::string wrong_in_cells(velo_sequence_desc d) {
  if (d.heads * d.sequence * d.sequence > most_listed) return "";
  d.struct_size = sizeof d;
  const described_plan plan(d);
  const std::vector<std::uint8_t> visible = visible_cells(d);
  for (const velo_sequence_pass pass : {VELO_SEQUENCE_FORWARD, VELO_SEQUENCE_GRADIENT}) {
    const std::vector<described_task> tasks = plan.tasks(pass);
    for (std::int64_t head = 0; head < d.heads; ++head)
      if (!compute_each_once(tasks, head, visible, d.sequence))
        return "the cells of head " + std::to_string(head);
  }
  return "";
}

// Asks for tasks, messages and rows that are in the plan, or are not.
std::string wrong_in_questions(velo_sequence_plan plan, const velo_sequence_desc& d,
                               random_source& random) {
  const auto some = [&](std::int64_t count) {
    return random.one_in(8)
               ? hostile_number(random)
               : static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(count)));
  };
  for (int i = 0; i < 4; ++i) {
    const auto pass = static_cast<velo_sequence_pass>(random.below(random.one_in(8) ? 3 : 2));
    const auto part = static_cast<velo_sequence_part>(random.below(random.one_in(8) ? 5 : 4));
    const std::int64_t rank = some(d.cp), step = some(d.cp), index = some(3), capacity = some(3);
    std::int64_t spans[6] = {-7, -7, -7, -7, -7, -7}, count = -7;
    velo_sequence_task task = VELO_SEQUENCE_TASK_INIT;
    velo_sequence_message message = VELO_SEQUENCE_MESSAGE_INIT;
    task.queries = message.rows = -7;
    const velo_status of_task = velo_sequence_plan_get_task(plan, pass, rank, step, index, &task);
    std::string wrong = wrong_in_answer(of_task, "velo_sequence_plan_get_task", task.queries);
    const velo_status of_message =
        velo_sequence_plan_get_message(plan, pass, rank, step, part, index, &message);
    wrong += wrong_in_answer(of_message, "velo_sequence_plan_get_message", message.rows);
    const velo_status of_spans = velo_sequence_plan_get_spans(
        plan, pass, rank, step, part, index, spans, std::min<std::int64_t>(capacity, 3), &count);
    wrong += wrong_in_answer(of_spans, "velo_sequence_plan_get_spans", count);
    if (!wrong.empty()) return wrong;
  }
  return "";
}

std::string wrong_in_plan(velo_sequence_plan plan, const velo_sequence_desc& d,
                          random_source& random) {
  velo_sequence_info info = VELO_SEQUENCE_INFO_INIT;
  if (velo_sequence_plan_get_info(plan, &info) != VELO_OK || info.cp != d.cp ||
      info.sequence != d.sequence)
    return "the info";
  std::string questions = wrong_in_questions(plan, d, random);
  if (is_long(d) || !questions.empty()) return questions;
  if (velo_sequence_plan_check(plan) != VELO_OK)
    return "not proven: " + last_record().expected + ", " + last_record().got;
  if (d.cp > 8 && !random.one_in(4)) return "";  // which would take most of the time
  const auto text = [&](velo_sequence_format format) {
    return whole_text([&](char* buffer, std::uint64_t capacity, std::uint64_t* needed) {
      return velo_sequence_plan_write(plan, format, buffer, capacity, needed);
    });
  };
  if (!json_is_object(read_json(text(VELO_SEQUENCE_JSON)).get())) return "no JSON";
  if (!is_picture(text(VELO_SEQUENCE_SVG))) return "no picture";
  std::string wrong = wrong_in_rows(plan, d);
  if (wrong.empty()) wrong = wrong_in_steps(plan, d, info);
  if (wrong.empty()) wrong = wrong_in_cells(d);
  return wrong;
}

std::string text_of(const velo_sequence_desc& d) {
  std::string all = "kind, causal, kv_cache, keys " + std::to_string(d.kind) + " " +
                    std::to_string(d.causal) + " " + std::to_string(d.kv_cache) + " " +
                    std::to_string(d.keys);
  for (const std::int64_t n :
       {d.cp, d.ulysses, d.window, d.sequence, d.document_count, d.heads, d.kv_heads, d.head_dim,
        d.element_bytes, d.kv_interval, d.layers, d.layer, d.kv_gather})
    all += " " + std::to_string(n);
  return all + (d.mask != nullptr ? " masked" : "");
}

}  // namespace

TEST_CASE("any description of a sequence plan is refused by its field, or makes a proven plan") {
  random_source random(28);
  bounds taken;
  int accepted = 0, large = 0;
  for (int i = 0; i < descriptions() + large; ++i) {  // so many besides the large ones
    described one = sensible(random);
    for (std::uint64_t changes = random.one_in(2) ? 1 + random.below(3) : 0; changes > 0; --changes)
      make_hostile(one, random);
    const handed_over<velo_sequence_desc> given(one.desc, random);
    const velo_sequence_desc read = given.read(VELO_SEQUENCE_DESC_INIT);
    if (is_large(read)) {
      ++large;
      continue;
    }
    auto* const untouched = reinterpret_cast<velo_sequence_plan>(&one);
    velo_sequence_plan made = untouched;
    const bool nowhere = random.one_in(500), nothing = random.one_in(500);
    taken.begin();
    const velo_status status =
        velo_sequence_plan_create(nothing ? nullptr : given.get(), nowhere ? nullptr : &made);
    std::string wrong;
    if (status != VELO_OK) {
      wrong = wrong_in_refusal(status, "velo_sequence_plan_create", nowhere ? "" : "desc");
      if (made != untouched) wrong += ", and wrote a plan";
    } else {
      ++accepted;
      wrong = wrong_in_plan(made, read, random);
      velo_sequence_plan_destroy(made);
    }
    taken.end(i);
    if (given.is_changed()) wrong += ", and changed the description";
    if (!wrong.empty()) FAIL_CHECK("description " << i << ", " << text_of(read) << ": " << wrong);
  }
  taken.check();
  CHECK(accepted > descriptions() / 4);
  CHECK(accepted < descriptions() * 3 / 4);
  CHECK(large < descriptions() / 10);
}
