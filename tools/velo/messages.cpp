// The library's records in the command's words.
#include "tools/velo/messages.hpp"

#include "tools/velo/closest_name.hpp"
#include "tools/velo/commands.hpp"

namespace command {
namespace {

bool drop_start(std::string& text, const std::string& start) {
  if (text.compare(0, start.size(), start) != 0) return false;
  text.erase(0, start.size());
  return true;
}

// "gamma, its shape" of "args.gamma.shape", "gamma, its shape[1]" of "args.gamma.shape[1]".
std::string subject_of(std::string argument) {
  if (!drop_start(argument, "args.") && !drop_start(argument, "desc.")) return argument;
  const std::size_t dot = argument.rfind('.');
  if (dot == std::string::npos) return argument;
  const std::string part = argument.substr(dot + 1), noun = part.substr(0, part.find('['));
  if (noun != "shape" && noun != "dtype" && noun != "strides") return argument;
  return argument.substr(0, dot) + ", its " + part;
}

// Every name of every operator.
std::vector<std::string> operator_names() {
  std::vector<std::string> names;
  for (int64_t i = 0; i < velo::op_count(); ++i) {
    names.emplace_back(velo::op_name(i));
    const json one = parse(velo::op_describe<std::string>(velo::op_name(i)));
    const json_t* aliases = member(one.get(), "aliases");
    for (std::size_t k = 0; k < json_array_size(aliases); ++k)
      names.emplace_back(json_string_value(json_array_get(aliases, k)));
  }
  return names;
}

std::vector<std::string> keys_of(const velo::context& context) {
  std::vector<std::string> keys;
  const json rows = parse(context.config_list<std::string>());
  for (std::size_t i = 0; i < json_array_size(rows.get()); ++i)
    keys.push_back(text(json_array_get(rows.get(), i), "key"));
  return keys;
}

}  // namespace

std::string sentence_of(const velo::error& failure) {
  const std::string expected = failure.expected(), got = failure.got(), cause = failure.cause();
  if (expected.empty() && got.empty() && cause.empty()) return failure.what();
  std::string all = subject_of(failure.argument());
  const auto add = [&](const char* between, const std::string& part) {
    if (!part.empty()) all += (all.empty() ? "" : between) + part;
  };
  add(": ", expected.empty() ? "" : "expected " + expected);
  add(expected.empty() ? ": " : ", ",
      got.empty() ? "" : "got " + (got == "NULL" ? "nothing" : got));
  add(": ", cause);
  return all;
}

json describe_operator(const std::string& name) {
  try {
    return parse(velo::op_describe<std::string>(name.c_str()));
  } catch (const velo::error&) {
    const std::string meant = did_you_mean(name, operator_names());
    throw input_error(name + ": no such operator" +
                      (meant.empty() ? "; velo ops lists them" : meant));
  }
}

void configure(velo::context& context,
               const std::vector<std::pair<std::string, std::string>>& settings) {
  for (const auto& [key, value] : settings) {
    try {
      context.set(key.c_str(), value.c_str());
    } catch (const velo::error& failure) {
      if (failure.status() == VELO_ERR_STATE)
        throw input_error("--set " + key + "=" + value + ": expected " + failure.expected() +
                          ", got " + failure.got());
      if (std::string(failure.argument()) != "key")
        throw input_error("--set " + key + "=" + value + ": expected " + failure.expected());
      const std::string meant = did_you_mean(key, keys_of(context));
      throw input_error("--set " + key + "=" + value + ": no such key" +
                        (meant.empty() ? "; there are " + std::string(failure.expected()) : meant));
    }
  }
}

}  // namespace command
