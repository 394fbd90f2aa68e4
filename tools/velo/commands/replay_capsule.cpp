// velo replay-capsule: a call that diverged from the reference, run again and compared again.
#include <cctype>
#include <cstdio>
#include <cstdlib>

#include "tools/velo/commands.hpp"
#include "tools/velo/commands/capsule_file.hpp"
#include "tools/velo/json.hpp"
#include "tools/velo/messages.hpp"

namespace command {

const char* const replay_capsule_help =
    "usage: velo replay-capsule FILE.capsule.gz [--set key=value] [--json]\n\n"
    "Runs the call in a capsule again, by the kernel that it names and by the reference, and "
    "tells\n"
    "whether they still disagree, and whether the outputs have the bytes that were recorded. A "
    "program\nleaves a capsule when a call diverges from the reference:\n\n"
    "  VELO_CHECK_MODE=sample VELO_CHECK_CAPSULES=/tmp ./train\n\n"
    "--set kernel.NAME=.. tries another kernel, an empty one the kernel that velo would choose.\n\n"
    "Exits with 2 when the call diverges.\n";

namespace {

struct replayed {
  bool diverges = false;
  std::string sentence;  // about the divergence
};

// Variables of the environment rule over keys; those of the run that left the capsule may still be
// there.
void forget_variable_of(const std::string& key) {
  std::string name = "VELO_";
  for (const char c : key)
    name += c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  unsetenv(name.c_str());
}

replayed run(const capsule_file& of, const arguments& given) {
  for (const std::string& key : {std::string("check.mode"), std::string("check.share"),
                                 std::string("check.capsules"), "kernel." + of.op})
    forget_variable_of(key);
  velo::context context = velo::context::create();
  configure(context,
            {{"check.capsules", ""}, {"check.mode", "all"}, {"kernel." + of.op, of.kernel}});
  configure(context, given.settings);
  const velo_status status =
      velo_op_call(context.inline_stream().get(), of.op.c_str(), of.values().data(),
                   static_cast<int64_t>(of.values().size()));
  if (status == VELO_OK) return {};
  const velo::error failure = velo::error::last(status);
  if (status == VELO_ERR_UNSUPPORTED)
    throw input_error(sentence_of(failure) + "; --set kernel." + of.op + "= lets velo choose");
  if (status != VELO_ERR_INTERNAL) throw input_error(sentence_of(failure));
  return {true, failure.argument() + std::string(": expected ") + failure.expected() + ", got " +
                    failure.got()};
}

void show(const capsule_file& of, const replayed& result) {
  std::printf("%s by the kernel %s, recorded by velo %s\n", of.op.c_str(), of.kernel.c_str(),
              of.release.c_str());
  if (!of.has_data()) {
    std::printf("the capsule has no elements: all are 0 here\n");
  } else {
    for (const std::string& name : of.zeroed)
      std::printf("the capsule has no elements of %s: they are 0 here\n", name.c_str());
  }
  std::printf("%s\n", result.diverges ? ("diverges: " + result.sentence).c_str()
                                      : "agrees with the reference");
  for (const capsule_file::output& one : of.outputs())
    std::printf("%s has %s bytes\n", one.name.c_str(),
                one.now == one.recorded ? "the recorded" : "other than the recorded");
}

void show_json(const capsule_file& of, const replayed& result) {
  json outputs(json_array());
  for (const capsule_file::output& one : of.outputs())
    json_array_append_new(outputs.get(), json_pack("{s:s,s:b}", "name", one.name.c_str(), "same",
                                                   one.now == one.recorded ? 1 : 0));
  const json all(json_pack("{s:s,s:s,s:s,s:b,s:b,s:s,s:o}", "op", of.op.c_str(), "kernel",
                           of.kernel.c_str(), "release", of.release.c_str(), "data",
                           of.zeroed.empty() ? 1 : 0, "diverges", result.diverges ? 1 : 0,
                           "divergence", result.sentence.c_str(), "outputs", outputs.release()));
  print(all.get());
}

}  // namespace

int replay_capsule(const arguments& given) {
  if (given.words.size() != 1) throw input_error("replay-capsule wants one file, a capsule");
  const capsule_file of(given.words[0]);
  describe_operator(of.op);
  const replayed result = run(of, given);
  given.json ? show_json(of, result) : show(of, result);
  return result.diverges ? no_solution : done;
}

}  // namespace command
