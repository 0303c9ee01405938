// A prediction as a page that a person understands: one file, no network, no other file.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "attest/simulator/report.h"

namespace attest {

/// The JSON object that the page draws: {"predict": to_json(report), and what the charts need beside it}. Simulates the
/// case at other lengths and without its swizzle, which takes some times as long as the report did.
nlohmann::ordered_json page_data(const SimulationReport& report);

/// The page. Names that came from outside are escaped, in its text and in the JSON inside it.
std::string html_report(const SimulationReport& report);

/// `text` as the content of an element or a quoted attribute.
std::string html_escaped(std::string_view text);

/// JSON that may stand inside a <script> element: no '<', nothing but ASCII.
std::string script_json(const nlohmann::ordered_json& json);

}  // namespace attest
