// A plug-in kernel in C++17: derive from attest::plugin::Kernel, write ATTEST_KERNEL(MyKernel) once, and the library
// exports the table of kernel_api.h. What the class throws becomes an error of the call. Header-only; needs nothing of
// attest but kernel_api.h. The guide is docs/plugins.md.
//
//     class Mine : public attest::plugin::Kernel {
//      public:
//       static attest_capability capability();
//       void forward(const attest_problem& problem, const attest_forward& args) override;
//     };
//     ATTEST_KERNEL(Mine)
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "attest/gpu/kernel_api.h"

namespace attest::plugin {

/// Thrown for what the user wrote after the library's name: "<field>: <value> <limit>".
class InvalidOption : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Thrown where this process can run nothing more, such as after an illegal address on a GPU.
class Lost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown by a constructor for want of a driver, a GPU or a library.
class NoEnvironment : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What an author writes. Beside these a class has
///   static attest_capability capability();      such as an edited plain_capability(); struct_size need not be set
/// and is made from nothing, or from `const char* options`, the text after "libmine.so:".
class Kernel {
 public:
  Kernel() = default;
  virtual ~Kernel() = default;
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  /// Why the kernel refuses a problem that its capability admits, by the field's name; none if it takes it.
  virtual std::optional<std::string> unsupported(const attest_problem& /*problem*/) { return std::nullopt; }
  /// Changes what is otherwise than the capability's scheme of rounding.
  virtual void numerics(const attest_problem& /*problem*/, attest_numerics& /*numerics*/) {}
  virtual std::int64_t workspace_bytes(const attest_problem& /*problem*/, attest_pass /*pass*/) { return 0; }
  virtual void forward(const attest_problem& problem, const attest_forward& args) = 0;
  virtual void backward(const attest_problem& /*problem*/, const attest_backward& /*args*/) {
    throw std::logic_error("backward: this kernel offers no gradients");
  }
  /// A --plan file's JSON for `attest predict --kernel`; empty: none.
  virtual std::string plan(const attest_problem& /*problem*/) { return {}; }
};

/// O and LSE on the CPU in base e, rows without keys at -inf, flash arithmetic: what most records start from.
/// `dtypes`: bits (1 << attest_dtype). `name` must stay valid.
inline attest_capability plain_capability(const char* name, std::uint32_t dtypes) {
  attest_capability record{};
  record.struct_size = sizeof record;
  record.name = name;
  record.dtypes = dtypes;
  record.channels = ATTEST_CHANNEL_O | ATTEST_CHANNEL_LSE;
  record.bitwise = ATTEST_BITWISE_REPEAT;
  record.lse_base = 2.718281828459045;
  record.lse_of_empty_row = -static_cast<double>(__builtin_inff());
  return record;
}

/// The first value of row (a, b, c) of a tensor of T: those of the last dimension follow, strides[3] apart.
template <class T>
T* row(const attest_tensor& tensor, std::int64_t a, std::int64_t b, std::int64_t c) {
  return static_cast<T*>(tensor.data) + a * tensor.strides[0] + b * tensor.strides[1] + c * tensor.strides[2];
}

namespace detail {

inline void leave(attest_text* text, const char* words) noexcept {
  if (text == nullptr || text->data == nullptr || text->capacity == 0) return;
  const std::size_t wanted = std::strlen(words), length = wanted < text->capacity ? wanted : text->capacity - 1;
  std::memcpy(text->data, words, length);
  text->data[length] = '\0';
}

// No exception leaves a function of the table.
template <class Call>
std::int32_t guarded(attest_text* message, Call call) noexcept {
  try {
    return call();
  } catch (const InvalidOption& error) {
    leave(message, error.what());
    return ATTEST_INVALID;
  } catch (const Lost& error) {
    leave(message, error.what());
    return ATTEST_LOST;
  } catch (const NoEnvironment& error) {
    leave(message, error.what());
    return ATTEST_NO_ENVIRONMENT;
  } catch (const std::exception& error) {
    leave(message, error.what());
  } catch (...) {
    leave(message, "an exception that is no std::exception");
  }
  return ATTEST_FAILED;
}

/// The host's struct in this header's edition: what both know of it, and 0 in what an older host has not.
template <class Struct>
Struct in_this_edition(const Struct& theirs) noexcept {
  Struct mine{};
  std::memcpy(&mine, &theirs, theirs.struct_size < sizeof mine ? theirs.struct_size : sizeof mine);
  mine.struct_size = sizeof mine;
  return mine;
}

/// Back into the host's, of which no byte beyond its own edition is touched.
template <class Struct>
void tell(const Struct& mine, Struct& theirs) noexcept {
  const std::uint32_t size = theirs.struct_size;
  std::memcpy(&theirs, &mine, size < sizeof mine ? size : sizeof mine);
  theirs.struct_size = size;
}

inline Kernel& kernel_of(void* self) { return *static_cast<Kernel*>(self); }

inline void destroy(void* self) { delete static_cast<Kernel*>(self); }

inline std::int32_t supports(void* self, const attest_problem* problem, attest_text* why_not) {
  return guarded(why_not, [&] {
    const std::optional<std::string> why = kernel_of(self).unsupported(in_this_edition(*problem));
    if (why) leave(why_not, why->c_str());
    return why ? ATTEST_UNSUPPORTED : ATTEST_OK;
  });
}

inline std::int32_t numerics(void* self, const attest_problem* problem, attest_numerics* of, attest_text* message) {
  return guarded(message, [&] {
    attest_numerics mine = in_this_edition(*of);
    kernel_of(self).numerics(in_this_edition(*problem), mine);
    tell(mine, *of);
    return ATTEST_OK;
  });
}

inline std::int32_t workspace(void* self, const attest_problem* problem, std::int32_t pass, std::int64_t* bytes,
                              attest_text* message) {
  return guarded(message, [&] {
    *bytes = kernel_of(self).workspace_bytes(in_this_edition(*problem), static_cast<attest_pass>(pass));
    return ATTEST_OK;
  });
}

inline std::int32_t forward(void* self, const attest_problem* problem, const attest_forward* args,
                            attest_text* message) {
  return guarded(message, [&] {
    kernel_of(self).forward(in_this_edition(*problem), in_this_edition(*args));
    return ATTEST_OK;
  });
}

inline std::int32_t backward(void* self, const attest_problem* problem, const attest_backward* args,
                             attest_text* message) {
  return guarded(message, [&] {
    attest_backward mine = in_this_edition(*args);
    const attest_forward of_forward = in_this_edition(*mine.forward);
    mine.forward = &of_forward;
    kernel_of(self).backward(in_this_edition(*problem), mine);
    return ATTEST_OK;
  });
}

inline std::int32_t plan(void* self, const attest_problem* problem, attest_text* json) {
  return guarded(json, [&] {
    const std::string text = kernel_of(self).plan(in_this_edition(*problem));
    if (text.size() >= json->capacity) throw std::length_error("plan: longer than the host has room for");
    leave(json, text.c_str());
    return ATTEST_OK;
  });
}

}  // namespace detail

/// For a kernel that the user can set nothing of. Throws InvalidOption.
inline void take_no_options(const char* options) {
  if (options != nullptr && *options != '\0')
    throw InvalidOption("kernel: '" + std::string(options) + "' follows the name of a kernel that takes no options");
}

/// A table's create(): *self = make(), a Kernel*.
template <class Make>
std::int32_t create(void** self, attest_text* message, Make make) {
  return detail::guarded(message, [&] {
    Kernel* const made = make();
    *self = made;
    return ATTEST_OK;
  });
}

/// The table of a class of Kernel, made by `create`, which declares `capability`.
inline attest_kernel_api table_of(const attest_capability* capability, decltype(attest_kernel_api::create) create) {
  return {sizeof(attest_kernel_api), ATTEST_KERNEL_ABI, capability,       create,
          detail::destroy,           detail::supports,  detail::numerics, detail::workspace,
          detail::forward,           detail::backward,  detail::plan};
}

/// What ATTEST_KERNEL exports of a class; NULL if its capability() throws.
template <class K>
const attest_kernel_api* api() noexcept {
  try {
    static const attest_capability capability = [] {
      attest_capability record = K::capability();
      record.struct_size = sizeof record;
      return record;
    }();
    static const attest_kernel_api table =
        table_of(&capability, [](const char* options, void** self, attest_text* message) {
          return create(self, message, [&]() -> Kernel* {
            if constexpr (std::is_constructible_v<K, const char*>) {
              return new K(options);
            } else {
              take_no_options(options);
              return new K;
            }
          });
        });
    return &table;
  } catch (...) {
    return nullptr;
  }
}

}  // namespace attest::plugin

/// Once in a library, outside every namespace.
#define ATTEST_KERNEL(CLASS)                                                                       \
  extern "C" ATTEST_EXPORT const attest_kernel_api* attest_kernel(uint32_t /*host_abi_version*/) { \
    return attest::plugin::api<CLASS>();                                                           \
  }
