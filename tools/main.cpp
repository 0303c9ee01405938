#include "commands.h"

int main(int argc, char** argv) {
  using namespace attest::tools;
  const Command commands[] = {doctor_command(), reference_command()};
  return run_program(commands, argc, argv);
}
