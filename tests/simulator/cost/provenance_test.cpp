// How counters were read, as files keep it and as people are told.
#include "attest/simulator/provenance.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "attest/problem/error.h"
#include "attest/simulator/measured_call.h"

namespace attest {
namespace {

using testing::ElementsAre;

Provenance all_that_is_known() {
  Provenance how;
  how.gpu = "NVIDIA H200/NVL", how.num_sms = 132, how.compute_capability = 90, how.gpc_sides = {0, 0, 1, 1};
  how.driver = "580.159.04", how.cuda = "13.0", how.date = "2026-11-30";
  how.via = Profiler::ncu, how.warm = false;
  how.command = "attest measure --panel --via ncu";
  return how;
}

// A panel's file of these comments, "# " before each, and a row.
MeasuredFile file_of(const std::vector<std::string>& comments, const std::vector<std::string>& behind = {}) {
  std::string text;
  for (const std::string& comment : comments) text += "# " + comment + "\n";
  text += "mechanism,kernel,case,launch,function,dram__bytes_read.sum\nm,sm80,{},0,f,1\n";
  for (const std::string& comment : behind) text += "# " + comment + "\n";
  return measured_from_csv(text, "panel.csv");
}

std::string message_of(const std::vector<std::string>& comments) {
  try {
    file_of(comments);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Provenance, IsALineAField) {
  EXPECT_EQ(to_comments(all_that_is_known()),
            "# gpu: NVIDIA H200/NVL\n# num_sms: 132\n# compute_capability: 90\n# gpc_sides: 0 0 1 1\n# driver: "
            "580.159.04\n# cuda: 13.0\n# date: 2026-11-30\n# via: ncu\n# caches: cold\n# command: attest measure "
            "--panel --via ncu\n");
  EXPECT_EQ(to_comments({}), "");
}

TEST(Provenance, ComesBackAsItWas) {
  Provenance other = all_that_is_known();
  other.via = Profiler::cupti, other.warm = true;
  for (const Provenance& how : {all_that_is_known(), other, Provenance{}}) {
    MeasuredFile file = file_of({});
    file.how = how;
    EXPECT_EQ(measured_from_csv(to_csv(file), "panel.csv").how, how) << to_text(how);
  }
}

TEST(Provenance, IsTakenFromAmongOtherComments) {
  const MeasuredFile file =
      file_of({"gpu:NVIDIA H200 ", "my GPU: mine", "through cupti, warm caches", "via", "  update: 3"},
              {" via :  ncu", "caches: cold", "how: so", "via: ncu"});
  Provenance how;
  how.gpu = "NVIDIA H200", how.via = Profiler::ncu, how.warm = false;
  EXPECT_EQ(file.how, how);
  EXPECT_THAT(file.comments,
              ElementsAre("my GPU: mine", "through cupti, warm caches", "via", "  update: 3", "how: so"));
}

TEST(Provenance, WhatCannotBeIsRefusedByTheField) {
  EXPECT_EQ(message_of({"how", "via: perf"}), "panel.csv: line 2: via: 'perf' is none of cupti, ncu");
  EXPECT_EQ(message_of({"caches: lukewarm"}), "panel.csv: line 1: caches: 'lukewarm' is none of cold, warm");
  for (const std::string field : {"num_sms", "compute_capability"})
    for (const std::string value : {"", "0", "-1", "9.0", "132 SMs", "x", "9223372036854775808"})
      EXPECT_EQ(message_of({fmt::format("{}: {}", field, value)}),
                fmt::format("panel.csv: line 1: {}: '{}' is no whole number above 0", field, value));
  for (const std::string field : {"num_sms", "compute_capability"})
    EXPECT_EQ(message_of({field + ": 0132"}),
              "panel.csv: line 1: " + field + ": '0132' is no whole number as such are written; 132 is");
  for (const std::string value : {"2", "0 2", "0  1", "01", "0,1", "-1", "0 1.0", "x"})
    EXPECT_EQ(message_of({"gpc_sides: " + value}),
              fmt::format("panel.csv: line 1: gpc_sides: '{}' is no list of 0 and 1 with a space between them", value));
  for (const std::string value : {"0", "1 0 1"}) EXPECT_EQ(message_of({"gpc_sides: " + value}), "");
  EXPECT_EQ(message_of({"num_sms: 1", "compute_capability: 9223372036854775807"}), "");
  for (const std::string field : {"gpu", "gpc_sides", "driver", "cuda", "date", "command"})
    EXPECT_EQ(message_of({field + ": "}), "panel.csv: line 1: " + field + ": '' is empty");
}

TEST(Provenance, AKeyThatIsNearlyOneIsRefused) {
  const std::pair<std::string, std::string> rows[] = {{"Via", "via"},
                                                      {"VIA ", "via"},
                                                      {"gpus", "gpu"},
                                                      {"GPU", "gpu"},
                                                      {"num sms", "num_sms"},
                                                      {"Num-SMs", "num_sms"},
                                                      {"num_sm", "num_sms"},
                                                      {"cache", "caches"},
                                                      {"commands", "command"},
                                                      {"gpc side", "gpc_sides"},
                                                      {"compute capability", "compute_capability"}};
  for (const auto& [key, meant] : rows)
    EXPECT_EQ(
        message_of({"how", key + ": 1"}),
        fmt::format("panel.csv: line 2: '{}' is none of the keys gpu, num_sms, compute_capability, gpc_sides, driver, "
                    "cuda, date, via, caches, command; {} is meant",
                    key.substr(0, key.find_last_not_of(' ') + 1), meant));
}

TEST(Provenance, AnEqualsSignIsNoColon) {
  for (const std::string comment : {"via=ncu", " via = ncu: always"})
    EXPECT_EQ(message_of({"how", comment}), "panel.csv: line 2: 'via=' is no key; 'via:' is meant");
  EXPECT_EQ(message_of({"Num SMs=132"}).find("panel.csv: line 1: 'Num SMs' is none of the keys"), 0u);
  const MeasuredFile file = file_of({"of 3=4 via: ncu", "command: attest --set a=b"});
  EXPECT_EQ(file.how.command, "attest --set a=b");
  EXPECT_EQ(file.comments, std::vector<std::string>{"of 3=4 via: ncu"});
}

TEST(Provenance, AFieldThatContradictsItselfIsRefused) {
  EXPECT_EQ(message_of({"caches: warm", "how", "caches: cold"}),
            "panel.csv: line 3: caches: 'cold' contradicts 'warm' of line 1; keep one of them");
  EXPECT_EQ(message_of({"gpu: A", "gpu: B"}),
            "panel.csv: line 2: gpu: 'B' contradicts 'A' of line 1; keep one of them");
  EXPECT_EQ(message_of({"num_sms: 132", "num_sms: 132"}), "");
}

TEST(Provenance, IsALineForPeople) {
  EXPECT_EQ(to_text(all_that_is_known()),
            "NVIDIA H200/NVL, 132 SMs of compute capability 9.0, GPCs on sides 0 0 1 1, driver 580.159.04, CUDA 13.0; "
            "2026-11-30; through ncu, cold caches");
  EXPECT_EQ(to_text({}), "");
  Provenance how;
  how.warm = true;
  EXPECT_EQ(to_text(how), "warm caches");
  how.compute_capability = 100;
  EXPECT_EQ(to_text(how), "compute capability 10.0; warm caches");
  how.gpu = "NVIDIA B200", how.compute_capability = 0;
  EXPECT_EQ(to_text(how), "NVIDIA B200; warm caches");
}

}  // namespace
}  // namespace attest
