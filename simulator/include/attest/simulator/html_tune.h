// A ranking of plans as a page that a person understands: one file, no network, no other file.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "attest/simulator/tune.h"

namespace attest {

/// The JSON object that the page of html_tune() draws: every plan that fits by what charts show of it, why the first
/// wins, and what was skipped. The table lists `top` plans and the named ones.
nlohmann::ordered_json tune_page_data(const TuneResult& result, int top);
std::string html_tune(const TuneResult& result, int top);

}  // namespace attest
