#include "attest/fuzz/worker.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <omp.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "attest/fuzz/generators.h"
#include "attest/fuzz/in_flight.h"
#include "attest/fuzz/inspect.h"
#include "attest/gpu/guarded.h"
#include "attest/gpu/run_place.h"
#include "attest/problem/error.h"
#include "attest/problem/exit_code.h"
#include "watched_kernel.h"
#include "wire.h"

namespace attest {
namespace {

using wire::Json;

// Out of the way of a kernel that thinks descriptors 3 and 4 its own, and closed in what it executes.
int move_up(int descriptor) {
  constexpr int low = 64;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, low);
  if (moved < 0) return descriptor;
  ::close(descriptor);
  return moved;
}

// What the kernel prints goes to stderr, at once, and disturbs nobody who reads stdout.
void join_stdout_to_stderr() {
  if (::fcntl(STDERR_FILENO, F_GETFD) < 0) {
    const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (null >= 0) ::dup2(null, STDERR_FILENO);
  }
  ::dup2(STDERR_FILENO, STDOUT_FILENO);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

void settle() {
  for (const int signal : {SIGQUIT, SIGTTOU}) ::signal(signal, SIG_IGN);  // Child ignores what ends attest itself
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_UNBLOCK, &all, nullptr);
  const rlimit no_core{0, 0};  // a crash is expected here; `check --in-process` is for a debugger
  ::setrlimit(RLIMIT_CORE, &no_core);
  std::ofstream("/proc/self/oom_score_adj") << "1000";  // out of memory is the worker's end, not the campaign's
  join_stdout_to_stderr();
}

class Server {
 public:
  Server(int socket, FlightRecord& record, const KernelByName& make_kernel)
      : socket_(socket), record_(record), make_kernel_(make_kernel) {}

  void serve() {
    const std::optional<Json> hello = receive();
    if (!hello || !start(*hello)) return;
    while (const std::optional<Json> request = receive()) {
      handle(*request);
      record_.own_since_ns = 0;
      record_.property = -1;
    }
  }

 private:
  // The next request; none where the parent is gone.
  std::optional<Json> receive() {
    for (;;) {
      if (std::optional<Json> message = unframer_.next()) return message;
      char bytes[1 << 14];
      const ssize_t got = ::recv(socket_, bytes, sizeof bytes, 0);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return std::nullopt;
      unframer_.add({bytes, static_cast<std::size_t>(got)});
    }
  }

  void reply(const Json& message) {
    if (::getpid() != pid_) ::_exit(0);  // the kernel forked, and came back twice
    if (!wire::send(socket_, message)) ::_exit(0);
  }

  // From within the kernel's call, which the parent finds in the record, as it does after a crash.
  [[noreturn]] void end_lost(const char* what) {
    try {
      reply({{"lost", what}});
    } catch (const std::bad_alloc&) {  // the end of the process says it as well
    }
    std::fflush(nullptr);
    ::_exit(exit_kernel_crashed);
  }

  bool start(const Json& hello) {
    name_ = hello.at("kernel").get<std::string>();
    seed_ = hello.at("seed").get<std::uint64_t>();
    const Json& budget = hello.at("budget");
    budget_ = {budget.at(0).get<std::int64_t>(), budget.at(1).get<std::int64_t>(), budget.at(2).get<std::int64_t>()};
    if (const int threads = hello.at("threads").get<int>(); threads > 0) omp_set_num_threads(threads);
    try {
      const ProcessLimits limits;
      std::unique_ptr<Kernel> kernel = make_kernel_(name_);
      if (const std::string lowered = limits.restored(); !lowered.empty())
        throw KernelLost("it changes the limits of its process, " + lowered);
      kernel_ = std::make_unique<WatchedKernel>(std::move(kernel), [this](const char* what) { end_lost(what); });
    } catch (const InvalidInput& error) {
      reply({{"invalid", error.what()}, {"field", error.field()}});
      return false;
    } catch (const KernelLost& error) {
      reply({{"lost", error.what()}});
      return false;
    } catch (const std::exception& error) {
      reply({{"refused", error.what()}});
      return false;
    }
    reply({{"ready", true}});
    return true;
  }

  // What the kernel throws is a verdict; what comes up here is a bug in attest, and the parent says so.
  void handle(const Json& request) {
    try {
      if (request.contains("run"))
        run(request.at("run").get<std::uint64_t>());
      else if (request.contains("judge"))
        judge_one(request);
      else if (request.contains("describe"))
        reply({{"done", 0}, {"capability", Json(to_json(kernel_->capability()))}});
      else if (request.contains("plan"))
        tell_plan(wire::to_case(request.at("plan")));
      else if (request.contains("time"))
        tell_time(wire::to_case(request.at("time")), request.at("repeats").get<int>());
      else
        check(request);
    } catch (const KernelThrew& error) {  // before any property began
      reply({{"threw", wire::from_verdict(thrown(error))}});
    } catch (const InvalidInput& error) {  // what the kernel was asked for turns out to be nothing on this case
      reply({{"invalid", error.what()}, {"field", error.field()}});
    } catch (const std::bad_alloc&) {  // the kernel's own would be a verdict
      reply({{"memory", true}});
    } catch (const std::exception& error) {
      reply({{"bug", error.what()}});
    }
  }

  void run(std::uint64_t k) {
    const Case c = generate_case(seed_, k, budget_);
    if (kernel_->unsupported(c)) {
      reply({{"done", k}, {"unsupported", true}});
      return;
    }
    Trial trial(*kernel_, buffers_, c);
    for (const Property* property : properties_for(seed_, k, c)) {
      const Verdict verdict = judge(*property, trial);
      if (verdict.status == Status::passed) continue;
      reply({{"property", property->name}, {"verdict", wire::from_verdict(verdict)}});  // a later one may crash
    }
    reply({{"done", k}});
  }

  void judge_one(const Json& request) {
    const Case c = wire::to_case(request.at("case"));
    if (kernel_->unsupported(c)) {
      reply({{"done", 0}, {"unsupported", true}});
      return;
    }
    Trial trial(*kernel_, buffers_, c);
    const Verdict verdict = judge(property_named(request.at("judge").get<std::string>()), trial);
    reply({{"done", 0}, {"verdict", wire::from_verdict(verdict)}});
  }

  void tell_plan(const Case& c) {
    Json done = {{"done", 0}};
    if (const auto why = kernel_->unsupported(c))
      done["unsupported"] = *why;
    else if (const auto plan = kernel_->plan(c))
      done["plan"] = *plan;
    reply(done);
  }

  void tell_time(const Case& c, int repeats) {
    Json done = {{"done", 0}};
    if (const auto why = kernel_->unsupported(c)) {
      done["unsupported"] = *why;
    } else {
      ForwardBuffers buffers;  // of its own: what a case leaves in memory is no part of the next
      const CallTimes times = buffers.time(*kernel_, c, make_inputs(c), repeats);
      done["seconds"] = times.seconds;
      done["on_device"] = times.on_device;
    }
    reply(done);
  }

  void check(const Json& request) {
    CheckOptions options;
    options.the_case = wire::to_case(request.at("case"));
    options.property = request.at("check").get<std::string>();
    options.diffs = request.at("diffs").get<std::int64_t>();
    options.truth = request.at("truth").get<std::string>();
    options.dry_run = request.at("dry_run").get<bool>();
    options.kernel = name_;
    if (request.contains("mask")) {
      options.mask = true;
      options.mask_options = wire::to_mask_options(request.at("mask"));
    }
    const CheckResult result = run_check(*kernel_, options, [&](const Property& property, const Verdict& verdict) {
      reply({{"property", property.name}, {"verdict", wire::from_verdict(verdict)}});
    });
    Json done = {{"done", 0}, {"differences", Json::array()}};
    for (const Difference& difference : result.differences)
      done["differences"].push_back(wire::from_difference(difference));
    if (result.unsupported) done["unsupported"] = *result.unsupported;
    if (result.mask) done["mask"] = wire::from_mask_report(*result.mask);
    reply(done);
  }

  const int socket_;
  const pid_t pid_ = ::getpid();
  FlightRecord& record_;
  const KernelByName& make_kernel_;
  wire::Unframer unframer_;
  std::string name_;
  std::uint64_t seed_ = 0;
  Budget budget_;
  std::unique_ptr<Kernel> kernel_;
  ForwardBuffers buffers_;
};

}  // namespace

int serve_worker(const KernelByName& make_kernel) {
  const int socket = move_up(wire::socket_descriptor);
  void* const shared =
      ::mmap(nullptr, sizeof(FlightRecord), PROT_READ | PROT_WRITE, MAP_SHARED, wire::record_descriptor, 0);
  if (shared == MAP_FAILED) {
    std::fputs("attest: a worker is started by attest only\n", stderr);
    return 2;
  }
  ::close(wire::record_descriptor);  // the mapping stays, and no kernel writes to it through a descriptor
  settle();
  auto& record = *static_cast<FlightRecord*>(shared);
  set_flight_record(&record);
  hear_of_batches(renew_in_flight);
  guard_around_margins();
  Server(socket, record, make_kernel).serve();
  // Without destructors: whatever the kernel left behind must not look like a crash of a case.
  std::fflush(nullptr);
  ::_exit(0);
}

}  // namespace attest
