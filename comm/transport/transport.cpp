// The names of transports, and default implementations for transports without subgroups.
#include "comm/transport/transport.hpp"

namespace velo::comm {
namespace {

constexpr const char* names[] = {"auto", "self", "local", "shm", "mpi", "host"};

}  // namespace

const char* name_of(velo_transport kind) noexcept {
  return names[kind];
}

void subgroup_terms::raise(fault::how how, const rank_set& culprits, const char* cause) const {
  fault why;
  why.kind = how;
  why.terms.kind = kind;
  why.terms.count = static_cast<std::int64_t>(ranks.size());
  why.timeout_ns = timeout_ns;
  why.culprits = culprits;
  core::copy_text(why.cause, sizeof why.cause, cause);
  why.raise();
}

std::unique_ptr<transport> transport::subgroup(const subgroup_terms&) {
  core::fail(VELO_ERR_UNSUPPORTED, "parent", "a group whose transport has parts", name_of(kind()));
}

std::unique_ptr<transport> transport::shrink(const subgroup_terms&) {
  core::fail(VELO_ERR_UNSUPPORTED, "group", "a group whose transport can lose ranks",
             name_of(kind()));
}

}  // namespace velo::comm
