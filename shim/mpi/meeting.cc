// SPDX-License-Identifier: Apache-2.0
#include "meeting.h"

#include <sched.h>
#include <unistd.h>

#include <chrono>

#include "bootstrap.h"
#include "process.h"
#include "world.h"

namespace carillon::shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kForwardUs = 100000;

[[noreturn]] void end_job(const Meeting& meeting) {
  usleep(kForwardUs);  // launchers drop what they have not yet forwarded
  host().Abort(meeting.comm, 1);
  _exit(1);
}

constexpr char kMissing[] =
    "rank %d has waited %d s in %s for the interposer of other ranks; start all ranks with "
    "it (carillon run, or carillon exec behind mpirun or srun), or none%s";
constexpr char kJobsToo[] = "; other jobs with it and CARILLON_MERGED=on, or CARILLON_MERGED=off";

}  // namespace

// Mostly all ranks have the same settings: then rank 0's line comes first, and alone.
[[noreturn]] void end_job_over_settings(const Meeting& meeting, const char* what) {
  if (meeting.rank != 0) usleep(2 * kForwardUs);
  say("%s", what);
  end_job(meeting);
}

std::vector<Hello> exchange(const Meeting& meeting, const Hello& mine) {
  Bootstrap bootstrap{meeting.comm, meeting.rank, meeting.size};
  const Settings& settings = meeting.settings;
  const crl_oob_t oob = bootstrap.oob();
  std::vector<Hello> all(static_cast<std::size_t>(meeting.size));
  void* request = nullptr;
  if (oob.allgather_post(oob.arg, &mine, all.data(), sizeof(Hello), &request) != 0) {
    end_job(meeting);
  }
  const auto begin = Clock::now();
  const char* const remedy = meeting.joins ? kJobsToo : "";
  bool warned = false;
  for (int status = 1; status != 0;) {
    // Before the look: who is held up behind it has not seen who answered meanwhile.
    const auto waited =
        std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - begin).count();
    status = oob.allgather_test(oob.arg, request);
    if (status < 0) end_job(meeting);
    if (status == 0) break;
    progress_worlds();  // they may wait for something else first
    sched_yield();
    if (waited >= settings.join_timeout_s) {
      say(kMissing, meeting.rank, settings.join_timeout_s, meeting.function, remedy);
      end_job(meeting);
    }
    if (!warned && waited >= settings.warn_after_s) {
      warned = true;
      if (meeting.rank < 2) {
        say(kMissing, meeting.rank, settings.warn_after_s, meeting.function, remedy);
      }
    }
  }
  for (const Hello& hello : all) {
    if (hello.magic == Hello::kMagic) continue;
    say("rank %d got an answer in %s that is not an interposer's; start all ranks with the "
        "same version of carillon, or none",
        meeting.rank, meeting.function);
    end_job(meeting);
  }
  return all;
}

bool is_of_init(const Meeting& meeting) { return meeting.comm == g_host.comm_world; }

std::string scope_of(const Meeting& meeting) {
  if (is_of_init(meeting) && !process().beside_sessions) return "off on all ranks";
  return "a communicator of " + std::to_string(meeting.size) + " processes is left to the MPI";
}

}  // namespace carillon::shim
