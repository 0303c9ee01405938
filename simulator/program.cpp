#include "attest/simulator/program.h"

namespace attest {

const char* to_string(Step::Kind kind) {
  switch (kind) {
    case Step::Kind::clear:
      return "clear";
    case Step::Kind::copy:
      return "copy";
    case Step::Kind::commit:
      return "commit";
    case Step::Kind::wait:
      return "wait";
    case Step::Kind::barrier:
      return "barrier";
    case Step::Kind::warp_barrier:
      return "warp_barrier";
    case Step::Kind::load_query:
      return "load_query";
    case Step::Kind::scores:
      return "scores";
    case Step::Kind::mask:
      return "mask";
    case Step::Kind::softmax:
      return "softmax";
    case Step::Kind::output:
      return "output";
    case Step::Kind::finish:
      return "finish";
    case Step::Kind::stage:
      return "stage";
    case Step::Kind::store:
      return "store";
  }
  return "?";
}

}  // namespace attest
