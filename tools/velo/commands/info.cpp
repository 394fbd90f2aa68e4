// velo info: the library's version, the machine as it found it, and its configuration.
#include <dlfcn.h>

#include <cstdio>
#include <fstream>
#include <utility>
#include <velo/velo.hpp>

#include "tools/velo/commands.hpp"
#include "tools/velo/commands/measure.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"
#include "tools/velo/table.hpp"

namespace command {

const char* const info_help =
    "usage: velo info [--no-measure] [--set key=value] [--json]\n\n"
    "Version and file of the library, processor, instruction set, measured limits, operators,\n"
    "transports, capabilities, and every configuration key with its origin. Limits are those of "
    "the\n"
    "machine with this instruction set, not of velo's operators. Measuring them takes about two\n"
    "seconds; --no-measure leaves it out.\n";

namespace {

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string library_file() {
  Dl_info where{};
  return dladdr(reinterpret_cast<const void*>(&velo_version), &where) != 0 ? where.dli_fname : "";
}

json operators() {
  json all(json_array());
  for (int64_t i = 0; i < velo::op_count(); ++i)
    json_array_append_new(all.get(), json_string(velo::op_name(i)));
  return all;
}

// The transports that work here, and what the others lack.
json transports(velo::context& context) {
  const std::pair<const char*, velo_transport> names[] = {{"self", VELO_TRANSPORT_SELF},
                                                          {"local", VELO_TRANSPORT_LOCAL},
                                                          {"shm", VELO_TRANSPORT_SHM},
                                                          {"mpi", VELO_TRANSPORT_MPI},
                                                          {"host", VELO_TRANSPORT_HOST}};
  json all(json_array());
  for (const auto& one : names) {
    std::string missing;
    try {
      velo::query(context, one.second);
    } catch (const velo::error& why) {
      missing = why.what();
    }
    json_array_append_new(all.get(), json_pack("{s:s,s:b,s:s}", "transport", one.first, "there",
                                               missing.empty(), "missing", missing.c_str()));
  }
  return all;
}

json gather(velo::context& context, bool measured) {
  const velo::library_version v = velo::version();
  const std::string release = std::to_string(v.major_number) + "." +
                              std::to_string(v.minor_number) + "." + std::to_string(v.patch_number);
  const std::string abi = std::to_string(v.abi / 100) + "." + std::to_string(v.abi % 100);
  json rates(json_array());
  if (measured)
    for (const limits& found : measure(context))
      json_array_append_new(
          rates.get(), json_pack("{s:i,s:f,s:f,s:f,s:f}", "threads", found.threads, "f32_gflops",
                                 found.f32, "bf16_gflops", found.bf16, "read_gbytes", found.read,
                                 "copy_gbytes", found.copy));
  return json(json_pack(
      "{s:s,s:s,s:s,s:s,s:s,s:i,s:o,s:o,s:o,s:{s:b},s:o}", "version", release.c_str(), "abi",
      abi.c_str(), "library", library_file().c_str(), "processor", processor_name().c_str(), "isa",
      context.config<std::string>("isa").c_str(), "threads", context.stats().threads, "limits",
      rates.release(), "operators", operators().release(), "transports",
      transports(context).release(), "capabilities", "closures", velo::has(VELO_CAP_CLOSURES),
      "configuration", parse(context.config_list<std::string>()).release()));
}

// One limit of every thread count measured.
std::string rate(const json_t* limits, const char* name, const char* unit) {
  std::string all;
  for (std::size_t i = 0; i < json_array_size(limits); ++i) {
    const json_t* row = json_array_get(limits, i);
    char buffer[96];
    std::snprintf(buffer, sizeof buffer, "%s%.1f %s, %lld thread%s", i > 0 ? "; " : "",
                  json_real_value(member(row, name)), unit,
                  static_cast<long long>(json_integer_value(member(row, "threads"))),
                  json_integer_value(member(row, "threads")) > 1 ? "s" : "");
    all += buffer;
  }
  return all;
}

void show(const json_t* all) {
  table facts({"velo", text(all, "version") + ", ABI " + text(all, "abi")});
  facts.add({"library", text(all, "library")});
  facts.add({"processor", text(all, "processor")});
  facts.add({"isa", text(all, "isa")});
  facts.add({"threads", std::to_string(json_integer_value(member(all, "threads")))});
  const json_t* limits = member(all, "limits");
  if (json_array_size(limits) > 0) {
    facts.add({"f32 peak", rate(limits, "f32_gflops", "Gflop/s")});
    facts.add({"bf16 peak", rate(limits, "bf16_gflops", "Gflop/s")});
    facts.add({"memory read", rate(limits, "read_gbytes", "GB/s")});
    facts.add({"memory copy", rate(limits, "copy_gbytes", "GB/s")});
  }
  const json_t* capabilities = member(all, "capabilities");
  facts.add({"closures", json_is_true(member(capabilities, "closures")) ? "yes" : "no"});
  std::string there;
  const json_t* ways = member(all, "transports");
  for (std::size_t i = 0; i < json_array_size(ways); ++i) {
    const json_t* one = json_array_get(ways, i);
    there += (i > 0 ? " " : "") + text(one, "transport");
    if (!json_is_true(member(one, "there"))) there += " (not here: " + text(one, "missing") + ")";
  }
  facts.add({"transports", there});
  facts.add({"operators", joined(member(all, "operators"), " ")});
  std::printf("%s\n", facts.str().c_str());
  table keys({"key", "value", "origin", "meaning"});
  const json_t* rows = member(all, "configuration");
  for (std::size_t i = 0; i < json_array_size(rows); ++i) {
    const json_t* row = json_array_get(rows, i);
    keys.add({text(row, "key"), text(row, "value"), text(row, "origin"), text(row, "doc")});
  }
  std::printf("%s", keys.str().c_str());
}

}  // namespace

int info(const arguments& given) {
  if (!given.words.empty()) throw input_error("info takes no words, but got " + given.words[0]);
  velo::context context = velo::context::create();
  configure(context, given.settings);
  const json all = gather(context, given.measure);
  given.json ? print(all.get()) : show(all.get());
  return done;
}

}  // namespace command
