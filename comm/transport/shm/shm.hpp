// The transport of ranks that are processes of one host. A rendezvous provides their shared memory.
#pragma once

#include <memory>

#include "comm/transport/shm/rendezvous.hpp"
#include "comm/transport/transport.hpp"

namespace velo::comm {

class progress_hook;

// Joins the other ranks; throws as rendezvous does. progress: polled by ranks that wait.
std::unique_ptr<transport> make_shm(const rendezvous_options& at,
                                    progress_hook* progress = nullptr);

// Throws IO with the missing facility if this system lacks one.
void require_shm();

}  // namespace velo::comm
