// CASE on the command line: flags, --case FILE|'{json}', or --model NAME --seqlen N.
#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attest/problem/case.h"
#include "flags.h"

namespace attest::tools {

void declare_case_flags(Flags& flags);

/// The fields that the flags give, under the names of to_json(Case); those not given are left out. Throws InvalidInput
/// for values that cannot be read and flags that contradict each other. `seqlen_of_model` stands in for a --seqlen that
/// was not given beside --model.
nlohmann::ordered_json case_fields(const Flags& flags, std::optional<std::int64_t> seqlen_of_model = std::nullopt);

/// The case that the flags give, validated. Throws InvalidInput.
Case read_case(const Flags& flags);

/// The CASE flags that were given, in the order of --help.
std::vector<std::string> case_flags_given(const Flags& flags);

/// Refuses a word that is neither one of `names` nor, with a '/' or ending in .json, the path of a file; with the
/// nearest name.
void refuse_unknown(std::string_view field, const std::string& word, const std::vector<std::string>& names);

}  // namespace attest::tools
