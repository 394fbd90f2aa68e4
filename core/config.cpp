// The table of keys, and the publishing of settings.
#include "core/config.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/failure.hpp"
#include "core/text/json.hpp"
#include "core/text/log.hpp"
#include "core/text/utf8.hpp"

namespace velo::core {
namespace {

[[noreturn]] void bad_value(const char* argument, const char* expected, const char* value) {
  fail(VELO_ERR_ARGUMENT, argument, expected, text("\"%s\"", value));
}

// Reads an integer in JSON's syntax: no blank, no plus, no leading zero.
int read_int(const char* value, int lowest, int highest, const char* argument) {
  const char* last = value + std::strlen(value);
  const char* digits = *value == '-' ? value + 1 : value;
  int number = 0;
  const auto [end, error] = std::from_chars(value, last, number);
  if (end == value || end != last || error != std::errc() || number < lowest || number > highest ||
      (digits[0] == '0' && digits[1] != 0))
    bad_value(argument, text("an integer in [%d, %d]", lowest, highest), value);
  return number;
}

bool is_listed(const char* name, const std::string& names) {
  if (std::strchr(name, ',') != nullptr) return false;
  return (", " + names + ",").find(std::string(", ") + name + ",") != std::string::npos;
}

bool read_switch(const char* value, const char* argument) {
  const bool on = std::strcmp(value, "on") == 0;
  if (!on && std::strcmp(value, "off") != 0) bad_value(argument, "on or off", value);
  return on;
}

constexpr const char* counting_names[] = {"off", "on", "recompute"};

counting read_counting(const char* value, const char* argument) {
  for (const counting how : {counting::off, counting::on, counting::recompute})
    if (std::strcmp(value, counting_names[static_cast<std::size_t>(how)]) == 0) return how;
  bad_value(argument, "off, on or recompute", value);
}

constexpr const char* checking_names[] = {"off", "sample", "all"};

checking read_checking(const char* value, const char* argument) {
  for (const checking mode : {checking::off, checking::sample, checking::all})
    if (std::strcmp(value, checking_names[static_cast<std::size_t>(mode)]) == 0) return mode;
  bad_value(argument, "off, sample or all", value);
}

constexpr const char* overlap_names[] = {"auto", "whole", "sliced"};

overlap_mode read_overlap(const char* value, const char* argument) {
  for (const overlap_mode mode :
       {overlap_mode::automatic, overlap_mode::whole, overlap_mode::sliced})
    if (std::strcmp(value, overlap_names[static_cast<std::size_t>(mode)]) == 0) return mode;
  bad_value(argument, "for overlap.mode: auto, whole or sliced", value);
}

// Reads a number in C's syntax, without blanks, of those that `accepts` allows.
template <class Accepts>
double read_real(const char* value, const char* argument, const char* expected, Accepts accepts) {
  const char* last = value + std::strlen(value);
  double number = 0;
  const auto [end, error] = std::from_chars(value, last, number);
  if (end == value || end != last || error != std::errc() || !accepts(number))
    bad_value(argument, expected, value);
  return number;
}

double read_rate(const char* value, const char* argument) {
  return read_real(value, argument, "a number in [0, 1e30)",
                   [](double rate) { return rate >= 0 && rate < 1e30; });
}

std::string rate_text(double number) {
  char digits[32];
  return std::string(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

// One key. read: parses a value into the settings, given the processor's features; show: the
// current value as text.
struct row {
  const char* key;
  const char* doc;
  void (*read)(settings& into, const char* value, isa machine, const char* argument);
  std::string (*show)(const settings& from);
};

constexpr row table[] = {
    {"threads",
     "Threads a call may use; 0 = as many as the affinity mask and the cgroup quota allow. With a "
     "host parallel_for, at most this many parts of a region.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.threads = read_int(value, 0, 1024, argument);
     },
     [](const settings& s) { return std::to_string(s.threads); }},
    {"isa",
     "Highest instruction set kernels may use: scalar, avx2, avx512, avx512_bf16, amx. Never above "
     "what the processor offers.",
     [](settings& s, const char* value, isa machine, const char* argument) {
       isa wanted{};
       if (!parse_isa(value, wanted))
         bad_value(argument, "scalar, avx2, avx512, avx512_bf16 or amx", value);
       s.isa = std::min(wanted, machine);
     },
     [](const settings& s) { return std::string(isa_name(s.isa)); }},
    {"level", "Optimization: 0 = reference kernels, no overlap; 1 = fused kernels; 2 = everything.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.optimization = read_int(value, 0, 2, argument);
     },
     [](const settings& s) { return std::to_string(s.optimization); }},
    {"queue",
     "Most pieces of work a stream may hold, waiting or running; a call that would queue one more "
     "is refused.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.queue = read_int(value, 1, 1 << 24, argument);
     },
     [](const settings& s) { return std::to_string(s.queue); }},
    {"closures", "on = closures may be generated at run time; off = precompiled functions alone.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.closures = read_switch(value, argument);
     },
     [](const settings& s) { return std::string(s.closures ? "on" : "off"); }},
    {"log",
     "What reaches the log sink: off, error, warn, info, debug. Default: off, or warn when the "
     "host gave a sink.",
     [](settings& s, const char* value, isa, const char* argument) {
       if (!parse_log_level(value, s.log))
         bad_value(argument, "off, error, warn, info or debug", value);
     },
     [](const settings& s) { return std::string(log_level_name(s.log)); }},
    {"plugin_path",
     "Folders, separated by ':', in which velo looks for its own plugins (libvelo_mpi.so) before "
     "the folder of libvelo.so.",
     [](settings& s, const char* value, isa, const char*) { s.plugin_path = value; },
     [](const settings& s) { return s.plugin_path; }},
    {"counters",
     "Whether calls of operators are counted (velo_op_get_counts): off; on; recompute = counted as "
     "traversed alone, while activations are computed again.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.counting = read_counting(value, argument);
     },
     [](const settings& s) {
       return std::string(counting_names[static_cast<std::size_t>(s.counting)]);
     }},
    {"check.mode",
     "Which calls of operators run again by the reference, which takes long: off; sample = the "
     "share check.share of them; all. A call whose results differ by more than the operator's "
     "bound "
     "fails with INTERNAL.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.check.mode = read_checking(value, argument);
     },
     [](const settings& s) {
       return std::string(checking_names[static_cast<std::size_t>(s.check.mode)]);
     }},
    {"check.share", "Share of the calls, from 0 to 1, that check.mode = sample checks.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.check.share = read_real(value, argument, "a number in [0, 1]",
                                 [](double share) { return share >= 0 && share <= 1; });
     },
     [](const settings& s) { return rate_text(s.check.share); }},
    {"check.capsules",
     "Folder for a file with the first call that diverged, which `velo replay-capsule` runs again; "
     "empty = none.",
     [](settings& s, const char* value, isa, const char*) { s.check.capsules = value; },
     [](const settings& s) { return s.check.capsules; }},
    {"check.data", "on = capsules hold the elements of all tensors; off = their checksums alone.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.check.data = read_switch(value, argument);
     },
     [](const settings& s) { return std::string(s.check.data ? "on" : "off"); }},
    {"overlap.mode",
     "How operators that overlap a product with a collective work: auto = by the call's "
     "parallel_num, overlap.slices or velo's choice; whole = one after the other, without slices "
     "(coc-mode 0 and 1); sliced = also where velo would choose no slices (coc-mode 2).",
     [](settings& s, const char* value, isa, const char* argument) {
       s.overlap.mode = read_overlap(value, argument);
     },
     [](const settings& s) {
       return std::string(overlap_names[static_cast<std::size_t>(s.overlap.mode)]);
     }},
    {"overlap.slices",
     "Slices of the same operators by shape, where parallel_num is 0: entries "
     "ROWSxDEPTHxCOLUMNS:SLICES with commas between them, such as 4096x512x1024:4,*:2; a size * is "
     "any; the first that fits decides; SLICES 0 = chosen, 1 = none. The same on all ranks.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.overlap.table = slice_table(value, argument);
     },
     [](const settings& s) { return s.overlap.table.text(); }},
    {"limits.f32_gflops",
     "Gflop/s that products of float32 and float16 can reach with the context's threads, for "
     "velo_op_cost; 0 = not known. `velo info` measures it.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.limits.f32_gflops = read_rate(value, argument);
     },
     [](const settings& s) { return rate_text(s.limits.f32_gflops); }},
    {"limits.bf16_gflops", "Gflop/s that products of bfloat16 can reach, as limits.f32_gflops.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.limits.bf16_gflops = read_rate(value, argument);
     },
     [](const settings& s) { return rate_text(s.limits.bf16_gflops); }},
    {"limits.read_gbytes",
     "GB/s that the context's threads can read from memory, for velo_op_cost; 0 = not known.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.limits.read_gbytes = read_rate(value, argument);
     },
     [](const settings& s) { return rate_text(s.limits.read_gbytes); }},
    {"limits.copy_gbytes",
     "GB/s of a copy from memory to memory, bytes read plus bytes written, for velo_op_cost; 0 = "
     "not known.",
     [](settings& s, const char* value, isa, const char* argument) {
       s.limits.copy_gbytes = read_rate(value, argument);
     },
     [](const settings& s) { return rate_text(s.limits.copy_gbytes); }},
};
constexpr std::size_t rows = sizeof table / sizeof table[0];

constexpr const char* kernel_prefix = "kernel.";
constexpr const char* kernel_doc = "Name of the kernel to force for this operator; empty = choose.";
constexpr const char* kernel_environment = "VELO_KERNEL_";

std::size_t find_row(const char* key) {
  std::size_t i = 0;
  while (i < rows && std::strcmp(table[i].key, key) != 0) ++i;
  return i;
}

// The operator of a key kernel.<op>, or nullptr.
const char* operator_of(const char* key) {
  const std::size_t length = std::strlen(kernel_prefix);
  return std::strncmp(key, kernel_prefix, length) == 0 && key[length] != 0 ? key + length : nullptr;
}

std::string environment_name(const char* key) {
  std::string name = "VELO_";
  for (const char* c = key; *c != 0; ++c)
    name += *c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  return name;
}

std::string known_keys() {
  std::string names;
  for (const row& r : table) names += std::string(r.key) + ", ";
  return names + "or kernel.<op>";
}

[[noreturn]] void unknown_key(const char* key, const char* argument) {
  fail(VELO_ERR_NOT_FOUND, argument, known_keys().c_str(), text("\"%s\"", key));
}

void write_row(json_writer& to, const char* key, const std::string& value, origin from,
               const char* doc) {
  to.next_line(" ").object();
  to.member("key", key).member("value", value).member("origin", origin_name(from));
  to.member("doc", doc).end();
}

std::string text_of(const json& value, const char* argument) {
  switch (value.kind()) {
    case json::type::string:
      return value.string();
    case json::type::integer:
      return std::to_string(value.integer());
    case json::type::real:
      return rate_text(value.real());
    case json::type::boolean:
      return value.boolean() ? "on" : "off";
    default:
      fail(VELO_ERR_ARGUMENT, argument, "a string, a number or a boolean", value.kind_name());
  }
}

}  // namespace

const char* origin_name(origin from) {
  constexpr const char* names[] = {"default", "code", "environment"};
  return names[static_cast<int>(from)];
}

config::config(isa machine, velo_log_level log, kernel_names known)
    : machine_(machine), known_(known), origins_(rows, origin::standard) {
  settings first;
  first.isa = machine;
  first.log = log;
  publish(std::move(first));
}

// Calls read settings without a lock, so a version never changes or ends before the config does; a
// change appends one. A host that alternates between settings reuses the earlier versions, so the
// number of distinct settings bounds the memory.
void config::publish(settings&& next) {
  for (const auto& version : versions_)
    if (*version == next) return current_.store(version.get(), std::memory_order_release);
  versions_.push_back(std::make_unique<const settings>(std::move(next)));
  current_.store(versions_.back().get(), std::memory_order_release);
}

void config::change(const char* key, const char* value, origin from, const char* argument) {
  const std::lock_guard<std::mutex> lock(changing_);
  const std::size_t i = find_row(key);
  const char* op = i < rows ? nullptr : operator_of(key);
  if (i == rows && op == nullptr) unknown_key(key, "key");
  require_text(value, argument);
  settings next = now();
  if (op != nullptr) {
    change_kernel(next, op, value, from, argument);
    return publish(std::move(next));
  }
  if (origins_[i] == origin::environment && from != origin::environment) {
    fail(VELO_ERR_STATE, "key", text("a key that %s does not set", environment_name(key).c_str()),
         text("\"%s\" from the environment", table[i].show(next).c_str()));
  }
  table[i].read(next, value, machine_, argument);
  publish(std::move(next));
  origins_[i] = from;
}

void config::change_kernel(settings& next, const char* op, const char* value, origin from,
                           const char* argument) const {
  if (known_ != nullptr) {
    const std::string names = known_(op);
    if (names.empty())
      fail(VELO_ERR_NOT_FOUND, from == origin::environment ? argument : "key",
           "kernel.<name of an operator>", text("\"%s%s\"", kernel_prefix, op));
    if (value[0] != 0 && !is_listed(value, names))
      bad_value(argument, text("one of %s's kernels (%s), or an empty text", op, names.c_str()),
                value);
  }
  auto at =
      std::lower_bound(next.kernels.begin(), next.kernels.end(), op,
                       [](const settings::forced& f, const char* name) { return f.op < name; });
  const bool present = at != next.kernels.end() && at->op == op;
  if (present && at->from == origin::environment && from != origin::environment) {
    const std::string name = environment_name((kernel_prefix + at->op).c_str());
    fail(VELO_ERR_STATE, "key", text("a key that %s does not set", name.c_str()),
         text("\"%s\" from the environment", at->kernel.c_str()));
  }
  if (!present) at = next.kernels.insert(at, settings::forced{op, "", from});
  at->kernel = value;
  at->from = from;
}

void config::set(const char* key, const char* value, const char* argument) {
  change(key, value, origin::code, argument);
}

void config::set_json(const char* source, const char* argument) {
  const json object = json::parse(source, argument);
  if (object.kind() != json::type::object)
    fail(VELO_ERR_PARSE, argument, "a JSON object", object.kind_name());
  object.each([&](const char* key, const json& value) {
    const text path("%s.%s", argument, key);
    if (find_row(key) == rows && operator_of(key) == nullptr) unknown_key(key, path);
    change(key, text_of(value, path).c_str(), origin::code, path);
  });
}

void config::read_environment() {
  for (const row& r : table) {
    const std::string name = environment_name(r.key);
    const char* value = std::getenv(name.c_str());
    if (value != nullptr && value[0] != 0)  // an empty variable counts as not set
      change(r.key, value, origin::environment, name.c_str());
  }
  const std::size_t prefix = std::strlen(kernel_environment);
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const char* equals = std::strchr(*entry, '=');
    if (equals == nullptr || std::strncmp(*entry, kernel_environment, prefix) != 0) continue;
    const std::string name(*entry, static_cast<std::size_t>(equals - *entry));
    std::string key = kernel_prefix;
    for (const char* c = *entry + prefix; c != equals; ++c)
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
    if (find_row(key.c_str()) == rows && operator_of(key.c_str()) != nullptr)
      change(key.c_str(), equals + 1, origin::environment, name.c_str());
  }
}

config::value config::get(const char* key) const {
  const std::lock_guard<std::mutex> lock(changing_);
  const settings& current = now();
  const std::size_t i = find_row(key);
  if (i < rows) return {table[i].show(current), origins_[i]};
  const char* op = operator_of(key);
  if (op == nullptr) unknown_key(key, "key");
  for (const settings::forced& f : current.kernels)
    if (f.op == op) return {f.kernel, f.from};
  if (known_ != nullptr && known_(op).empty())
    fail(VELO_ERR_NOT_FOUND, "key", "kernel.<name of an operator>", text("\"%s\"", key));
  return {"", origin::standard};
}

std::string config::list() const {
  const std::lock_guard<std::mutex> lock(changing_);
  const settings& current = now();
  std::string all;
  json_writer to(all);
  to.array();
  for (std::size_t i = 0; i < rows; ++i)
    write_row(to, table[i].key, table[i].show(current), origins_[i], table[i].doc);
  for (const settings::forced& f : current.kernels)
    write_row(to, (kernel_prefix + f.op).c_str(), f.kernel, f.from, kernel_doc);
  to.end();
  return all;
}

}  // namespace velo::core
