#include "attest/gpu/table_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "api_numerics.h"
#include "attest/problem/error.h"
#include "attest/problem/text.h"

namespace attest {
namespace {

constexpr std::size_t message_bytes = 4 << 10, plan_bytes = 1 << 20;

// What a function leaves for a person: one line of ASCII, whatever it wrote.
class Message {
 public:
  attest_text* text() { return &text_; }
  std::string words() {
    bytes_.back() = '\0';
    std::string words(bytes_.data());
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c < 0x20 || c == 0x7F; }, '?');  // signed: above 0x7F too
    return words;
  }

 private:
  std::array<char, message_bytes> bytes_{};
  attest_text text_{bytes_.data(), bytes_.size()};
};

// "<field>: <value> <limit>", as InvalidInput says it; what is no such line is the limit of the kernel's options, which
// it may repeat at any length.
[[noreturn]] void throw_invalid(const std::string& said, const std::string& options) {
  const std::string words = shortened(said, 500);
  const std::size_t colon = words.find(": "), space = words.find(' ', colon + 2);
  if (colon == std::string::npos || space == std::string::npos)
    throw InvalidInput("kernel", fmt::format("'{}'", options), words.empty() ? "is refused by the kernel" : words);
  throw InvalidInput(words.substr(0, colon), words.substr(colon + 2, space - colon - 2), words.substr(space + 1));
}

[[noreturn]] void throw_status(const char* function, std::int32_t status, Message& message,
                               const std::string& options) {
  const std::string words = message.words();
  switch (status) {
    case ATTEST_INVALID:
      throw_invalid(words, options);
    case ATTEST_LOST:
      throw KernelLost(words.empty() ? fmt::format("{}() gave ATTEST_LOST and no message", function) : words);
    case ATTEST_NO_ENVIRONMENT:
      throw EnvironmentError(words.empty() ? fmt::format("{}() finds something missing and does not say what", function)
                                           : words);
    case ATTEST_UNSUPPORTED:
      throw std::runtime_error(fmt::format("{}() refuses what supports() takes: {}", function, words));
    case ATTEST_FAILED:
      throw std::runtime_error(words.empty() ? fmt::format("{}() gave ATTEST_FAILED and no message", function) : words);
    default:
      throw std::runtime_error(fmt::format("{}() gave status {}, which is none of 0 to {}: {}", function, status,
                                           static_cast<int>(ATTEST_NO_ENVIRONMENT), words));
  }
}

void collect_hazard(void* host, const char* name) {
  auto& hazards = *static_cast<std::vector<std::string>*>(host);
  const std::string word = name ? name : "a hazard without a name";
  if (std::find(hazards.begin(), hazards.end(), word) == hazards.end()) hazards.push_back(word);
}

bool all_lengths_equal(const Problem& p) {
  if (!p.seqused_k.empty()) return false;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const auto at = static_cast<std::size_t>(b);
    if ((p.varlen_q.empty() ? p.seqlen_q : p.varlen_q[at]) != (p.varlen_k.empty() ? p.seqlen_k : p.varlen_k[at]))
      return false;
  }
  return true;
}

class TableKernel : public Kernel {
 public:
  TableKernel(const attest_kernel_api* api, std::string options, std::unique_ptr<RunPlace> place)
      : TableKernel(read_api(api), nullptr, std::move(place)) {
    options_ = std::move(options);
    if (api_.create == nullptr && !options_.empty())
      throw InvalidInput("kernel", fmt::format("'{}'", options_), "follows the name of a kernel that takes no options");
    if (api_.create == nullptr) return;
    Message message;
    const auto destroy = std::exchange(api_.destroy, nullptr);  // what is not made is not destroyed
    if (const std::int32_t status = api_.create(options_.c_str(), &self_, message.text()); status != ATTEST_OK)
      throw_status("create", status, message, options_);
    api_.destroy = destroy;
  }
  TableKernel(const attest_kernel_api& api, void* self, std::unique_ptr<RunPlace> place)
      : api_(api),
        record_(read_record(api_)),
        capability_(read_capability(record_)),
        place_(std::move(place)),
        self_(self) {
    if (api_.forward == nullptr) throw InvalidInput("forward", "nothing", "stands in the table, and it computes O");
    if (capability_.offers_gradients && api_.backward == nullptr)
      throw InvalidInput("backward", "nothing", "stands in the table, and the record offers gradients");
  }
  ~TableKernel() override {
    if (api_.destroy != nullptr) api_.destroy(self_);
  }
  TableKernel(const TableKernel&) = delete;
  TableKernel& operator=(const TableKernel&) = delete;

  const Capability& capability() const override { return capability_; }

  Numerics numerics(const Case& c) const override {
    Numerics n = numerics_of_scheme(record_.arithmetic, c);
    if (api_.numerics == nullptr) return n;
    attest_numerics told = to_api(n);
    call("numerics", c,
         [&](const attest_problem& problem, attest_text* text) { return api_.numerics(self_, &problem, &told, text); });
    return numerics_of(told, n.name);
  }

  std::optional<std::string> unsupported(const Case& c) const override {
    if (auto undeclared = outside_the_record(c)) return undeclared;
    if (api_.supports == nullptr) return std::nullopt;
    Message why_not;
    const attest_problem problem = to_api(c);
    const std::int32_t status = api_.supports(self_, &problem, why_not.text());
    if (status == ATTEST_OK) return std::nullopt;
    if (status != ATTEST_UNSUPPORTED) throw_status("supports", status, why_not, options_);
    const std::string words = why_not.words();
    return words.empty() ? "the kernel gives no reason" : words;
  }

  std::optional<std::string> plan(const Case& c) const override {
    if (api_.plan == nullptr) return std::nullopt;
    std::string json(plan_bytes, '\0');
    const attest_problem problem = to_api(c);
    attest_text text{json.data(), json.size()};
    const std::int32_t status = api_.plan(self_, &problem, &text);
    json.back() = '\0';
    json.resize(std::strlen(json.c_str()));
    if (status != ATTEST_OK)
      throw std::runtime_error(fmt::format("plan() gave status {}: {}", status, json.substr(0, message_bytes)));
    return json.empty() ? std::nullopt : std::make_optional(std::move(json));
  }

  RunReport run(const Case& c, const ForwardArgs& args) override {
    return enter(c, args, ATTEST_PASS_FORWARD,
                 [&](const PlaceOfRun& place, attest_forward& shared) { forward(c, args, place, shared); });
  }

  std::vector<double> device_seconds(const Case& c, const ForwardArgs& args, int repeats) override {
    std::vector<std::string> hazards;
    const std::int64_t workspace_bytes = ask_workspace(c, ATTEST_PASS_FORWARD);
    return place_->device_seconds(
        memory_of(args), workspace_bytes,
        [&](const PlaceOfRun& place) { forward(c, args, place, shared_of(place, workspace_bytes, hazards)); }, repeats);
  }

  RunReport run_backward(const Case& c, const BackwardArgs& args) override {
    return enter(c, args.forward, ATTEST_PASS_BACKWARD, [&](const PlaceOfRun& place, attest_forward& shared) {
      const BackwardArgs there = relocated(args, place.at);
      attest_forward forward = to_api(c, there.forward);
      take_place(forward, shared);
      attest_backward moved = to_api(c, there, forward);
      call_guarded("backward", c, moved, [&](const attest_problem& problem, attest_text* text) {
        return api_.backward(self_, &problem, &moved, text);
      });
    });
  }

 private:
  static void take_place(attest_forward& args, const attest_forward& shared) {
    args.workspace = shared.workspace;
    args.workspace_bytes = shared.workspace_bytes;
    args.stream = shared.stream;
    args.hazard = shared.hazard;
    args.host = shared.host;
  }

  static std::span<const MemoryRange> memory_of(const ForwardArgs& args) {
    return {args.memory, static_cast<std::size_t>(args.num_memory_ranges)};
  }

  static attest_forward shared_of(const PlaceOfRun& place, std::int64_t workspace_bytes,
                                  std::vector<std::string>& hazards) {
    attest_forward shared{};
    shared.workspace = place.workspace;
    shared.workspace_bytes = workspace_bytes;
    shared.stream = place.stream;
    shared.hazard = collect_hazard;
    shared.host = &hazards;
    return shared;
  }

  void forward(const Case& c, const ForwardArgs& args, const PlaceOfRun& place, const attest_forward& shared) {
    attest_forward moved = to_api(c, relocated(args, place.at));
    take_place(moved, shared);
    call_guarded("forward", c, moved, [&](const attest_problem& problem, attest_text* text) {
      return api_.forward(self_, &problem, &moved, text);
    });
  }

  // One pass in its place: workspace, stream and hazards are the same for both.
  template <class Pass>
  RunReport enter(const Case& c, const ForwardArgs& args, attest_pass which, Pass pass) {
    std::vector<std::string> hazards;
    const std::int64_t workspace_bytes = ask_workspace(c, which);
    RunReport report = place_->run(memory_of(args), workspace_bytes, [&](const PlaceOfRun& place) {
      attest_forward shared = shared_of(place, workspace_bytes, hazards);
      pass(place, shared);
    });
    report.hazards.insert(report.hazards.end(), hazards.begin(), hazards.end());
    return report;
  }

  std::int64_t ask_workspace(const Case& c, attest_pass pass) const {
    if (api_.workspace == nullptr) return 0;
    std::int64_t bytes = 0;
    call("workspace", c, [&](const attest_problem& problem, attest_text* text) {
      return api_.workspace(self_, &problem, pass, &bytes, text);
    });
    if (bytes < 0 || bytes > place_->most_workspace_bytes())
      throw std::runtime_error(
          fmt::format("workspace: {} bytes is outside 0 to {}", bytes, place_->most_workspace_bytes()));
    return bytes;
  }

  template <class Function>
  void call(const char* name, const Case& c, Function function) const {
    Message message;
    const attest_problem problem = to_api(c);
    if (const std::int32_t status = function(problem, message.text()); status != ATTEST_OK)
      throw_status(name, status, message, options_);
  }

  // And the arguments are as they were.
  template <class Args, class Function>
  void call_guarded(const char* name, const Case& c, const Args& args, Function function) const {
    const Args before = args;
    call(name, c, function);
    if (std::memcmp(&before, &args, sizeof args) != 0)
      throw std::runtime_error(fmt::format("{}() changed the arguments that it was handed", name));
  }

  std::optional<std::string> outside_the_record(const Case& c) const {
    const Problem& p = c.problem;
    const auto& dtypes = capability_.dtypes;
    if (std::find(dtypes.begin(), dtypes.end(), p.dtype) == dtypes.end())
      return fmt::format("dtype: {} is none that the kernel takes", to_string(p.dtype));
    if (c.backward && !capability_.offers_gradients) return "backward: the kernel offers no gradients";
    if (const std::uint64_t missing = features_of(c) & ~record_.features; missing != 0)
      return fmt::format("{}: none of the features that the kernel declares", feature_word(missing & -missing));
    if (p.causal != Causal::none && (record_.causal >> static_cast<int>(p.causal) & 1) == 0 &&
        !(record_.causal != 0 && all_lengths_equal(p)))
      return fmt::format("causal: {} is no alignment that the kernel declares", to_string(p.causal));
    return std::nullopt;
  }

  attest_kernel_api api_;
  attest_capability record_;
  Capability capability_;
  std::string options_;
  std::unique_ptr<RunPlace> place_;
  void* self_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_table_kernel(const attest_kernel_api* api, const std::string& options,
                                          std::unique_ptr<RunPlace> place) {
  return std::make_unique<TableKernel>(api, options, std::move(place));
}

std::unique_ptr<Kernel> make_table_kernel(const attest_kernel_api& api, void* self, std::unique_ptr<RunPlace> place) {
  return std::make_unique<TableKernel>(api, self, std::move(place));
}

}  // namespace attest
