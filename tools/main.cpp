#include "commands.h"

int main(int argc, char** argv) {
  using namespace attest::tools;
  const Command commands[] = {check_command(),   fuzz_command(),    predict_command(), reference_command(),
                              mutants_command(), kernels_command(), devices_command(), plans_command(),
                              models_command(),  doctor_command()};
  return run_program(commands, argc, argv);
}
