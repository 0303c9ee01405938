#include <csignal>
#include <string_view>

#include "attest/fuzz/kernels.h"
#include "attest/fuzz/worker.h"
#include "attest/problem/child.h"
#include "commands.h"
#include "measuring.h"

int main(int argc, char** argv) {
  using namespace attest::tools;
  ::signal(SIGCHLD, SIG_DFL);  // where it is ignored, which programs inherit, nobody learns how a child ended
  // What commands that run a kernel start this program as; no commands of the user's.
  if (argc == 2 && attest::WorkerProgram{}.arguments.front() == argv[1])
    return attest::serve_worker(attest::make_kernel);
  if (argc == 3 && std::string_view(argv[1]) == measure_worker_argument) return make_marked_calls(argv[2]);
  attest::become_subreaper();  // a kernel under test may start what it likes
  const Command commands[] = {check_command(),   fuzz_command(),      predict_command(),   tune_command(),
                              measure_command(), calibrate_command(), reference_command(), mutants_command(),
                              kernels_command(), devices_command(),   plans_command(),     models_command(),
                              doctor_command(),  audit_command(),     bench_command(),     nightly_command(),
                              merge_command(),   report_command()};
  return run_program(commands, argc, argv);
}
