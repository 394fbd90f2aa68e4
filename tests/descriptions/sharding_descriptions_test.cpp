// Descriptions of topologies and of parameters at random: each is refused by the name of a field,
// and leaves the sharding as it was, or it is proven, its parts make up each parameter, and it can
// be written. VELO_DESCRIPTIONS: how many shardings.
#include "velo/sharding.h"

#include <deque>

#include "tests/descriptions/hostile.hpp"

using namespace velo::testing;

namespace {

using number = std::int64_t;

struct described_topology {
  velo_topology_desc desc = VELO_TOPOLOGY_DESC_INIT;
  std::string order;
  std::vector<number> levels;
};

number ranks_of(const velo_topology_desc& d) {
  return d.tp * d.cp * d.dp * d.pp * d.gtp;
}

// A topology of up to 64 ranks that makes sense, mostly.
void put_sensible(described_topology& to, random_source& random) {
  static const number sizes[] = {1, 1, 1, 2, 2, 3, 4, 6};
  velo_topology_desc& d = to.desc;
  do {
    d.tp = random.pick(sizes), d.cp = random.pick(sizes);
    d.dp = random.pick(sizes), d.pp = random.pick(sizes);
    d.gtp = random.one_in(4) ? 2 : 1;
  } while (ranks_of(d) > 64);
  if (random.one_in(2)) {
    const number stage = d.tp * d.cp * d.dp;
    for (d.ep = random.pick(sizes); stage % (d.ep * d.tp) != 0;) --d.ep;
    if (random.one_in(2) && stage % d.ep == 0) d.etp = 1;
    if (random.one_in(4)) d.egtp = d.gtp;
  }
  if (d.tp > 1 && random.one_in(3)) d.tp_x = d.tp % 2 == 0 && random.one_in(2) ? 2 : d.tp;
  if ((d.dp * d.cp) % 2 == 0 && random.one_in(4)) d.instances = 2;
  if (random.one_in(4)) {
    std::vector<std::string> axes = {"tp", "cp", "ep", "dp", "pp"};
    std::shuffle(axes.begin(), axes.end(), random);
    for (const std::string& axis : axes) to.order += (to.order.empty() ? "" : "-") + axis;
  }
  if (random.one_in(6)) to.levels = {d.cp};
}

// One field becomes hostile.
void make_hostile(described_topology& to, random_source& random) {
  static const char* const orders[] = {"",      "-",        "tp--pp",       "tp-tp", "xp",
                                       "tp-cp", "TP-dp-pp", "tp-cp-ep-dp-", "\xff",  "tp cp dp pp"};
  velo_topology_desc& d = to.desc;
  number* const numbers[] = {&d.tp,        &d.cp,         &d.dp,        &d.pp,   &d.ep,
                             &d.etp,       &d.gtp,        &d.egtp,      &d.tp_x, &d.tp_y,
                             &d.instances, &d.cp_ulysses, &d.cp_window, &d.tp,   &d.pp};
  switch (random.below(5)) {
    case 0:
      to.order = random.pick(orders);
      break;
    case 1:
      to.levels.push_back(hostile_number(random));
      break;
    case 2:
      (random.one_in(2) ? d.hybrid : d.twins) = hostile_word(random);
      break;
    default:
      *numbers[random.below(std::size(numbers))] = hostile_number(random);
  }
}

// A parameter that owns what its description points at.
struct described_parameter {
  velo_sharding_parameter desc = VELO_SHARDING_PARAMETER_INIT;
  std::string name;
  std::vector<number> shape, stages;
  std::vector<velo_sharding_cut> cuts;
  std::deque<std::vector<velo_sharding_block>> blocks;
  std::deque<std::vector<number>> bounds;

  described_parameter() { shape.reserve(16), stages.reserve(4), cuts.reserve(16); }
  described_parameter(const described_parameter&) = delete;
  void point() {
    desc.name = name.c_str();
    desc.ndim = static_cast<std::int32_t>(shape.size()), desc.shape = shape.data();
    desc.cuts = cuts.data(), desc.cut_count = static_cast<number>(cuts.size());
    desc.stages = stages.data(), desc.stage_count = static_cast<number>(stages.size());
  }
};

std::string some_name(random_source& random) {
  static const std::string names[] = {"w",
                                      "layers.0.attention.query_key_value.weight",
                                      "a\"b\\c/d",
                                      "\x01\x02\t\n\r\x1f\x7f",
                                      "gewicht \xc3\xbc \xe2\x82\xac \xf0\x9f\x98\x80",
                                      "<script>&amp;</text>'",
                                      "%s%n%d",
                                      "]]>",
                                      "..",
                                      " ",
                                      "\xef\xbf\xbe",
                                      std::string(299, 'x') + "\xc3\xbc",
                                      std::string(5000, 'y')};
  static const std::string refused[] = {
      "", "\xff", "a\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf5\x80\x80\x80"};
  if (random.one_in(60)) return random.pick(refused);
  return random.pick(names) + (random.one_in(20) ? "" : std::to_string(random.below(1000000)));
}

// Blocks that add up to `size`.
std::vector<velo_sharding_block> some_blocks(number size, random_source& random) {
  std::vector<velo_sharding_block> all;
  while (size > 0) {
    const number one = 1 + static_cast<number>(random.below(static_cast<std::uint64_t>(size)));
    velo_sharding_block block = {one, 0, 0};
    if (random.one_in(2)) {
      number chunks = 1 + static_cast<number>(random.below(static_cast<std::uint64_t>(one)));
      while (one % chunks != 0) --chunks;
      block.repeat = static_cast<number>(random.below(5));
      block.units = chunks * std::max<number>(1, block.repeat);
    }
    all.push_back(block);
    size -= one;
  }
  if (random.one_in(8)) all.push_back({0, 0, 0});
  return all;
}

// Ranges of `indices` that make up `size`, mostly.
std::vector<number> some_bounds(number size, number indices, random_source& random) {
  std::vector<number> all;
  number begin = 0;
  for (number i = 0; i < indices; ++i) {
    number end = i + 1 == indices ? size
                                  : begin + static_cast<number>(random.below(
                                                static_cast<std::uint64_t>(size - begin) + 1));
    all.push_back(begin), all.push_back(end);
    begin = end;
  }
  if (random.one_in(4) && indices > 0) all[random.below(all.size())] = size / 2;
  return all;
}

number size_of_axis(const std::string& axis, const velo_topology_desc& d) {
  if (axis == "tp") return d.tp;
  if (axis == "tp_x") return d.tp_x;
  if (axis == "tp_y") return d.tp_x > 0 ? d.tp / d.tp_x : 0;
  if (axis == "gtp") return d.gtp;
  if (axis == "ep") return d.ep;
  if (axis == "etp") return d.etp > 0 ? d.etp : d.tp;
  return axis == "pp" ? d.pp : d.egtp;
}

void put_cut(described_parameter& to, const velo_topology_desc& job, number dimension,
             random_source& random) {
  static const char* const dense[] = {"tp", "tp", "tp", "gtp", "pp", "tp_x", "tp_y"};
  static const char* const experts[] = {"ep", "ep", "etp", "egtp", "pp"};
  const char* const axis = to.desc.experts != 0 ? random.pick(experts) : random.pick(dense);
  const number size = to.shape[static_cast<std::size_t>(dimension)],
               indices = size_of_axis(axis, job);
  velo_sharding_cut cut = {axis, dimension, nullptr, 0, nullptr, 0};
  if (random.one_in(4) && indices >= 0 && indices <= 64) {
    const std::vector<number>& made = to.bounds.emplace_back(some_bounds(size, indices, random));
    cut.bounds = made.data(), cut.bound_count = static_cast<number>(made.size());
  } else if (random.one_in(2)) {
    const auto& made = to.blocks.emplace_back(some_blocks(size, random));
    cut.blocks = made.data(), cut.block_count = static_cast<number>(made.size());
  }
  to.cuts.push_back(cut);
}

// A parameter that makes sense, mostly.
void put_sensible(described_parameter& to, const velo_topology_desc& job, random_source& random) {
  to.name = some_name(random);
  to.desc.experts = random.one_in(4) ? 1 : 0;
  for (std::uint64_t d = random.below(random.one_in(10) ? 9 : 4); d > 0; --d)
    to.shape.push_back(static_cast<number>(random.below(to.shape.size() < 3 ? 13 : 3)));
  for (std::size_t d = 0; d < to.shape.size(); ++d)
    if (random.one_in(2)) put_cut(to, job, static_cast<number>(d), random);
  const bool by_stage = std::any_of(to.cuts.begin(), to.cuts.end(),
                                    [](const auto& cut) { return std::string(cut.axis) == "pp"; });
  if (!by_stage && job.pp > 0 && random.one_in(2)) {
    to.stages = {static_cast<number>(random.below(static_cast<std::uint64_t>(job.pp)))};
    if (random.one_in(3)) to.stages = {0, job.pp - 1};
  }
  if (random.one_in(6)) to.desc.partial = to.desc.experts != 0 ? "etp" : "tp";
  if (random.one_in(2)) to.desc.bucket = static_cast<number>(random.below(3));
  to.point();
}

// One field becomes hostile. What would have the library read behind a list is not tried.
void make_hostile(described_parameter& to, random_source& random) {
  static const char* const axes[] = {"dp",   "cp",   "",          "TP",   "tp ",
                                     "\xff", "tp_z", "embedding", nullptr};
  velo_sharding_parameter& p = to.desc;
  velo_sharding_cut* const cut = to.cuts.empty() ? nullptr : &to.cuts[random.below(to.cuts.size())];
  const auto count = [&](number& of, std::size_t length) {
    const number other = hostile_number(random);
    if (other <= static_cast<number>(length) || other > 1 << 20) of = other;
  };
  switch (random.below(12)) {
    case 0:
      if (!to.shape.empty()) to.shape[random.below(to.shape.size())] = hostile_number(random);
      break;
    case 1: {
      const std::int32_t ndim = hostile_word(random);
      if (ndim <= static_cast<std::int32_t>(to.shape.size()) || ndim > 8) p.ndim = ndim;
      break;
    }
    case 2:
      if (cut != nullptr) count(random.one_in(2) ? cut->block_count : cut->bound_count, 0);
      break;
    case 3:
      if (cut != nullptr) cut->axis = random.pick(axes);
      break;
    case 4:
      if (cut != nullptr) cut->dimension = hostile_number(random);
      break;
    case 5:
      if (!to.blocks.empty() && !to.blocks.front().empty()) {
        velo_sharding_block& block = to.blocks.front()[random.below(to.blocks.front().size())];
        number* const numbers[] = {&block.size, &block.units, &block.repeat};
        *numbers[random.below(3)] = hostile_number(random);
      }
      break;
    case 6:
      if (!to.bounds.empty() && !to.bounds.front().empty())
        to.bounds.front()[random.below(to.bounds.front().size())] = hostile_number(random);
      break;
    case 7:
      if (random.one_in(2))
        count(p.cut_count, to.cuts.size());
      else
        count(p.stage_count, to.stages.size());
      break;
    case 8:
      p.partial = random.pick(axes);
      break;
    case 9:
      (random.one_in(2) ? p.no_gradient : p.experts) = hostile_word(random);
      break;
    case 10:
      if (!to.stages.empty()) to.stages.back() = hostile_number(random);
      break;
    default:
      p.bucket = hostile_number(random);
      if (random.one_in(8)) p.name = nullptr;
      if (random.one_in(8)) p.shape = nullptr;
      if (random.one_in(8)) p.cuts = nullptr;
  }
}

// Whether bounds give each element of their dimension to one index.
bool make_up(const velo_sharding_cut& cut, number size) {
  std::vector<std::pair<number, number>> spans;
  for (number i = 0; i < cut.bound_count; i += 2)
    if (cut.bounds[i] < cut.bounds[i + 1]) spans.emplace_back(cut.bounds[i], cut.bounds[i + 1]);
  std::sort(spans.begin(), spans.end());
  number next = 0;
  for (const auto& [begin, end] : spans) {
    if (begin != next) return false;
    next = end;
  }
  return next == size;
}
bool is_whole(const velo_sharding_parameter& p) {
  for (number i = 0; i < p.cut_count; ++i)
    if (p.cuts[i].bounds != nullptr && !make_up(p.cuts[i], p.shape[p.cuts[i].dimension]))
      return false;
  return true;
}

number elements_of(const std::vector<number>& shape) {
  number all = 1;
  for (const number size : shape) {
    if (size == 0) return 0;
    all *= size;
  }
  return all;
}

// Counts the ranks that hold each element, and compares the count with the copies of its piece.
class held_elements {
 public:
  explicit held_elements(std::vector<number> shape)
      : shape_(std::move(shape)), held_(static_cast<std::size_t>(elements_of(shape_)), {0, -1}) {}
  bool add(const velo_sharding_piece& piece) { return add(piece, 0, 0); }
  std::string wrong() const {
    for (const auto& [ranks, copies] : held_)
      if (ranks != copies)
        return std::to_string(ranks) + " ranks hold an element of " + std::to_string(copies) +
               " copies";
    return "";
  }

 private:
  bool add(const velo_sharding_piece& piece, std::size_t d, number at) {
    if (d == shape_.size()) {
      auto& [ranks, copies] = held_[static_cast<std::size_t>(at)];
      const bool same = ranks == 0 || copies == piece.copies;
      ++ranks, copies = piece.copies;
      return same;
    }
    if (piece.begin[d] < 0 || piece.begin[d] >= piece.end[d] || piece.end[d] > shape_[d])
      return false;
    for (number i = piece.begin[d]; i < piece.end[d]; ++i)
      if (!add(piece, d + 1, at * shape_[d] + i)) return false;
    return true;
  }
  std::vector<number> shape_;
  std::vector<std::pair<number, number>> held_;
};

// The rank's part, its pieces and its range agree.
std::string wrong_in_part(velo_sharding made, number index, number rank, held_elements* all) {
  velo_sharding_part part = VELO_SHARDING_PART_INIT;
  if (velo_sharding_get_part(made, index, rank, &part) != VELO_OK) return "no part";
  if (part.range_begin < 0 || part.range_begin > part.range_end || part.range_end > part.elements)
    return "the range of rank " + std::to_string(rank);
  number elements = 0;
  for (number i = 0; all != nullptr && i < part.pieces; ++i) {
    velo_sharding_piece piece = VELO_SHARDING_PIECE_INIT;
    if (velo_sharding_get_piece(made, index, rank, i, &piece) != VELO_OK) return "no piece";
    number own = 1;
    for (std::int32_t d = 0; d < part.ndim; ++d) {
      own *= piece.end[d] - piece.begin[d];
      if (piece.at[d] < 0 || piece.at[d] + piece.end[d] - piece.begin[d] > part.shape[d])
        return "a piece beyond the part of rank " + std::to_string(rank);
    }
    elements += own;
    if (!all->add(piece)) return "a piece of rank " + std::to_string(rank);
  }
  for (number i = 0; i < part.sums; ++i) {
    const char* family = nullptr;
    if (velo_sharding_get_sum(made, index, rank, i, &family) != VELO_OK || family[0] == 0)
      return "a sum";
  }
  return all == nullptr || elements == part.elements ? "" : "elements of the pieces";
}

struct added {
  std::vector<number> shape;
  bool whole;
};

std::string wrong_in_sharding(velo_sharding made, const std::vector<added>& all, number ranks) {
  velo_sharding_info info = VELO_SHARDING_INFO_INIT;
  if (velo_sharding_get_info(made, &info) != VELO_OK || info.ranks != ranks ||
      info.parameters != static_cast<number>(all.size()))
    return "the info";
  const bool whole = std::all_of(all.begin(), all.end(), [](const added& a) { return a.whole; });
  const velo_status proof = velo_sharding_check(made);
  if (proof != (whole ? VELO_OK : VELO_ERR_ARGUMENT))
    return "proof: " + std::to_string(proof) + " " + last_record().argument + " " +
           last_record().expected + ", " + last_record().got;
  if (!whole) return wrong_in_refusal(proof, "velo_sharding_check", "");
  for (std::size_t p = 0; p < all.size(); ++p) {
    const auto index = static_cast<number>(p);
    const bool counted = elements_of(all[p].shape) <= 5000;
    held_elements held(counted ? all[p].shape : std::vector<number>{0});
    for (number rank = 0; rank < ranks; ++rank) {
      std::string wrong = wrong_in_part(made, index, rank, counted ? &held : nullptr);
      if (!wrong.empty()) return wrong;
    }
    if (!held.wrong().empty()) return held.wrong();
    number moves = 0;
    if (velo_sharding_transfer(made, made, index, ranks - 1, VELO_SHARDING_PARTS, nullptr, 0,
                               &moves) != VELO_OK)
      return "no moves";
  }
  const auto text = [&](velo_sharding_format format) {
    return whole_text([&](char* buffer, std::uint64_t capacity, std::uint64_t* needed) {
      return velo_sharding_write(made, -1, format, buffer, capacity, needed);
    });
  };
  const json_tree read = read_json(text(VELO_SHARDING_JSON));
  if (json_object_size(read.get()) != static_cast<std::size_t>(ranks)) return "no JSON";
  return is_picture(text(VELO_SHARDING_SVG)) ? "" : "no picture";
}

std::string text_of(const velo_topology_desc& d) {
  std::string all = "job";
  for (const number n :
       {d.tp, d.cp, d.dp, d.pp, d.ep, d.etp, d.gtp, d.egtp, d.instances, d.tp_x, d.tp_y})
    all += " " + std::to_string(n);
  return all;
}

// Adds a parameter, and returns what is wrong with the answer.
std::string add_some(velo_sharding made, const velo_topology_desc& job, std::vector<added>& all,
                     random_source& random) {
  described_parameter one;
  put_sensible(one, job, random);
  for (std::uint64_t changes = random.one_in(3) ? 1 + random.below(2) : 0; changes > 0; --changes)
    make_hostile(one, random);
  const handed_over<velo_sharding_parameter> given(one.desc, random);
  const velo_sharding_parameter read = given.read(VELO_SHARDING_PARAMETER_INIT);
  number index = -7;
  const velo_status status = velo_sharding_add(made, given.get(), &index);
  if (given.is_changed()) return "the description was changed";
  if (status == VELO_OK) {
    if (index != static_cast<number>(all.size())) return "index " + std::to_string(index);
    const std::vector<number> shape(read.shape, read.shape + read.ndim);
    all.push_back({shape, is_whole(read)});
    return "";
  }
  const std::string wrong = wrong_in_refusal(status, "velo_sharding_add", "parameter");
  return index != -7 ? wrong + ", and wrote an index" : wrong;
}

std::string wrong_in_job(velo_topology job, const velo_topology_desc& desc, int& parameters,
                         random_source& random) {
  velo_topology_info info = VELO_TOPOLOGY_INFO_INIT;
  if (velo_topology_get_info(job, &info) != VELO_OK) return "no info";
  velo_sharding made = nullptr;
  if (velo_sharding_create(job, &made) != VELO_OK) return "no sharding";
  std::vector<added> all;
  std::string wrong;
  for (std::uint64_t i = random.below(6); i > 0 && wrong.empty(); --i)
    wrong = add_some(made, desc, all, random);
  parameters += static_cast<int>(all.size());
  // Proofs and texts take time in proportion to the ranks.
  if (wrong.empty() && info.ranks <= 64) wrong = wrong_in_sharding(made, all, info.ranks);
  for (std::size_t p = 0; p < all.size() && wrong.empty() && info.ranks > 64; ++p)
    wrong = wrong_in_part(made, static_cast<number>(p), info.ranks - 1, nullptr);
  velo_sharding_destroy(made);
  return wrong;
}

}  // namespace

TEST_CASE("any description of a sharding is refused by its field, or makes parts that are proven") {
  random_source random(29);
  bounds taken;
  int jobs = 0, parameters = 0;
  for (int i = 0; i < descriptions(); ++i) {
    described_topology one;
    put_sensible(one, random);
    for (std::uint64_t changes = random.one_in(5) ? 1 + random.below(2) : 0; changes > 0; --changes)
      make_hostile(one, random);
    if (!one.order.empty() || random.one_in(100)) one.desc.order = one.order.c_str();
    one.desc.cp_levels = one.levels.data();
    one.desc.cp_level_count = static_cast<number>(one.levels.size());
    const handed_over<velo_topology_desc> given(one.desc, random);
    const velo_topology_desc read = given.read(VELO_TOPOLOGY_DESC_INIT);
    auto* const untouched = reinterpret_cast<velo_topology>(&one);
    velo_topology job = untouched;
    taken.begin();
    const velo_status status = velo_topology_create(given.get(), &job);
    std::string wrong;
    if (status != VELO_OK) {
      wrong = wrong_in_refusal(status, "velo_topology_create", "desc");
      if (job != untouched) wrong += ", and wrote a topology";
    } else {
      ++jobs;
      wrong = wrong_in_job(job, read, parameters, random);
      velo_topology_destroy(job);
    }
    taken.end(i);
    if (given.is_changed()) wrong += ", and changed the description";
    if (!wrong.empty()) FAIL_CHECK("description " << i << ", " << text_of(read) << ": " << wrong);
  }
  taken.check();
  CHECK(jobs > descriptions() / 2);
  CHECK(jobs < descriptions());
  CHECK(parameters > descriptions() / 2);
}
