#include "attest/fuzz/kernels.h"
#include "attest/fuzz/worker.h"
#include "commands.h"

int main(int argc, char** argv) {
  using namespace attest::tools;
  // What fuzz, check and mutants start this program as; no command of the user's.
  if (argc == 2 && attest::WorkerProgram{}.arguments.front() == argv[1])
    return attest::serve_worker(attest::make_kernel);
  const Command commands[] = {check_command(),     fuzz_command(),    predict_command(), tune_command(),
                              reference_command(), mutants_command(), kernels_command(), devices_command(),
                              plans_command(),     models_command(),  doctor_command(),  audit_command()};
  return run_program(commands, argc, argv);
}
