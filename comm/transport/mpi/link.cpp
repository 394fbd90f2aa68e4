// Meeting, waiting, and what ends a group over MPI.
#include "comm/transport/mpi/link.hpp"

#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "comm/transport/shared/blame.hpp"
#include "core/host/cpu.hpp"
#include "core/round_up.hpp"

namespace velo::comm {
namespace {

constexpr std::int64_t spin_for = 20000;
constexpr std::int64_t first_rest = 20000, longest_rest = 1000000;  // between looks at what came
constexpr std::size_t least_slot = 8192, most_slot = std::size_t{1} << 30;

// Processes of one host and one space of process numbers say the same.
void name_host(char (&name)[128]) {
  char host[65] = "", boot[40] = "", space[24] = "";
  gethostname(host, sizeof host - 1);
  if (std::FILE* file = std::fopen("/proc/sys/kernel/random/boot_id", "re")) {
    if (std::fgets(boot, sizeof boot, file) == nullptr) boot[0] = 0;
    std::fclose(file);
  }
  boot[std::strcspn(boot, "\n")] = 0;
  if (readlink("/proc/self/ns/pid", space, sizeof space - 1) < 0) space[0] = 0;
  std::snprintf(name, sizeof name, "%s %s %s", host, boot, space);
}

void rest(std::int64_t ns) noexcept {
  const timespec time{0, static_cast<long>(ns)};
  nanosleep(&time, nullptr);
}

std::vector<int> ranks_of(int size) {
  std::vector<int> all;
  for (int rank = 0; rank < size; ++rank) all.push_back(rank);
  return all;
}

}  // namespace

// What ranks tell each other when they meet.
struct mpi_link::hello {
  char release[24];
  char host[128];   // as its processes see it
  char place[128];  // the same, unless a test has it otherwise
  std::uint64_t buffer, token;
  std::int64_t process;
};

mpi_link::mpi_link(setting set)
    : hub_(std::move(set.hub)),
      members_(set.members.empty() ? ranks_of(hub_->size()) : set.members),
      rank_(static_cast<int>(std::find(members_.begin(), members_.end(), hub_->rank()) -
                             members_.begin())),
      size_(static_cast<int>(members_.size())),
      timeout_ns_(set.timeout_ns),
      spin_ns_(size_ <= core::usable_threads() ? spin_for : 0),
      number_(set.number),
      left_(new std::atomic<bool>[members_.size()]()),
      waits_(members_.size()) {
  map(set.buffer);
  const bool whole = set.members.empty();
  if (whole) {
    number_ = hub_->add(*this);
  } else {
    hub_->add_part(number_, *this);
  }
  try {
    meet(set, whole);
  } catch (...) {
    hub_->remove(number_);
    throw;
  }
}

mpi_link::~mpi_link() {
  if (!failed_) hub_->tell({number_, rank_, notice::what::left, {}}, members_);
  hub_->remove(number_);
}

// Pages that nobody uses are not taken from the system.
void mpi_link::map(std::size_t buffer) {
  const auto peers = static_cast<std::size_t>(std::max(1, size_ - 1));
  slot_ = core::round_up(std::clamp(buffer / peers, least_slot, most_slot), 4096);
  const auto ranks = static_cast<std::size_t>(size_);
  const std::size_t bytes = 2 * ranks * opening_bytes + 8 * ranks * slot_;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_.reset(static_cast<char*>(memory), [bytes](char* p) { munmap(p, bytes); });
}

void mpi_link::meet(const setting& set, bool whole) {
  hello mine{};
  std::snprintf(mine.release, sizeof mine.release, "%s", VELO_RELEASE);
  name_host(mine.host);
  const char* place = std::getenv("VELO_MPI_HOST");  // one host's ranks as if of several
  if (!whole) place = set.place.c_str();
  std::snprintf(mine.place, sizeof mine.place, "%s", place != nullptr ? place : mine.host);
  while (getrandom(&mine.token, sizeof mine.token, 0) < 0 && errno == EINTR) {
  }
  mine.buffer = set.buffer;
  mine.process = getpid();
  batch all;
  all.opens();
  try {
    for (int peer = 0; peer < size_; ++peer) {
      if (peer == rank_) continue;
      std::memcpy(opening_to(peer), &mine, sizeof mine);
      receive(all, flow::opening, peer, opening_of(peer), opening_bytes);
      send(all, flow::opening, peer, opening_to(peer), sizeof mine);
    }
    finish(all, fault());
  } catch (...) {
    abandon(all);
    throw;
  }
  is_met_ = true;
  std::vector<int> processes(static_cast<std::size_t>(size_), 0);
  for (int peer = 0; peer < size_; ++peer) {
    hello theirs = mine;
    if (peer != rank_) std::memcpy(&theirs, opening_of(peer), sizeof theirs);
    theirs.release[sizeof theirs.release - 1] = 0;
    if (std::strcmp(theirs.release, mine.release) != 0) {
      core::failure other;
      other.code = VELO_ERR_PEER;
      other.rank = peer;
      core::copy_text(other.expected, sizeof other.expected, core::text("velo %s", mine.release));
      core::copy_text(other.got, sizeof other.got,
                      core::text("rank %d with velo %s", peer, theirs.release));
      throw other;
    }
    if (peer != rank_ && std::memcmp(theirs.host, mine.host, sizeof mine.host) == 0)
      processes[static_cast<std::size_t>(peer)] = static_cast<int>(theirs.process);
    theirs.place[sizeof theirs.place - 1] = 0;
    ranks_.push_back({theirs.place, theirs.token});
    if (peer == 0) mine.buffer = theirs.buffer;
  }
  if (whole) hub_->watch(processes);
  if (mine.buffer != set.buffer) map(mine.buffer);
}

// A call that was given up has sent its number all the same, and what came for it too late is read
// by the next one. That does no harm unless other parts were made in between: then ranks may take
// different numbers, and do not meet by the deadline.
mpi_link::setting mpi_link::part(const subgroup_terms& of) {
  setting made{hub_, of.timeout_ns,     of.slot_bytes * 2,
               {},   hub_->next_part(), ranks_[static_cast<std::size_t>(rank_)].host};
  const auto count = of.ranks.size();
  const auto own = std::make_shared<std::uint64_t>(made.number);
  const auto theirs = std::make_shared<std::vector<std::uint64_t>>(count);
  std::vector<mpi_request> sent(count), comes(count);
  for (std::size_t i = 0; i < count; ++i) {
    made.members.push_back(members_[static_cast<std::size_t>(of.ranks[i])]);
    if (of.ranks[i] == rank_) continue;
    begin_receive(comes[i], flow::part, of.ranks[i], reinterpret_cast<char*>(&(*theirs)[i]), 8);
    begin_send(sent[i], flow::part, of.ranks[i], reinterpret_cast<char*>(own.get()), 8);
  }
  const std::int64_t since = now_ns();
  fault::how how = fault::how::none;
  rank_set missing;
  while (true) {
    missing = rank_set();
    hub_->poll();
    rank_set away, left;  // who left may have sent its number before
    for (const int rank : of.ranks)
      if (has_left(rank)) away.add(rank);
    for (std::size_t i = 0; i < count; ++i) {
      if (is_done(comes[i], of.ranks[i], fault())) continue;
      missing.add(of.ranks[i]);
      if (away.has(of.ranks[i])) left.add(of.ranks[i]);
    }
    if (missing.lowest() < 0) break;
    if (left.lowest() >= 0) how = fault::how::left, missing = left;
    if (how == fault::how::none && now_ns() - since >= of.timeout_ns) how = fault::how::late;
    if (how != fault::how::none || failed_) break;
    pause(now_ns() - since);
  }
  for (mpi_request& one : comes)
    if (!hub_->mpi().cancel(&one)) hub_->bury({{one}, theirs});
  hub_->bury({std::move(sent), own});
  raise_if_failed();
  if (how != fault::how::none) of.raise(how, missing, "");
  for (const std::uint64_t one : *theirs) made.number = std::max(made.number, one);
  return made;
}

void mpi_link::begin_send(mpi_request& one, flow on, int to, const char* from, std::int64_t bytes) {
  char why[128] = "";
  if (!hub_->mpi().send(hub_->line(), from, static_cast<int>(bytes),
                        members_[static_cast<std::size_t>(to)],
                        mpi_hub::tag(number_, static_cast<int>(on)), &one, why))
    end_broken(to, fault(), why);
}

void mpi_link::begin_receive(mpi_request& one, flow on, int from, char* to, std::int64_t bytes) {
  char why[128] = "";
  if (!hub_->mpi().receive(hub_->line(), to, static_cast<int>(bytes),
                           members_[static_cast<std::size_t>(from)],
                           mpi_hub::tag(number_, static_cast<int>(on)), &one, why))
    end_broken(from, fault(), why);
}

bool mpi_link::is_done(mpi_request& one, int peer, const fault& doing) {
  char why[128] = "";
  int done = 0;
  if (!hub_->mpi().test(&one, &done, why)) end_broken(peer, doing, why);
  return done != 0;
}

void mpi_link::send(batch& with, flow on, int to, const char* from, std::int64_t bytes) {
  with.all_.push_back({{}, to, false});
  begin_send(with.all_.back().request, on, to, from, bytes);
}

void mpi_link::receive(batch& with, flow on, int from, char* to, std::int64_t bytes) {
  with.all_.push_back({{}, from, true});
  begin_receive(with.all_.back().request, on, from, to, bytes);
}

mpi_link::motion mpi_link::advance(batch& all, const fault& doing) {
  const std::size_t before = all.all_.size();
  for (std::size_t i = 0; i < all.all_.size();) {
    if (!is_done(all.all_[i].request, all.all_[i].peer, doing)) {
      ++i;
    } else {
      all.all_[i] = all.all_.back();
      all.all_.pop_back();
    }
  }
  if (all.all_.empty()) return motion::all;
  return all.all_.size() < before ? motion::some : motion::none;
}

void mpi_link::finish(batch& all, const fault& doing) {
  wait(
      doing, [&] { return advance(all, doing); },
      [&] {
        awaited now;
        now.begins = all.opens_;
        for (const batch::message& one : all.all_)
          (one.comes ? now.comes : now.goes).push_back(one.peer);
        return now;
      });
}

void mpi_link::pause(std::int64_t waited) const noexcept {
  if (waited < spin_ns_) return;
  if (waited < spin_ns_ + yield_ns) {
    sched_yield();
  } else {  // twenty looks in the time waited so far
    rest(std::clamp(std::min(waited / 20, timeout_ns_ - waited), first_rest, longest_rest));
  }
}

// What can come instead of the messages: ranks that left or are gone, the deadline. Who left has
// sent before what it owed, and what begins came before the word that it left; which another thread
// may have read since the messages were looked at: then they are looked at again.
void mpi_link::raise_if_over(const wait_state& now, bool is_late) {
  const awaited& all = now.all;
  fault why = now.doing;
  why.timeout_ns = timeout_ns_;
  why.kind = fault::how::left;
  for (const int peer : all.comes)
    if (all.begins && has_left(peer)) why.culprits.add(peer);
  if (departures() != now.departures_before) return;
  if (why.culprits.lowest() >= 0) end_and_raise(why);
  rank_set gone;
  why.kind = fault::how::ended;
  if (hub_->find_gone(gone)) {
    hub_->poll();  // whether they left before they ended
    for (const std::vector<int>* some : {&all.comes, &all.goes})
      for (const int peer : *some)
        if (gone.has(members_[static_cast<std::size_t>(peer)]) && !has_left(peer))
          why.culprits.add(peer);
  }
  if (why.culprits.lowest() >= 0) {
    std::snprintf(why.cause, sizeof why.cause, "the process of rank %d ended in the group",
                  why.culprits.lowest());
    end_and_raise(why);
  }
  if (!is_late) return;
  why.kind = fault::how::late;
  {
    const std::lock_guard<std::mutex> lock(lock_);
    why.culprits = to_blame(size_, rank_, all.ranks(), [this](int peer, rank_set& by) {
      by = waits_[static_cast<std::size_t>(peer)];
      return by.lowest() >= 0;
    });
  }
  end_and_raise(why);
}

// Where nobody ran for the whole of a deadline, all hear of each other first.
void mpi_link::look_around(const wait_state& now, std::int64_t& told) {
  if (told == 0 && is_met_ && now.waited >= timeout_ns_ / 2) {
    told = now_ns();
    tell_waits(now.all);
  }
  raise_if_over(now, now.waited >= timeout_ns_ && (!is_met_ || now_ns() - told >= word_ns));
}

void mpi_link::look_around(const fault& doing, const rank_set& waits_for, std::int64_t waited,
                           std::int64_t& told) {
  hub_->poll();
  raise_if_failed();
  awaited all;
  for (int peer = 0; peer < size_; ++peer)
    if (waits_for.has(peer)) all.comes.push_back(peer);
  look_around({all, doing, waited, departures()}, told);
}

rank_set mpi_link::awaited::ranks() const {
  rank_set some;
  for (const int peer : comes.empty() ? goes : comes) some.add(peer);
  return some;
}

void mpi_link::tell_waits(const awaited& all) noexcept {
  notice one{number_, rank_, notice::what::waits, {}};
  one.why.culprits = all.ranks();
  hub_->tell(one, members_);
}

void mpi_link::tell_goes_on() noexcept {
  hub_->tell({number_, rank_, notice::what::goes_on, {}}, members_);
}

void mpi_link::end_broken(int peer, const fault& doing, const char* why) {
  fault broken = doing;
  broken.kind = fault::how::ended;
  broken.culprits.add(peer);
  core::copy_text(broken.cause, sizeof broken.cause, why);
  end_and_raise(broken);
}

void mpi_link::abandon(batch& all) noexcept {
  for (batch::message& one : all.all_) abandon(one.request);
  all.all_.clear();
}

void mpi_link::abandon(mpi_request& one) noexcept {
  if (hub_->mpi().cancel(&one)) return;
  try {
    hub_->bury({{one}, memory_});
  } catch (const std::bad_alloc&) {  // MPI's for ever
    static_cast<void>(new (std::nothrow) std::shared_ptr<char>(memory_));
  }
  one = mpi_request();
}

void mpi_link::note(const fault& why) noexcept {
  const std::lock_guard<std::mutex> lock(lock_);
  if (fault_.kind != fault::how::none) return;
  fault_ = why;
  failed_.store(true, std::memory_order_release);
  hub_->mpi().doubt();
}

void mpi_link::end(const fault& why) noexcept {
  if (failed_) return;
  note(why);
  hub_->tell({number_, rank_, notice::what::ended, why}, members_);
}

void mpi_link::end_and_raise(const fault& why) {
  end(why);
  raise_if_failed();  // another's, if that came first
  why.raise();
}

void mpi_link::read(const notice& one) noexcept {
  if (one.kind == notice::what::ended) return note(one.why);
  if (one.from < 0 || one.from >= size_) return;
  if (one.kind != notice::what::left) {
    const std::lock_guard<std::mutex> lock(lock_);
    waits_[static_cast<std::size_t>(one.from)] = one.why.culprits;  // none: it goes on
    return;
  }
  departures_.fetch_add(1, std::memory_order_release);
  left_[static_cast<std::size_t>(one.from)].store(true, std::memory_order_release);
}

bool mpi_link::failed(fault& why) const noexcept {
  hub_->poll();
  if (!failed_.load(std::memory_order_acquire)) return false;
  const std::lock_guard<std::mutex> lock(lock_);
  why = fault_;
  return true;
}

// While ranks meet: what ended the group for one that has met all is for the first call, since all
// have sent what the others need to meet it.
void mpi_link::raise_if_unmade() const {
  fault known;
  if (!failed(known)) return;
  if (known.kind == fault::how::late || known.kind == fault::how::ended) known.raise();
}

void mpi_link::raise_if_failed() const {
  fault known;
  if (!failed_.load(std::memory_order_acquire)) return;
  failed(known);
  known.raise();
}

}  // namespace velo::comm
