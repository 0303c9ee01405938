// A kernel that a shared library brings.
#pragma once
#include <string>
#include <string_view>

#include "attest/gpu/kernel_api.h"

namespace attest {

/// "PATH" or "PATH:OPTIONS", as --kernel names a plug-in.
struct PluginSpec {
  std::string path, options;
};

/// Whether `spec` names a file and no kernel of attest's: it has a '/', or a name that ends in ".so".
bool is_plugin(std::string_view spec);
PluginSpec plugin_spec(std::string_view spec);

/// Throws InvalidInput naming `kernel` where there is no such file. Loads nothing.
void check_plugin_file(const std::string& path);

/// Loads the library into this process, for as long as it lives, and gives its table as it is. Throws InvalidInput
/// where there is no such file, and EnvironmentError, in one line, for what cannot be loaded, what exports no
/// attest_kernel and a table that is none of this attest's.
const attest_kernel_api* load_plugin(const std::string& path);

}  // namespace attest
