// A page in one file: what the pages of `predict --html`, `predict --sweep --html` and `tune --html` share.
#pragma once
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "attest/plan/kernel_plan.h"
#include "attest/problem/case.h"

namespace attest {

/// Text is escaped here and may hold anything.
struct PageText {
  std::string title, heading, place, headline;
};

/// A page of `text`, of the part of report_page that has its sections, and of the scripts that draw `data` into them:
/// those named, between the ones that every page has.
std::string html_page(const PageText& text, std::string_view sections, std::initializer_list<std::string_view> scripts,
                      const nlohmann::ordered_json& data);

/// case_words() with a proper sign between its lengths.
std::string page_words(const Case& c);
/// "128 × 64 tiles, 4 warps, 2 stages".
std::string page_tiles(const KernelPlan& plan);
/// A time with a proper micro sign, in one piece.
std::string page_time(double us);
/// "1.5 ×"
std::string page_times(double factor);
/// A report's bound in words: "the tensor cores".
std::string_view page_bound(std::string_view bound);

}  // namespace attest
