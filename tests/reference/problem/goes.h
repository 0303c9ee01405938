// Whether a process that a test does not own has ended.
#pragma once
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace attest {

/// Whether it runs no more within two seconds; nobody may be there to reap it.
inline bool goes(const std::string& pid) {
  for (int i = 0; i < 200; ++i) {
    std::ifstream stat("/proc/" + pid + "/stat");
    std::string number, name, state;
    if (!(stat >> number >> name >> state) || state == "Z" || state == "X") return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

}  // namespace attest
